"""A small Kubernetes API server on loopback: enough for Helm to install, upgrade, roll back and uninstall, and for
`kubelet.py` to act on what Helm wrote.

Objects are kept in memory. Discovery, GET, LIST, WATCH, POST, PUT, PATCH (apply and merge) and DELETE are spoken;
nothing is defaulted or validated, which tests do on what was rendered.
"""

import copy
import http.server
import itertools
import json
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml

Object = dict[str, Any]

KINDS = {
    ("", "v1"): {
        "configmaps": "ConfigMap",
        "namespaces": "Namespace",
        "pods": "Pod",
        "secrets": "Secret",
        "services": "Service",
    },
    ("apps", "v1"): {"deployments": "Deployment"},
    ("autoscaling", "v2"): {"horizontalpodautoscalers": "HorizontalPodAutoscaler"},
    ("batch", "v1"): {"cronjobs": "CronJob", "jobs": "Job"},
    ("keda.sh", "v1alpha1"): {"scaledobjects": "ScaledObject", "triggerauthentications": "TriggerAuthentication"},
    ("monitoring.coreos.com", "v1"): {"prometheusrules": "PrometheusRule", "servicemonitors": "ServiceMonitor"},
    ("networking.k8s.io", "v1"): {"ingresses": "Ingress", "networkpolicies": "NetworkPolicy"},
    ("policy", "v1"): {"poddisruptionbudgets": "PodDisruptionBudget"},
}
NOT_NAMESPACED = {"namespaces"}
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
NO_KINDS = b"\x0a\x032.0"
"""An OpenAPI document of no kinds (`swagger: "2.0"`, in protobuf): what it does not know Helm doesn't check."""


@dataclass(frozen=True)
class Key:
    group: str
    version: str
    plural: str
    namespace: str
    name: str


