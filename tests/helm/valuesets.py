"""Value sets for the chart: some hundred that are good and mixed, and ways of spoiling one, drawn from a fixed seed."""

import copy
import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

Values = dict[str, Any]

LANES = ["submit", "lookup", "poll", "answer", "cancel", "fetch", "audit", "sync", "timer"]
DEFAULT_GROUPS = ("submit", "read", "people", "sync")
TARGETS: list[Values] = [
    {"entries": {"reports": {"url": "https://reports.example.com/mcp", "protocol": "mcp-2026-07-28"}}},
    {
        "entries": {
            "blocking": {
                "url": "https://blocking.example.com/mcp",
                "protocol": "mcp-sync",
                "sync_bound_s": 300,
                "tools": {"analyse": {"sync_bound_s": 1800, "effects": False}},
            },
            "jobs": {
                "url": "https://jobs.example.com",
                "protocol": "http-202",
                "answer_by_s": 90,
                "qps": 2.5,
                "routes": {"submit": "POST /jobs", "status": "GET /jobs/{id}"},
                "statuses": {"working": ["RUNNING"], "completed": ["DONE"], "failed": ["FAILED"]},
            },
        }
    },
    {"existingConfigMap": "my-targets", "key": "all.yaml"},
]
PEER = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "data"}}, "podSelector": {}}
CIDR = {"ipBlock": {"cidr": "10.20.0.0/16", "except": ["10.20.9.0/24"]}}

CHOICES: dict[str, list[Any]] = {
    "nameOverride": ["", "cf"],
    "fullnameOverride": ["", "fleet-a"],
    "image.tag": ["", "2.4.1"],
    "image.digest": ["", "sha256:" + "0f" * 32],
    "image.pullSecrets": [[], [{"name": "registry"}]],
    "execution.generation": [1, 7, 1_000_000],
    "execution.create": [True, False],
    "fleet": ["main", "other-1"],
    "database.existingSecret": ["counterfoil-database", "pg.app"],
    "sessionKeys.existingSecret": ["", "keys"],
    "credentials.existingSecrets": [[], ["tokens", "more-tokens"]],
    "credentials.filesFromSecret": ["", "token-files"],
    "producers.existingSecret": ["", "producers"],
    "webhooks.existingSecret": ["", "webhooks"],
    "settings.poll_lease_s": [None, 5, 12],
    "settings.in_flight": [None, 50],
    "settings.local_share": [None, 0.5],
    "settings.otel": [None, True],
    "jobs.hooks": [True, False],
    "jobs.migrate": [True, False],
    "jobs.migrationSecret": ["", "owner"],
    "workerDefaults.replicas": [1, 3],
    "workerDefaults.concurrency": [1, 4],
    "workerDefaults.autoscaling.mode": ["none", "hpa", "keda"],
    "workerDefaults.autoscaling.min": [1, 4],
    "autoscaling.keda.existingSecret": ["", "keda-database"],
    "beat.replicas": [1, 2],
    "hooks.enabled": [False, True],
    "hooks.ingress": [{}, {"enabled": True, "className": "nginx", "host": "hooks.example.com", "tlsSecret": "tls"}],
    "exporter.enabled": [True, False],
    "exporter.existingSecret": ["", "reader"],
    "housekeeping.enabled": [False, True],
    "housekeeping.keep": [{}, {"evidence": 365, "results": 730}],
    "housekeeping.archive.existingClaim": ["", "archive"],
    "synthetic.enabled": [False, True],
    "synthetic.arguments": [{}, {"month": "2026-10", "price": "$(HOME) & $5", "deep": [{"n": 1_000_000}, None]}],
    "synthetic.withinSeconds": [1, 600],
    "monitoring.rules.enabled": [False, True],
    "monitoring.dashboard.enabled": [False, True],
    "networkPolicy.enabled": [True, False],
    "networkPolicy.egress.database": [{}, {"to": [CIDR], "ports": [5432, 6432]}],
    "networkPolicy.egress.targets": [{}, {"to": [PEER, CIDR], "ports": [443, 8443]}],
    "networkPolicy.egress.telemetry": [{}, {"ports": [4318]}],
    "networkPolicy.ingress.metrics.from": [[], [PEER]],
    "podDisruptionBudget.enabled": [True, False],
    "topologySpread.whenUnsatisfiable": ["ScheduleAnyway", "DoNotSchedule"],
    "preStopSeconds": [3, 10],
    "serviceAccountName": ["", "fleet"],
    "priorityClassName": ["", "high"],
    "podAnnotations": [{}, {"example.com/team": "tools"}],
    "podLabels": [{}, {"example.com/cost": "42"}],
    "nodeSelector": [{}, {"kubernetes.io/arch": "amd64"}],
    "tolerations": [[], [{"key": "spot", "operator": "Exists"}]],
    "extraEnv": [[], [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}]],
}


def put(values: Values, path: str, value: Any) -> None:
    *parents, name = path.split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
    values[name] = value


