{{- /*
One container. root, name, args; needs: of settings, database, broker, targets, credentials, producers, webhooks, hooks, archive;
database: another Secret than the values'; env: name -> value; resources, ports, probe: readiness and liveness in YAML.
*/ -}}
{{- define "counterfoil.container" -}}
{{- $root := .root -}}
{{- $values := .root.Values -}}
{{- $needs := default list .needs -}}
- name: {{ .name }}
  image: {{ include "counterfoil.image" $root | quote }}
  imagePullPolicy: {{ $values.image.pullPolicy }}
  args: {{ .args | toJson }}
  {{- if has "settings" $needs }}
  envFrom:
    - configMapRef: {name: {{ include "counterfoil.fullname" $root }}-settings}
    {{- if has "credentials" $needs }}
    {{- range $values.credentials.existingSecrets }}
    - secretRef: {name: {{ . | quote }}}
    {{- end }}
    {{- end }}
  {{- end }}
  env:
    - {name: COUNTERFOIL_FLEET, value: {{ $values.fleet | quote }}}
    {{- if has "database" $needs }}
    {{- $database := default $values.database .database }}
    - name: COUNTERFOIL_DATABASE_URL
      valueFrom: {secretKeyRef: {name: {{ $database.existingSecret | quote }}, key: {{ $database.key | quote }}}}
    {{- end }}
    {{- if has "broker" $needs }}
    - name: COUNTERFOIL_BROKER_URL
      valueFrom: {secretKeyRef: {name: {{ $values.broker.existingSecret | quote }}, key: {{ $values.broker.key | quote }}}}
    {{- end }}
    {{- if and (has "targets" $needs) $values.sessionKeys.existingSecret }}
    - name: COUNTERFOIL_KEYS
      valueFrom: {secretKeyRef: {name: {{ $values.sessionKeys.existingSecret | quote }}, key: {{ $values.sessionKeys.key | quote }}}}
    {{- end }}
    {{- if has "targets" $needs }}
    - {name: COUNTERFOIL_TARGETS_FILE, value: {{ printf "/etc/counterfoil/targets/%s" $values.targets.key | quote }}}
    {{- end }}
    {{- if and (has "producers" $needs) $values.producers.existingSecret }}
    - {name: COUNTERFOIL_PRODUCERS_FILE, value: {{ printf "/etc/counterfoil/producers/%s" $values.producers.key | quote }}}
    {{- end }}
    {{- if and (has "webhooks" $needs) $values.webhooks.existingSecret }}
    - {name: COUNTERFOIL_WEBHOOKS_FILE, value: {{ printf "/etc/counterfoil/webhooks/%s" $values.webhooks.key | quote }}}
    {{- end }}
    {{- if has "hooks" $needs }}
    - {name: COUNTERFOIL_HOOKS_FILE, value: {{ printf "/etc/counterfoil/hooks/%s" $values.hooks.key | quote }}}
    {{- end }}
    {{- range $name, $value := .env }}
    - {name: {{ $name }}, value: {{ $value | quote }}}
    {{- end }}
    {{- with .jobUid }}
    - name: JOB_UID
      valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']"}}
    {{- end }}
    {{- with .jobName }}
    - name: JOB_NAME
      valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-name']"}}
    {{- end }}
    {{- range $values.extraEnv }}
    - {{ . | toJson }}
    {{- end }}
  {{- with .ports }}
  ports: {{ . | toJson }}
  {{- end }}
  {{- with .probe }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- if .serves }}
  lifecycle:
    preStop:
      sleep: {seconds: {{ $values.preStopSeconds | int64 }}}
  {{- end }}
  resources: {{ .resources | toJson }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
  volumeMounts:
    - {name: tmp, mountPath: /tmp}
    {{- if has "targets" $needs }}
    - {name: targets, mountPath: /etc/counterfoil/targets, readOnly: true}
    {{- end }}
    {{- if and (has "credentials" $needs) $values.credentials.filesFromSecret }}
    - {name: credentials, mountPath: /etc/counterfoil/credentials, readOnly: true}
    {{- end }}
    {{- if has "archive" $needs }}
    - {name: archive, mountPath: /var/lib/counterfoil/archive}
    {{- end }}
    {{- range $file := list "producers" "webhooks" "hooks" }}
    {{- if and (has $file $needs) (get $values $file).existingSecret }}
    - {name: {{ $file }}, mountPath: /etc/counterfoil/{{ $file }}, readOnly: true}
    {{- end }}
    {{- end }}
{{- end -}}

{{- /* The rest of a pod's spec. root, component; needs as above; spread: more than one of them are kept apart. */ -}}
{{- define "counterfoil.pod" -}}
{{- $root := .root -}}
{{- $values := .root.Values -}}
{{- $needs := default list .needs -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with $values.serviceAccountName }}
serviceAccountName: {{ . | quote }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $values.image.pullSecrets }}
imagePullSecrets: {{ . | toJson }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ $values.podSecurity.runAsUser | int64 }}
  runAsGroup: {{ $values.podSecurity.runAsGroup | int64 }}
  fsGroup: {{ $values.podSecurity.fsGroup | int64 }}
  seccompProfile: {type: RuntimeDefault}
{{- with $values.nodeSelector }}
nodeSelector: {{ . | toJson }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{ . | toJson }}
{{- end }}
{{- with $values.affinity }}
affinity: {{ . | toJson }}
{{- end }}
{{- if and .spread $values.topologySpread.enabled }}
topologySpreadConstraints:
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: {{ $values.topologySpread.whenUnsatisfiable }}
    labelSelector:
      matchLabels:
        {{- include "counterfoil.selector" $root | nindent 8 }}
        app.kubernetes.io/component: {{ $.component }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: 64Mi}
  {{- if has "targets" $needs }}
  - name: targets
    configMap: {name: {{ default (printf "%s-targets" (include "counterfoil.fullname" $root)) $values.targets.existingConfigMap | quote }}}
  {{- end }}
  {{- if and (has "credentials" $needs) $values.credentials.filesFromSecret }}
  - name: credentials
    secret: {secretName: {{ $values.credentials.filesFromSecret | quote }}, defaultMode: 0440}
  {{- end }}
  {{- if has "archive" $needs }}
  - name: archive
    persistentVolumeClaim: {claimName: {{ $values.housekeeping.archive.existingClaim | quote }}}
  {{- end }}
  {{- range $file := list "producers" "webhooks" "hooks" }}
  {{- if and (has $file $needs) (get $values $file).existingSecret }}
  - name: {{ $file }}
    secret: {secretName: {{ (get $values $file).existingSecret | quote }}, defaultMode: 0440}
  {{- end }}
  {{- end }}
{{- end -}}

{{- /* Labels and annotations of a pod. root, component; config: it starts anew when settings or targets change. */ -}}
{{- define "counterfoil.podMeta" -}}
labels:
  {{- include "counterfoil.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  kubectl.kubernetes.io/default-container: counterfoil
  {{- if .config }}
  counterfoil.dev/config: {{ include "counterfoil.config" .root | sha256sum | trunc 16 | quote }}
  {{- end }}
  {{- with .root.Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- /* Everything in the ConfigMaps of ours: what changes it starts the pods anew. */ -}}
{{- define "counterfoil.config" -}}
settings:
  {{- range $name, $value := .Values.settings }}
  COUNTERFOIL_{{ $name | upper }}: {{ $value | toString | quote }}
  {{- end }}
  {{- if not (hasKey .Values.settings "local_share") }}
  COUNTERFOIL_LOCAL_SHARE: {{ include "counterfoil.localShare" . | quote }}
  {{- end }}
  {{- if not (hasKey .Values.settings "log_format") }}
  COUNTERFOIL_LOG_FORMAT: json
  {{- end }}
  COUNTERFOIL_HEALTH_DIR: /tmp/health
targets: {{ dict "targets" .Values.targets.entries | toYaml | quote }}
{{- end -}}