@dataclass
class Cluster:
    """What is there, and a bell for whoever waits for a change."""

    objects: dict[Key, Object] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)
    requests: list[tuple[str, str]] = field(default_factory=list)
    _versions: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _closed: bool = False

    def version(self) -> str:
        return str(next(self._versions))

    def put(self, key: Key, told: Object, *, status: bool = False) -> Object:
        """Keep an object. What others own of it (uid, status) stays, unless it is the status that is told."""
        with self.changed:
            before = self.objects.get(key)
            made = copy.deepcopy(told)
            meta = made.setdefault("metadata", {})
            made.setdefault("kind", KINDS[key.group, key.version][key.plural])
            made.setdefault("apiVersion", f"{key.group}/{key.version}".removeprefix("/"))
            meta |= {"name": key.name, "resourceVersion": self.version()}
            if key.plural not in NOT_NAMESPACED:
                meta["namespace"] = key.namespace
            old = {} if before is None else before["metadata"]
            meta["uid"] = old.get("uid", f"uid-{meta['resourceVersion']}")
            meta["creationTimestamp"] = "2026-11-30T00:00:00Z"
            same = before is not None and before.get("spec") == made.get("spec")
            meta["generation"] = old.get("generation", 0) + (0 if same else 1)
            if before is not None and not status and "status" in before:
                made["status"] = before["status"]
            self.objects[key] = made
            self.changed.notify_all()
            return made

    def drop(self, key: Key) -> Object | None:
        with self.changed:
            gone = self.objects.pop(key, None)
            self.changed.notify_all()
            return gone

    def of(self, plural: str) -> dict[str, Object]:
        """Name -> object, of one kind."""
        with self.changed:
            return {key.name: copy.deepcopy(found) for key, found in self.objects.items() if key.plural == plural}

    def wait(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        """Until it holds, looked at whenever something has changed."""
        with self.changed:
            return self.changed.wait_for(lambda: self._closed or holds(), timeout_s)

    def close(self) -> None:
        with self.changed:
            self._closed = True
            self.changed.notify_all()

    @property
    def closed(self) -> bool:
        return self._closed


def merged(into: Object, told: Object) -> Object:
    """A JSON merge patch."""
    for name, value in told.items():
        if value is None:
            into.pop(name, None)
        elif isinstance(value, dict) and isinstance(into.get(name), dict):
            merged(into[name], value)
        else:
            into[name] = value
    return into


class Api(http.server.BaseHTTPRequestHandler):
    """One connection. `cluster` is set by `serving`."""

    protocol_version = "HTTP/1.1"
    cluster: Cluster

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        asked = dict(urllib.parse.parse_qsl(url.query))
        self.cluster.requests.append(("GET", url.path))
        if url.path == "/version":
            self.answer({"major": "1", "minor": "35", "gitVersion": "v1.35.0"})
        elif url.path == "/openapi/v2":
            self.answer(NO_KINDS, kind=PROTOBUF)
        elif url.path == "/api":
            self.answer({"kind": "APIVersions", "versions": ["v1"]})
        elif url.path == "/apis":
            self.answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(of) for of in KINDS if of[0]]})
        elif (found := _resource(url.path)) is None:
            self.refuse(404, "NotFound", url.path)
        elif not found.plural:
            self.answer(_resources(found))
        elif found.name:
            self._one(found)
        elif asked.get("watch"):
            self._watch(found, asked)
        else:
            items = [one for _, one in self._chosen(found, asked)]
            self.answer(_list(found) | {"metadata": {"resourceVersion": self.cluster.version()}, "items": items})

    def do_POST(self) -> None:
        found, told = self._told()
        key = Key(found.group, found.version, found.plural, found.namespace, told["metadata"]["name"])
        if key in self.cluster.objects:
            self.refuse(409, "AlreadyExists", f'{key.plural} "{key.name}" already exists')
        else:
            self.answer(self.cluster.put(key, told), code=201)

    def do_PUT(self) -> None:
        self.answer(self.cluster.put(*self._told()))

    def do_PATCH(self) -> None:
        found, told = self._told()
        applies = "apply" in self.headers.get("content-type", "")
        before = self.cluster.objects.get(found)
        if before is None and not applies:
            self.refuse(404, "NotFound", f'{found.plural} "{found.name}" not found')
        else:
            self.answer(self.cluster.put(found, told if applies else merged(copy.deepcopy(before or {}), told)))

    def do_DELETE(self) -> None:
        found, _ = self._told()
        if self.cluster.drop(found) is None:
            self.refuse(404, "NotFound", f'{found.plural} "{found.name}" not found')
        else:
            self.answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _told(self) -> tuple[Key, Object]:
        path = urllib.parse.urlsplit(self.path).path
        self.cluster.requests.append((self.command, path))
        length = int(self.headers.get("content-length") or 0)
        told = yaml.safe_load(self.rfile.read(length)) if length else {}
        found = _resource(path)
        assert found is not None, path
        return found, told

    def _one(self, key: Key) -> None:
        found = self.cluster.objects.get(key)
        if found is None:
            self.refuse(404, "NotFound", f'{key.plural} "{key.name}" not found')
        else:
            self.answer(found)

    def _chosen(self, of: Key, asked: dict[str, str]) -> list[tuple[Key, Object]]:
        wanted = dict(part.split("=", 1) for part in asked.get("labelSelector", "").split(",") if "=" in part)
        name = asked.get("fieldSelector", "").removeprefix("metadata.name=")
        with self.cluster.changed:
            return [
                (key, one)
                for key, one in self.cluster.objects.items()
                if (key.group, key.version, key.plural) == (of.group, of.version, of.plural)
                and of.namespace in ("", key.namespace)
                and name in ("", key.name)
                and wanted.items() <= one["metadata"].get("labels", {}).items()
            ]

    def _watch(self, of: Key, asked: dict[str, str]) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        seen: dict[Key, Object] = {}
        try:
            self._tell_changes(of, asked, seen)
            if asked.get("sendInitialEvents") == "true":
                meta = {"resourceVersion": self.cluster.version(), "annotations": {"k8s.io/initial-events-end": "true"}}
                self._event("BOOKMARK", _list(of) | {"kind": KINDS[of.group, of.version][of.plural], "metadata": meta})
            # Helm hangs up when it has seen enough, which shows at the next write: so one is made now and then.
            while not self.cluster.closed:
                with self.cluster.changed:
                    self.cluster.changed.wait(1.0)
                self._tell_changes(of, asked, seen)
        except OSError:
            return

    def _tell_changes(self, of: Key, asked: dict[str, str], seen: dict[Key, Object]) -> None:
        now = dict(self._chosen(of, asked))
        for key, one in now.items():
            if key not in seen or seen[key]["metadata"]["resourceVersion"] != one["metadata"]["resourceVersion"]:
                self._event("MODIFIED" if key in seen else "ADDED", one)
        for key in seen.keys() - now.keys():
            self._event("DELETED", seen[key])
        seen.clear()
        seen.update(now)
        self.wfile.write(b"\n")
        self.wfile.flush()

    def _event(self, kind: str, told: Object) -> None:
        self.wfile.write(json.dumps({"type": kind, "object": told}).encode() + b"\n")

    def answer(self, told: Object | bytes, *, code: int = 200, kind: str = "application/json") -> None:
        body = told if isinstance(told, bytes) else json.dumps(told).encode()
        self.send_response(code)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, code: int, reason: str, message: str) -> None:
        told = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
        self.answer(told | {"code": code}, code=code)


def _group(of: tuple[str, str]) -> Object:
    version = {"groupVersion": "/".join(of), "version": of[1]}
    return {"name": of[0], "versions": [version], "preferredVersion": version}


def _resource(path: str) -> Key | None:
    """What a path names; `plural` is empty for a group's own page. None: there is no such group."""
    head, *parts = path.strip("/").split("/")
    if head not in ("api", "apis"):
        return None
    group, version, rest = ("", parts[0], parts[1:]) if head == "api" else (*parts[:2], parts[2:])
    if (group, version) not in KINDS:
        return None
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    plural, name, *_ = [*rest, "", ""]
    return Key(group, version, plural, namespace, name)


def _resources(of: Key) -> Object:
    verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
    found = [
        {"name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": plural not in NOT_NAMESPACED}
        for plural, kind in KINDS[of.group, of.version].items()
    ]
    version = f"{of.group}/{of.version}".removeprefix("/")
    told = [one | {"verbs": verbs} for one in found]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": told}


def _list(of: Key) -> Object:
    version = f"{of.group}/{of.version}".removeprefix("/")
    return {"kind": f"{KINDS[of.group, of.version][of.plural]}List", "apiVersion": version}


@contextmanager
def serving(cluster: Cluster) -> Iterator[str]:
    """A kubeconfig for it."""
    handler = type("Api", (Api,), {"cluster": cluster})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    where = f"http://127.0.0.1:{server.server_port}"
    told = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": where}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    try:
        yield yaml.safe_dump(told)
    finally:
        cluster.close()
        server.shutdown()
        server.server_close()
        thread.join()
