"""`python -m counterfoil.tests.helm.table`: writes what of the chart is made of something else.

`settings` in helm/values.schema.json is made of the workers' own settings, the table in helm/README.md of the schema
and of the defaults in values.yaml. A test compares both with what is there.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from counterfoil.workers.settings import Settings

CHART = Path(__file__).resolve().parents[2] / "helm"
SCHEMA = CHART / "values.schema.json"
README = CHART / "README.md"
BEGIN, END = "<!-- generated: values -->\n", "<!-- end -->"

OF_THE_CHART = {
    "database_url": "database",
    "broker_url": "broker",
    "targets_file": "targets",
    "producers_file": "producers",
    "webhooks_file": "webhooks",
    "fleet": "fleet",
    "generation": "execution.generation",
    "lanes": "workers",
    "concurrency": "workers",
    "stop_grace_s": "workers",
    "health_dir": "probes",
}
"""Settings that other values, or the templates, speak for."""

NOT_IN_A_CLUSTER = {"state_dir", "allow_unsigned", "epoch"}
"""The development stack's; and what a worker tells its children."""


def settings_schema() -> dict[str, Any]:
    """The properties of `settings`: every setting that is left, with its own bounds."""
    own = Settings.model_json_schema()["properties"]
    left = [name for name in own if name not in OF_THE_CHART and name not in NOT_IN_A_CLUSTER]
    return {name: {word: own[name][word] for word in own[name] if word not in ("title", "default")} for name in left}


def schema() -> dict[str, Any]:
    """The schema as it should be: what is written by hand, with `settings` made anew."""
    found: dict[str, Any] = json.loads(SCHEMA.read_text())
    found["properties"]["settings"]["properties"] = settings_schema()
    return found


def rows() -> Iterator[tuple[str, str, str]]:
    """(value, default, what it means), in the schema's order."""
    yield from _rows(schema(), yaml.safe_load((CHART / "values.yaml").read_text()), "")


def _rows(of: dict[str, Any], default: Any, path: str) -> Iterator[tuple[str, str, str]]:
    whole = path.endswith("resources") or "properties" not in of or path == "settings"
    if path and path != "global":
        yield path, "" if not whole else _shown(default), of.get("description", "")
    if whole:
        return
    for name, one in of["properties"].items():
        below = default.get(name) if isinstance(default, dict) else None
        yield from _rows(one, below, f"{path}.{name}" if path else name)
        if name == "workers":
            lanes = one["additionalProperties"]["properties"]["lanes"]["description"]
            yield "workers.NAME.lanes", "", lanes
            yield (
                "workers.NAME.…",
                "",
                "Anything of `workerDefaults`, for this group. A default group goes by `NAME: null`.",
            )


def _shown(default: Any) -> str:
    if default in (None, "", [], {}):
        return "-" if default in (None, "") else f"`{json.dumps(default)}`"
    return f"`{json.dumps(default) if not isinstance(default, str) else default}`"


def table() -> str:
    """The table, in Markdown."""
    lines = ["| value | default | means |", "| --- | --- | --- |"]
    lines += [f"| `{path}` | {default} | {means} |" for path, default, means in rows()]
    return "\n".join(lines) + "\n"


def readme() -> str:
    """README.md as it should be."""
    before, _, rest = README.read_text().partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


def written(found: dict[str, Any]) -> str:
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(written(schema()))
    README.write_text(readme())
