{{- define "counterfoil.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "counterfoil.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "counterfoil.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "counterfoil.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "counterfoil.selector" -}}
app.kubernetes.io/name: {{ include "counterfoil.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "counterfoil.labels" -}}
{{ include "counterfoil.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end -}}

{{- define "counterfoil.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository $tag -}}
{{- end -}}
{{- end -}}

{{- /* The name of a group's objects. */ -}}
{{- define "counterfoil.groupName" -}}
{{- printf "%s-%s" (include "counterfoil.fullname" .root) .group | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* What a group says, over what all groups have. As JSON. */ -}}
{{- define "counterfoil.group" -}}
{{- mergeOverwrite (deepCopy .root.Values.workerDefaults) (deepCopy .given) | toJson -}}
{{- end -}}

{{- /* The most pods that a group may have. */ -}}
{{- define "counterfoil.maxPods" -}}
{{- if eq .autoscaling.mode "none" }}{{ .replicas | int64 }}{{ else }}{{ .autoscaling.max | int64 }}{{ end -}}
{{- end -}}

{{- /* The part of a target's rate that one process may use while the broker is away: one of as many as there can be. */ -}}
{{- define "counterfoil.localShare" -}}
{{- $processes := 0 -}}
{{- range $name, $given := .Values.workers -}}
{{- $group := include "counterfoil.group" (dict "root" $ "given" $given) | fromJson -}}
{{- $processes = add $processes (mul (include "counterfoil.maxPods" $group | int64) ($group.concurrency | int64)) -}}
{{- end -}}
{{- divf 1 (max 1 $processes) | printf "%.6f" -}}
{{- end -}}

{{- /*
Seconds that a group's pods need for what may be out when they are told to stop: the longest answer of a call that they
may have sent. Known where the targets stand in these values; else 90, what a worker waits by itself. A target's keys hold
for its tools, a tool's win.
*/ -}}
{{- define "counterfoil.neededGrace" -}}
{{- $needed := 30.0 -}}
{{- if .root.Values.targets.existingConfigMap -}}
{{- $needed = 90.0 -}}
{{- end -}}
{{- range $target := .root.Values.targets.entries -}}
{{- $tools := prepend (values (default dict $target.tools)) dict -}}
{{- range $tool := $tools -}}
{{- $policy := mergeOverwrite (dict) $target (default dict $tool) -}}
{{- $sendBy := float64 (default 10 $policy.send_by_s) -}}
{{- $needed = maxf $needed (addf $sendBy (float64 (default 15 $target.deadline_s))) -}}
{{- if has "submit" $.lanes -}}
{{- $needed = maxf $needed (float64 (default 60 $policy.answer_by_s)) -}}
{{- end -}}
{{- if has "sync" $.lanes -}}
{{- $needed = maxf $needed (float64 (default 0 $policy.sync_bound_s)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- addf $needed 5 | ceil | int64 -}}
{{- end -}}

{{- /* Seconds that a group's worker waits for what is out. */ -}}
{{- define "counterfoil.stopGrace" -}}
{{- $needed := include "counterfoil.neededGrace" (dict "root" .root "lanes" .group.lanes) | int64 -}}
{{- $given := .group.stopGraceSeconds | int64 -}}
{{- if and $given (lt $given $needed) (not .root.Values.targets.existingConfigMap) -}}
{{- fail (printf "workers.%s.stopGraceSeconds: %d is less than the %d that its targets' answer_by_s and sync_bound_s need: a restart would lose answers. Raise it, or set 0 to have it computed." .name $given $needed) -}}
{{- end -}}
{{- $given | default $needed -}}
{{- end -}}