def good(count: int, seed: int = 20261130) -> Iterator[Values]:
    """Value sets that must render, each choice's every value in many company."""
    rng = random.Random(seed)
    for number in range(count):
        values: Values = {"targets": copy.deepcopy(TARGETS[number % len(TARGETS)])}
        for path, choices in CHOICES.items():
            chosen = rng.choice(choices)
            if chosen is not None:
                put(values, path, copy.deepcopy(chosen))
        if number % 2:
            values["workers"] = groups(rng)
        put(values, "synthetic.target", next(iter(values["targets"].get("entries", ())), "anything"))
        put(values, "synthetic.tool", "ping")
        put(values, "monitoring.serviceMonitor.enabled", values["exporter"]["enabled"])
        yield values


def groups(rng: random.Random) -> Values:
    """Every lane in one of some groups, and the default groups gone."""
    lanes = rng.sample(LANES, len(LANES))
    cuts = sorted(rng.sample(range(1, len(LANES)), rng.randint(0, 4)))
    bounds = [0, *cuts, len(LANES)]
    made: Values = dict.fromkeys(DEFAULT_GROUPS)
    for begin, end in pairwise(bounds):
        made[f"group-{begin}"] = {"lanes": lanes[begin:end]}
    first = made["group-0"]
    first["deliver"] = True
    if rng.random() < 0.5:
        first |= {"replicas": 5, "stopGraceSeconds": 2000, "resources": {"limits": {"cpu": "2"}}}
    return made


SPOILED: dict[str, Any] = {
    "execution.generation": [0, -1, 1.5, "4"],
    "execution.epoch": [3],
    "image.digest": ["latest"],
    "image.pullPolicy": ["Sometimes"],
    "fleet": ["Main", "a'; DROP TABLE x --"],
    "database.url": ["postgresql://user:password@host/name"],
    "database.existingSecret": ["", "Not_A_Name"],
    "postgresql.enabled": [True],
    "settings.poll_lease": [8],
    "settings.poll_lease_s": [1, "8"],
    "settings.epoch": [3],
    "settings.allow_unsigned": [True],
    "targets.reports": [{"url": "https://x.example.com"}],
    "jobs.hook": [True],
    "workers.read.lanes": [[], ["poll", "poll"], ["polls"]],
    "workers.read.replica": [2],
    "workers.Read": [{"lanes": ["poll"]}],
    "workers.extra": [{}],
    "workerDefaults.autoscaling.min": [0],
    "workerDefaults.autoscaling.mode": ["vpa"],
    "workerDefaults.resources.limits.mem": ["1Gi"],
    "workerDefaults.terminationGracePeriodSeconds": [30],
    "beat.replicas": [-1],
    "hooks.port": [80],
    "housekeeping.schedule": ["daily", "3 o'clock"],
    "housekeeping.keep": [{"evidence": 0}, {"register; --yes": 1}],
    "synthetic.schedule": ["often"],
    "synthetic.target": ["--help"],
    "synthetic.tool": ["-x", "a$(b)"],
    "synthetic.arguments": ["{}", [1]],
    "synthetic.namespace": ["", "Default"],
    "synthetic.withinSeconds": [0, 0.5],
    "synthetic.callNode": ["fixed"],
    "networkPolicy.egress.internet": [{"ports": [443]}],
    "networkPolicy.egress.targets": [{"to": [{"cidr": "10.0.0.0/8"}]}],
    "podSecurity.runAsUser": [0],
    "podSecurity.privileged": [True],
    "preStopSeconds": [0],
    "extraEnv": [[{"value": "x"}], [{"name": "A B"}]],
    "replicaCount": [3],
}
"""Path -> values that the schema must refuse: misspelt, of other charts, out of bounds, unsafe."""


def spoiled() -> Iterator[tuple[str, Values]]:
    for path, values in SPOILED.items():
        for value in values:
            made: Values = {"targets": copy.deepcopy(TARGETS[0])}
            put(made, path, value)
            yield f"{path}={value!r}", made


CONTRADICTIONS: dict[str, Values] = {
    "no targets": {"targets": {}},
    "entries and existingConfigMap are both set": {
        "targets": {"entries": TARGETS[0]["entries"], "existingConfigMap": "mine"}
    },
    "no group serves the lane sync": {"workers": {"sync": None}},
    "min 10 is above max 5": {"workerDefaults": {"autoscaling": {"mode": "hpa", "min": 10, "max": 5}}},
    "no group of workers has deliver": {"webhooks": {"existingSecret": "w"}, "workers": {"read": {"deliver": False}}},
    "it needs a host and a tlsSecret": {"hooks": {"enabled": True, "ingress": {"enabled": True}}},
    "there is nothing to scrape": {
        "exporter": {"enabled": False},
        "monitoring": {"serviceMonitor": {"enabled": True}},
    },
    "workers.sync.stopGraceSeconds: 60 is less than the 1805": {
        "targets": TARGETS[1],
        "workers": {"sync": {"stopGraceSeconds": 60}},
    },
    "Name target and tool": {"synthetic": {"enabled": True, "target": "reports"}},
    "synthetic: enabled, but what is called?": {"synthetic": {"enabled": True, "tool": "ping"}},
    "synthetic.target: jobs is none of targets.entries (reports)": {
        "synthetic": {"enabled": True, "target": "jobs", "tool": "ping"}
    },
}
"""What the schema can't say: a part of what the chart says -> values (over good ones)."""
CONTRADICTIONS["targets: name your servers"] = CONTRADICTIONS.pop("no targets")
