"""What the chart makes of values, as objects, and the questions that are asked of each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import helm_python
import kubernetes_validate
import yaml
from kubernetes_validate import utils

# It reads its 2 MB of definitions anew for each object: a minute of the three that this step has.
utils.schema_contents = cache(utils.schema_contents)

Object = dict[str, Any]

KUBERNETES = "1.33"
OWN_KINDS = {
    # Kinds that Kubernetes' schemas don't know: their fields, by the operators' documentation.
    "ScaledObject": {
        *(
            "scaleTargetRef",
            "pollingInterval",
            "minReplicaCount",
            "maxReplicaCount",
            "fallback",
            "advanced",
            "triggers",
        ),
    },
    "TriggerAuthentication": {"secretTargetRef"},
    "ServiceMonitor": {"selector", "endpoints"},
    "PrometheusRule": {"groups"},
}
HOST = {"hostNetwork", "hostPID", "hostIPC", "hostAliases", "shareProcessNamespace"}
CONFINED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
VOLUMES = {"configMap", "emptyDir", "persistentVolumeClaim", "secret"}
SECRET = re.compile(r"PASSWORD|TOKEN|SECRET|_KEYS$|_URL$")


@dataclass(frozen=True)
class PodOf:
    """A pod's template, with the object that makes it."""

    maker: Object
    labels: dict[str, str]
    annotations: dict[str, str]
    spec: Object

    @property
    def where(self) -> str:
        return f"{self.maker['kind']}/{self.maker['metadata']['name']}"

    @property
    def containers(self) -> list[Object]:
        return [*self.spec.get("initContainers", ()), *self.spec["containers"]]

    @property
    def component(self) -> str:
        return self.labels["app.kubernetes.io/component"]

    def environ(self) -> dict[str, str]:
        return {one["name"]: one.get("value", "") for one in self.spec["containers"][0]["env"]}


@dataclass(frozen=True)
class Rendered:
    """Everything that the chart made."""

    objects: list[Object]

    @classmethod
    def of(cls, chart: helm_python.Chart, values: dict[str, Any], *, is_upgrade: bool = False) -> "Rendered":
        files = chart.render(values, name="fleet", namespace="tools", is_upgrade=is_upgrade)
        texts = (text for path, text in files.items() if path.endswith(".yaml"))
        found = [one for text in texts for one in yaml.load_all(text, yaml.CSafeLoader) if one is not None]
        return cls(found)

    @cached_property
    def pods(self) -> list[PodOf]:
        return list(self._pods())

    def _pods(self) -> Iterator[PodOf]:
        for one in self.objects:
            if one["kind"] in ("Deployment", "Job"):
                template = one["spec"]["template"]
            elif one["kind"] == "CronJob":
                template = one["spec"]["jobTemplate"]["spec"]["template"]
            elif one["kind"] == "Pod":
                template = one
            else:
                continue
            meta = template["metadata"]
            yield PodOf(one, meta["labels"], meta.get("annotations", {}), template["spec"])

    def kind(self, kind: str) -> dict[str, Object]:
        return {one["metadata"]["name"]: one for one in self.objects if one["kind"] == kind}


def due_rows(chart: helm_python.Chart) -> str:
    """The question by which the default group of reads is scaled."""
    targets = {"entries": {"reports": {"url": "https://reports.example.com/mcp", "protocol": "mcp-2026-07-28"}}}
    values = {"targets": targets, "workerDefaults": {"autoscaling": {"mode": "keda"}}}
    scaled = Rendered.of(chart, values).kind("ScaledObject")
    read = next(one for name, one in scaled.items() if name.endswith("-read"))
    return str(read["spec"]["triggers"][0]["metadata"]["query"])


