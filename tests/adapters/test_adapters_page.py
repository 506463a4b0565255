"""docs/adapters.md says what the profiles say."""

import re
from pathlib import Path

import pytest

from counterfoil.adapters import plugins, registry
from counterfoil.adapters.profile import Lookup, Profile
from counterfoil.workers.targets import load_targets

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "adapters.md").read_text()


def row(profile: Profile) -> str:
    ack = "evidence" if profile.cancel_is_evidence else "an acknowledgement"
    cells = (
        f"`{profile.protocol}`",
        "asks a person" if profile.lookup is Lookup.NONE else "is looked up",
        ack if profile.can_cancel else "no cancel",
        str(profile.reply_replay),
        "fetched" if profile.result_separate else "with the status",
        "yes" if profile.watches_input else "no",
    )
    return f"| {' | '.join(cells)} |"


def test_the_table_of_promises_is_that_of_the_profiles() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| `[a-z0-9.-]+` \|.*\|.*\|.*\|.*\|.*\|$", line)]
    wanted = [row(registry.adapter(protocol).profile) for protocol in registry.PROTOCOLS]
    assert rows[: len(wanted)] == wanted


def test_the_page_names_the_group_that_is_read() -> None:
    assert f'entry-points."{plugins.GROUP}"' in PAGE


EXAMPLES = re.findall(r"```yaml\n(targets:\n.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: re.findall(r"protocol: (\S+)", example)[0])
def test_every_example_of_a_target_can_be_loaded_and_sends(tmp_path: Path, example: str) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text(example)
    targets = load_targets(file)
    for name in targets.names:
        api = targets[name].api("report")
        assert targets[name].objection("report") is None
        assert api is None or api.routes.submit is not None
