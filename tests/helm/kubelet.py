"""What a cluster does with what Helm wrote: Jobs and Deployments of the API server become real processes.

Jobs run their init containers and then their container, again with the Job's own uid where one fails. Deployments are
rolled as `maxSurge: 1, maxUnavailable: 0` says: one more, ready, then one less, by preStop, SIGTERM and, when the grace
is over, SIGKILL. A container that ends by itself is started anew. The image is this checkout: its entry point is
`counterfoil`, environment comes from ConfigMaps and Secrets, mounts are folders of the pod's own.
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from .api import Cluster, Key, Object

READY = ("worker ready", "beat ticks", "hooks ready", "exporter ready")
BACKOFF_S = 0.5
"""Before a container that ended is started anew; a kubelet begins with 10."""


@dataclass
class Pod:
    """One pod: its container's process, and those before it that ended."""

    name: str
    template: Object
    folder: Path
    group: str = ""
    label: str = ""
    process: subprocess.Popen[bytes] | None = None
    environ: dict[str, str] = field(default_factory=dict)
    exits: list[int] = field(default_factory=list)
    leaving: bool = False
    cut_off: bool = False
    restart_at_s: float = 0.0

    @property
    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def ready(self) -> bool:
        own = self.log.rpartition("\n-- started\n")[2]
        return self.process is not None and self.process.poll() is None and any(word in own for word in READY)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, number)