def against_the_schemas(rendered: Rendered) -> Iterator[str]:
    """Kubernetes' own schemas, without unknown fields; for other kinds the fields that we may use."""
    for one in rendered.objects:
        where = f"{one['kind']}/{one['metadata']['name']}"
        if one["kind"] in OWN_KINDS:
            if unknown := one["spec"].keys() - OWN_KINDS[one["kind"]]:
                yield f"{where}: unknown {unknown}"
            continue
        try:
            kubernetes_validate.validate(one, KUBERNETES, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"{where}: {error}"


def against_the_restricted_profile(pod: PodOf) -> Iterator[str]:
    """Kubernetes' Pod Security Standard `restricted`, and what goes beyond it here."""
    security = pod.spec.get("securityContext", {})
    if security.get("runAsNonRoot") is not True or security.get("runAsUser", 0) < 1:
        yield "may run as root"
    if security.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "no seccomp profile"
    if shared := HOST & pod.spec.keys():
        yield f"shares {shared} with others"
    if pod.spec.get("automountServiceAccountToken") is not False:
        yield "mounts a token of the API server"
    for volume in pod.spec.get("volumes", ()):
        if not volume.keys() - {"name"} <= VOLUMES:
            yield f"volume {volume}"
        if "emptyDir" in volume and not volume["emptyDir"].get("sizeLimit"):
            yield f"volume {volume['name']} has no limit"
    for container in pod.containers:
        yield from (f"{container['name']} {each}" for each in _of_a_container(container))


def _of_a_container(container: Object) -> Iterator[str]:
    if container.get("securityContext") != CONFINED:
        yield f"may do {container.get('securityContext')}"
    if any("hostPort" in port for port in container.get("ports", ())):
        yield "has a host port"
    if "memory" not in container["resources"].get("limits", {}) or not container["resources"].get("requests"):
        yield "has no bounds"
    if "command" in container:
        yield "leaves the image's entry point"
    if clear := [one["name"] for one in container["env"] if SECRET.search(one["name"]) and "value" in one]:
        yield f"has {clear} in the clear"


def against_each_other(rendered: Rendered) -> Iterator[str]:
    """Names, selectors and references that have to fit."""
    names = [(one["kind"], one["metadata"]["name"]) for one in rendered.objects]
    if len(names) != len(set(names)):
        yield "two objects of one name"
    # A CronJob's controller adds eleven characters for its Jobs' names.
    if long := [name for kind, name in names if len(name) > (52 if kind == "CronJob" else 63)]:
        yield f"too long: {long}"
    yield from _selectors(rendered)
    yield from _references(rendered)


def _selectors(rendered: Rendered) -> Iterator[str]:
    for kind in ("Deployment", "Service", "PodDisruptionBudget"):
        for name, one in rendered.kind(kind).items():
            selector = one["spec"]["selector"]
            selector = selector.get("matchLabels", selector)
            chosen = [pod.where for pod in rendered.pods if selector.items() <= pod.labels.items()]
            if chosen != [f"Deployment/{name}"]:
                yield f"{kind}/{name} selects {chosen}"
    for kind in ("HorizontalPodAutoscaler", "ScaledObject"):
        for name, one in rendered.kind(kind).items():
            scaled = rendered.kind("Deployment").get(one["spec"]["scaleTargetRef"]["name"])
            if scaled is None or "replicas" in scaled["spec"]:
                yield f"{kind}/{name} scales nothing, or against a number of replicas"


def _references(rendered: Rendered) -> Iterator[str]:
    maps = rendered.kind("ConfigMap")
    for pod in rendered.pods:
        volumes = {volume["name"] for volume in pod.spec["volumes"]}
        for container in pod.containers:
            if {mount["name"] for mount in container["volumeMounts"]} - volumes:
                yield f"{pod.where} mounts what is not there"
            for source in container.get("envFrom", ()):
                if "configMapRef" in source and source["configMapRef"]["name"] not in maps:
                    yield f"{pod.where} reads a ConfigMap that is not there"


def ways_out(rendered: Rendered, pod: PodOf) -> set[str]:
    """Names of the policies that let this pod out."""
    found = set()
    for name, one in rendered.kind("NetworkPolicy").items():
        selector, spec = one["spec"]["podSelector"], one["spec"]
        named = selector.get("matchLabels", {}).items() <= pod.labels.items() and all(
            pod.labels.get(term["key"]) in term["values"] for term in selector.get("matchExpressions", ())
        )
        if named and spec.get("egress"):
            found.add(name.rpartition("-to-")[2])
    return found
