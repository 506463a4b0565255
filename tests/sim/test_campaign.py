"""Where a campaign could lie: each of these must end it with a failure."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from . import __main__ as campaign
from . import mutants
from .families import FAMILIES
from .jobs import OF_A, OF_B, jobs, repeats
from .shrink import shrink
from .tally import PAIRS, REQUIRED, Tally

OPTIONS = campaign.Options(n=4, quick=False, seed=None, family="", tier="A", replay="", report=False)
KILLED = {"mutant": "m", "killed": True, "why": "a_check: because"}


def _said(traces: list[str], **more: Any) -> dict[str, Any]:
    return {
        "traces": traces,
        "left": [],
        "runs": len(traces),
        "moves": 9,
        "waits": 0,
        "reached": {},
        "pairs": [],
        "failed": None,
    } | more


def _whole() -> Tally:
    """A campaign that has seen everything."""
    tally = Tally()
    pairs = [[str(number), ""] for number in range(PAIRS)]
    tally.add("A", "f", "A0", _said(["a", "b", "c", "d"], reached=dict.fromkeys(REQUIRED, 1), pairs=pairs))
    tally.add("B", "f", "B0", _said(["a"]))
    return tally


def _judged(tally: Tally, wrong: list[str] | None = None, killed: bool = True) -> int:
    return campaign.judge(replace(OPTIONS), tally, wrong or [], [KILLED | {"killed": killed}])


def test_a_campaign_that_has_seen_everything_is_good(capsys: pytest.CaptureFixture[str]) -> None:
    assert _judged(_whole()) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    states = len(REQUIRED)
    assert last.startswith(f"distinct=4 tier_b=1 violations=0 mutants=1/1 sometimes={states}/{states} per_s=")


def test_an_ordering_that_is_played_twice_counts_once(capsys: pytest.CaptureFixture[str]) -> None:
    tally = _whole()
    tally.traces["A"].discard("d")
    tally.add("A", "f", "A1", _said(["a", "b", "c", "a", "b", "c"]))
    assert tally.runs["A"] == 10
    assert _judged(tally) == 1
    assert "ONLY 3 distinct orderings of tier A" in capsys.readouterr().err


def test_statements_have_orderings_of_their_own_to_reach() -> None:
    tally = _whole()
    tally.traces["B"].clear()
    assert campaign.judge(replace(OPTIONS, n=5), tally, [], [KILLED]) == 1


@pytest.mark.parametrize("what", REQUIRED)
def test_a_rare_state_that_is_never_reached_fails_it(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    tally = _whole()
    del tally.reached[what]
    assert _judged(tally) == 1
    assert f"NEVER REACHED {what}" in capsys.readouterr().err


def test_too_few_pairs_of_moves_fail_it() -> None:
    tally = _whole()
    tally.pairs.pop()
    assert _judged(tally) == 1


def test_a_mutant_that_lives_fails_it() -> None:
    assert _judged(_whole(), killed=False) == 1


def test_a_seed_that_went_another_way_the_second_time_fails_it() -> None:
    assert _judged(_whole(), wrong=["NOT THE SAME AGAIN: seed 7 of '2026 blind' in tier A"]) == 1


def test_a_run_that_broke_fails_it() -> None:
    tally = _whole()
    tally.add("A", "f", "A0", _said([], failed={"family": "f", "broke": "KeyError: 'x'"}))
    assert _judged(tally) == 1


def test_a_violation_is_kept_as_a_file_that_plays_it_again(tmp_path: Path) -> None:
    failed = {
        "family": "2026 blind",
        "tier": "A",
        "choices": {"move 3": 1},
        "violations": ["no_orphan: run/1"],
        "story": [],
    }
    campaign.keep(failed, tmp_path)
    campaign.keep(failed | {"choices": {"move 4": 1}}, tmp_path)
    kept = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("no_orphan_*.json"))]
    assert {tuple(one["choices"]) for one in kept} == {("move 3",), ("move 4",)}


# -- what is played --------------------------------------------------------------------------------------------------


def test_it_ends_where_nothing_new_comes_any_more() -> None:
    tally = Tally()
    for played, (tier, told) in enumerate(jobs(tally, {"A": 1000, "B": 0})):
        tally.add(tier, told["family"], "A0", _said(["always the same"]))
        assert played < 10 * len(OF_A)
    assert len(tally.traces["A"]) == 1


def test_another_day_it_goes_on_behind_what_was_played(tmp_path: Path) -> None:
    """Seeds that were played already would bring nothing; nor may what was found be counted anew."""
    tally = Tally()
    tally.add("A", OF_A[0], "A0", _said(["00000000000000aa", "00000000000000ab"], reached={"x": 2}, pairs=[["a", "b"]]))
    tally.add("B", OF_B[0], "B0", _said(["00000000000000aa"]))
    tally.save(tmp_path)
    again = Tally()
    again.load(tmp_path)
    assert (again.traces, again.runs, again.reached, again.pairs) == (
        tally.traces,
        tally.runs,
        tally.reached,
        tally.pairs,
    )
    begun = {(tier, told["family"]): told["seeds"][0] for tier, told in _first_round(again)}
    assert begun["A", OF_A[0]] == 2
    assert begun["B", OF_B[0]] == 1
    assert begun["A", OF_A[1]] == 0


def _first_round(tally: Tally) -> list[tuple[str, dict[str, Any]]]:
    waiting = jobs(tally, {"A": 1000, "B": 1000})
    return [next(waiting) for _ in range(len(OF_A) + len(OF_B))]


def test_fifty_runs_of_both_tiers_are_played_once_more() -> None:
    again = repeats(50)
    assert len(again) == 50
    assert {tier for tier, _ in again} == {"A", "B"}
    assert len({(tier, str(told)) for tier, told in again}) == 50
    assert all(told["family"] in FAMILIES for _, told in again)


def test_shrinking_leaves_what_it_takes_and_nothing_else() -> None:
    drawn = {f"move {number}": 3 for number in range(60)} | {"w1 crashes": 1, "late": 6}
    small = shrink(drawn, lambda given: given.get("w1 crashes") == 1 and given.get("late", 0) >= 3)
    assert small == {"w1 crashes": 1, "late": 3}


# -- mutants ---------------------------------------------------------------------------------------------------------


def test_every_mutant_is_a_patch_of_the_product_as_it_is() -> None:
    found = mutants.load_mutants()
    assert len(found) >= 50
    assert len({mutant.name for mutant in found}) == len(found)
    assert list(mutants.check_all_apply(found)) == []
    assert not [mutant.name for mutant in found for family in mutant.by if family not in {*FAMILIES, "probes"}]


def test_a_mutant_whose_text_is_gone_is_no_mutant(tmp_path: Path) -> None:
    """It would be the product itself, and a lucky violation elsewhere would be taken for its death."""
    module = tmp_path / "pristine" / "counterfoil" / "ledger" / "rules.py"
    module.parent.mkdir(parents=True)
    module.write_text("a = 1\na = 1\nb = 2\n")
    for search in ("gone", "a = 1"):
        patched = mutants.Mutant("m", (("ledger/rules.py", search, "x", ""),), ("2026 blind",))
        with pytest.raises(mutants.DoesNotApply):
            mutants.make(patched, tmp_path / "pristine", tmp_path / search)
    mutants.make(
        mutants.Mutant("m", (("ledger/rules.py", "b = 2", "b = 3", ""),), ("2026 blind",)),
        tmp_path / "pristine",
        tmp_path / "mutant",
    )
    assert (tmp_path / "mutant" / "counterfoil" / "ledger" / "rules.py").read_text() == "a = 1\na = 1\nb = 3\n"
    assert module.read_text() == "a = 1\na = 1\nb = 2\n"


def test_what_noticed_a_mutant_is_tried_first_only_if_it_is_tried_at_all() -> None:
    mutant = mutants.Mutant("m", (), ("2026 blind", "desk"), seeds=3)
    assert replace(mutant, hint=("desk", 2)).tries()[0] == ("desk", 2)
    for elsewhere in (("desk", 3), ("2026 unique", 0)):
        assert replace(mutant, hint=elsewhere).tries() == mutant.tries()
    assert len(mutant.tries()) == 6