class Kubelet:
    """The controllers and the one node, in a thread of their own, until `close`."""

    def __init__(self, cluster: Cluster, folder: Path, environ: dict[str, str]) -> None:
        self.cluster = cluster
        self.pods: list[Pod] = []
        self.gone: list[Pod] = []
        self.jobs: list[tuple[str, str, int]] = []
        """Every pod of a Job that ended: its Job, the Job's uid, the exit code."""
        self.killed: list[str] = []
        self.fail_after_success: set[str] = set()
        """Jobs whose first pod is lost after it has done its work: its node dies before it could say so."""
        self._folder = folder
        self._environ = environ
        self._working: dict[str, threading.Thread] = {}
        self._ending: list[threading.Thread] = []
        self._ended = threading.Event()
        self._trouble: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self.cluster.close()
        self._thread.join()
        for pod in (*self.pods, *self.gone):
            if pod.process is not None and pod.process.poll() is None:
                pod.signal(signal.SIGKILL)
                pod.process.wait()
        for thread in (*self._working.values(), *self._ending):
            thread.join()

    def of(self, group: str) -> list[Pod]:
        """Pods of the Deployments whose name ends so."""
        return [pod for pod in self.pods if pod.group.endswith(group)]

    def cut_off(self, pod: Pod) -> None:
        """Its node can't be reached any more: it goes on, and the controllers have another one made."""
        pod.cut_off = True
        self.pods.remove(pod)
        self.gone.append(pod)

    def settled(self) -> bool:
        """Every Deployment has its pods, of its own template and ready, and no others."""
        assert not self._trouble, self._trouble
        if any(not pod.ready or pod.leaving for pod in list(self.pods)):
            return False
        wanted = {name: (_digest(one), one["spec"].get("replicas", 1)) for name, one in self._deployments().items()}
        found: dict[str, int] = {}
        for pod in list(self.pods):
            if pod.label != wanted.get(pod.group, ("",))[0]:
                return False
            found[pod.group] = found.get(pod.group, 0) + 1
        return found == {name: count for name, (_, count) in wanted.items() if count}

    def probe(self, pod: Pod, name: str) -> str:
        """What is wrong by this probe of the pod's container; empty: nothing."""
        container = pod.template["spec"]["containers"][0]
        asked = container[name]
        if "httpGet" in asked:
            port = next(one["containerPort"] for one in container["ports"] if one["name"] == asked["httpGet"]["port"])
            answer = httpx.get(
                f"http://127.0.0.1:{port}{asked['httpGet']['path']}", timeout=asked.get("timeoutSeconds", 1)
            )
            return "" if answer.status_code == 200 else answer.text or str(answer.status_code)
        program, *words = asked["exec"]["command"]
        assert program == "counterfoil"
        told = subprocess.run(
            [sys.executable, "-P", "-m", program, *words],
            env=pod.environ,
            cwd=pod.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return "" if told.returncode == 0 else told.stderr or str(told.returncode)

    def logs(self) -> str:
        return "\n".join(f"--- {pod.name}\n{pod.log[-2500:]}" for pod in (*self.pods, *self.gone))

    # -- the loop ------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._start_jobs()
                self._start_bare_pods()
                for name, deployment in self._deployments().items():
                    self._roll(name, deployment)
                for pod in list(self.pods):
                    self._keep_up(pod)
                for group in {pod.group for pod in self.pods} - self._deployments().keys():
                    for pod in self.of(group):
                        self._end(pod)
            except BaseException as error:  # noqa: BLE001  the test that waits has to hear of it
                self._trouble.append(error)
                return
            self._ended.wait(0.05)  # processes tell nobody that they are ready

    def _deployments(self) -> dict[str, Object]:
        return self.cluster.of("deployments")

    # -- Jobs ----------------------------------------------------------------------------------------------------------

    def _start_jobs(self) -> None:
        for name, job in self.cluster.of("jobs").items():
            uid = job["metadata"]["uid"]
            if uid not in self._working and "status" not in job:
                self._working[uid] = threading.Thread(target=self._run_job, args=(name, job), daemon=True)
                self._working[uid].start()

    def _run_job(self, name: str, job: Object) -> None:
        uid = job["metadata"]["uid"]
        labels = {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name}
        for attempt in range(job["spec"]["backoffLimit"] + 1):
            pod = Pod(f"{name}-{uid}-{attempt}", job["spec"]["template"], self._folder / f"{name}-{uid}-{attempt}")
            self.gone.append(pod)
            spec = pod.template["spec"]
            code = 0
            for container in (*spec.get("initContainers", ()), *spec["containers"]):
                code = code or self._start(pod, container, labels).wait()
            self.jobs.append((name, uid, code))
            lost = name in self.fail_after_success and attempt == 0
            if code == 0 and not lost:
                self._tell_job(job, "Complete")
                return
        self._tell_job(job, "Failed")

    def _start_bare_pods(self) -> None:
        """Pods that nobody keeps up: the one of `helm test`."""
        for name, told in self.cluster.of("pods").items():
            uid = told["metadata"]["uid"]
            if uid not in self._working and "status" not in told:
                self._working[uid] = threading.Thread(target=self._run_bare_pod, args=(name, told), daemon=True)
                self._working[uid].start()

    def _run_bare_pod(self, name: str, told: Object) -> None:
        pod = Pod(name, told, self._folder / f"{name}-{told['metadata']['uid']}")
        self.gone.append(pod)
        code = self._start(pod, told["spec"]["containers"][0], {}).wait()
        key = Key("", "v1", "pods", told["metadata"]["namespace"], name)
        status = {"status": {"phase": "Failed" if code else "Succeeded"}}
        self.cluster.put(key, self.cluster.objects.get(key, told) | status, status=True)

    def _tell_job(self, job: Object, how: str) -> None:
        meta = job["metadata"]
        key = Key("batch", "v1", "jobs", meta["namespace"], meta["name"])
        status = {
            "succeeded": int(how == "Complete"),
            "startTime": "2026-11-30T00:00:00Z",
            "completionTime": "2026-11-30T00:00:01Z",
            "conditions": [{"type": how, "status": "True"}],
        }
        self.cluster.put(key, self.cluster.objects.get(key, job) | {"status": status}, status=True)

    # -- Deployments ---------------------------------------------------------------------------------------------------

    def _roll(self, name: str, deployment: Object) -> None:
        label, replicas = _digest(deployment), deployment["spec"].get("replicas", 1)
        own = [pod for pod in self.pods if pod.group == name and not pod.leaving]
        new = [pod for pod in own if pod.label == label]
        old = [pod for pod in own if pod.label != label]
        if len(new) < replicas and len(own) <= replicas:
            pod_name = f"{name}-{label}-{len(self.pods) + len(self.gone)}"
            pod = Pod(pod_name, deployment["spec"]["template"], self._folder / pod_name, name, label)
            self.pods.append(pod)
            self._start(pod, pod.template["spec"]["containers"][0], {})
        elif all(pod.ready for pod in new) and (len(new) > replicas or (old and len(new) + len(old) > replicas)):
            self._end(old[0] if old else new[0])
        ready = sum(pod.ready for pod in new)
        counts = ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas")
        status = dict.fromkeys(counts, ready) | {
            "observedGeneration": deployment["metadata"]["generation"],
            "conditions": [{"type": "Available", "status": "True" if ready == replicas else "False"}],
        }
        if deployment.get("status") != status:
            meta = deployment["metadata"]
            key = Key("apps", "v1", "deployments", meta["namespace"], name)
            with self.cluster.changed:
                now = self.cluster.objects.get(key)
                if now is not None:
                    self.cluster.put(key, now | {"status": status}, status=True)

    def _keep_up(self, pod: Pod) -> None:
        """A container that ended by itself is started anew, after a while."""
        if pod.leaving or pod.process is None or pod.process.poll() is None:
            return
        if not pod.restart_at_s:
            pod.exits.append(pod.process.returncode)
            pod.restart_at_s = time.monotonic() + BACKOFF_S
        elif time.monotonic() >= pod.restart_at_s:
            pod.restart_at_s = 0.0
            self._start(pod, pod.template["spec"]["containers"][0], {})

    def _end(self, pod: Pod) -> None:
        if not pod.leaving:
            pod.leaving = True
            thread = threading.Thread(target=self._terminate, args=(pod,), daemon=True)
            self._ending.append(thread)
            thread.start()

    def _terminate(self, pod: Pod) -> None:
        assert pod.process is not None
        spec = pod.template["spec"]
        end_s = time.monotonic() + spec["terminationGracePeriodSeconds"]
        if pod.process.poll() is None:
            self._ended.wait(spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"])
            pod.process.send_signal(signal.SIGTERM)
            try:
                pod.process.wait(max(end_s - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                self.killed.append(pod.name)
                pod.signal(signal.SIGKILL)
                pod.process.wait()
        pod.exits.append(pod.process.returncode)
        self.pods.remove(pod)
        self.gone.append(pod)

    # -- processes -----------------------------------------------------------------------------------------------------

    def _start(self, pod: Pod, container: Object, labels: dict[str, str]) -> "subprocess.Popen[bytes]":
        pod.folder.mkdir(exist_ok=True)
        mounts = self._mount(pod, container)
        environ = self._environ | self._variables(container, labels)
        arguments = [_expanded(word, environ) for word in container["args"]]
        for name, value in environ.items():
            for path, folder in mounts.items():
                if name.startswith("COUNTERFOIL_") and (value == path or value.startswith(f"{path}/")):
                    environ[name] = str(folder) + value.removeprefix(path)
        pod.environ = environ | {"WHO": pod.name}
        with (pod.folder / "log").open("ab") as log:
            log.write(b"\n-- started\n")
            log.flush()
            pod.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "counterfoil", *arguments],
                env=pod.environ,
                cwd=mounts["/tmp"],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return pod.process

    def _mount(self, pod: Pod, container: Object) -> dict[str, Path]:
        volumes = {one["name"]: one for one in pod.template["spec"]["volumes"]}
        mounts = {}
        for mount in container["volumeMounts"]:
            folder = pod.folder / mount["name"]
            folder.mkdir(exist_ok=True)
            mounts[mount["mountPath"]] = folder
            source = volumes[mount["name"]]
            for name, text in self._data(source).items():
                (folder / name).write_text(text)
        return mounts

    def _data(self, source: Object) -> dict[str, Any]:
        if "configMap" in source:
            return dict(self.cluster.of("configmaps")[source["configMap"]["name"]]["data"])
        if "secret" in source:
            return dict(self.cluster.of("secrets")[source["secret"]["secretName"]]["stringData"])
        return {}

    def _variables(self, container: Object, labels: dict[str, str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for source in container.get("envFrom", ()):
            if "configMapRef" in source:
                found |= self.cluster.of("configmaps")[source["configMapRef"]["name"]]["data"]
            else:
                found |= self.cluster.of("secrets")[source["secretRef"]["name"]]["stringData"]
        for one in container["env"]:
            if "value" in one:
                found[one["name"]] = one["value"]
            elif "secretKeyRef" in one["valueFrom"]:
                reference = one["valueFrom"]["secretKeyRef"]
                found[one["name"]] = self.cluster.of("secrets")[reference["name"]]["stringData"][reference["key"]]
            else:
                path = one["valueFrom"]["fieldRef"]["fieldPath"]
                found[one["name"]] = labels[path.removeprefix("metadata.labels['").removesuffix("']")]
        return found


def _expanded(word: str, environ: dict[str, str]) -> str:
    """`$(NAME)` is a variable's value, `$$` a `$`."""
    return re.sub(r"\$(?:\$|\((\w+)\))", lambda m: environ[m[1]] if m[1] else "$", word)


def _digest(deployment: Object) -> str:
    template = json.dumps(deployment["spec"]["template"], sort_keys=True)
    return hashlib.sha256(template.encode()).hexdigest()[:8]
