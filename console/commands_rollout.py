"""The commands of roll-out: adapters, canary, shadow."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

from typing import Annotated, Literal, get_args

import typer

from ..ledger.errors import InputRefused
from .access import Reason, checked_reason, ledger_of
from .connect import CallNode, Fleet, Namespace, load_settings
from .output import Format, Output, print_facts, print_json, print_table, say

app = typer.Typer()
adapters = typer.Typer(no_args_is_help=True, help="Protocol versions: open, draining, off.")
canary = typer.Typer(no_args_is_help=True, help="Which part of a tool's call nodes is taken on.")
shadow = typer.Typer(no_args_is_help=True, help="Shadows, compared with what the old path made.")
app.add_typer(adapters, name="adapters")
app.add_typer(canary, name="canary")
app.add_typer(shadow, name="shadow")

ToolPath = Annotated[str, typer.Argument(metavar="TARGET/TOOL", help="A tool of a target: reports/generate_report.")]


# -- protocol versions -------------------------------------------------------------------------------------------------

Protocol = Annotated[str, typer.Argument(metavar="PROTOCOL", help="A protocol version: mcp-2025-11-25.")]


@adapters.command("list")
def adapters_list(*, fleet: Fleet = None, output: Output = Format.TABLE) -> None:
    """List the protocol versions: mode, targets, and what of each is not over.

    \b
    Example:
      counterfoil adapters list
    """
    from ..adapters.registry import known
    from ..ledger.switches import adapters_now

    with ledger_of(fleet) as (database, name), database.begin() as connection:
        found = adapters_now(connection, name, known())
    if output is Format.JSON:
        for one in found:
            print_json(one.model_dump(mode="json"))
        return
    columns = ("PROTOCOL", "MODE", "OPERATIONS", "AUDITS", "TARGETS", "SINCE (UTC)", "REASON")
    rows = [
        (
            *(one.protocol, one.mode, one.operations, one.audits, ", ".join(one.targets) or None),
            None if one.changed_at is None else f"{one.changed_at:%m-%d %H:%M:%S}",
            one.reason,
        )
        for one in found
    ]
    print_table(columns, rows)


@adapters.command("drain")
def adapters_drain(protocol: Protocol, *, reason: Reason, fleet: Fleet = None) -> None:
    """Take no new submits of this version. Everything else goes on; what was never sent ends as refused.

    \b
    Example:
      counterfoil adapters drain mcp-2025-11-25 --reason "reports moves to 2026-07-28"
    """
    _switch_adapter(fleet, protocol, "drain", reason)


@adapters.command("off")
def adapters_off(protocol: Protocol, *, reason: Reason, fleet: Fleet = None) -> None:
    """Switch a version off. Refused while one operation or audit of it is open (E_ADAPTER_IN_USE): drain it first.

    \b
    Example:
      counterfoil adapters off mcp-2025-11-25 --reason "nobody speaks it any more"
    """
    _switch_adapter(fleet, protocol, "off", reason)


@adapters.command("open")
def adapters_open(protocol: Protocol, *, reason: Reason, fleet: Fleet = None) -> None:
    """Take new submits of this version again.

    \b
    Example:
      counterfoil adapters open mcp-2025-11-25 --reason "not yet"
    """
    _switch_adapter(fleet, protocol, "open", reason)


def _switch_adapter(fleet: str | None, protocol: str, mode: Literal["open", "drain", "off"], reason: str) -> None:
    from ..adapters.registry import known
    from ..ledger.switches import set_adapter

    with ledger_of(fleet) as (database, name):
        set_adapter(database, name, protocol, mode, reason=checked_reason(reason), known=known())
    say(f"{protocol} is {'draining' if mode == 'drain' else mode}.")


# -- canary ------------------------------------------------------------------------------------------------------------


@canary.command("list")
def canary_list(*, fleet: Fleet = None, output: Output = Format.TABLE) -> None:
    """List what is set. A tool that is not named is taken on whole.

    \b
    Example:
      counterfoil canary list
    """
    from ..ledger.rollout import list_canaries

    with ledger_of(fleet) as (database, name), database.begin() as connection:
        found = list_canaries(connection, name)
    if output is Format.JSON:
        for one in found:
            print_json(one.model_dump(mode="json"))
    elif found:
        columns = ("TOOL", "TAKEN ON", "THE REST", "SINCE (UTC)", "REASON")
        rows = [
            (
                f"{one.target}/{one.tool}",
                f"{one.percent:g} %",
                "runs as a shadow" if one.shadow else "is not selected",
                f"{one.changed_at:%m-%d %H:%M:%S}",
                one.reason,
            )
            for one in found
        ]
        print_table(columns, rows)
    else:
        say("nothing is set: every tool is taken on whole.")


@canary.command("set")
def canary_set(
    path: ToolPath,
    percent: Annotated[str, typer.Argument(metavar="PERCENT", help="5%: the same call nodes at every percentage.")],
    *,
    as_shadow: Annotated[
        bool, typer.Option("--shadow", help="The rest runs as a shadow. Only for tools with `effects: false`.")
    ] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")] = "",
    fleet: Fleet = None,
) -> None:
    """Take on this part of a tool's call nodes; the others are told that they are not selected (E_NOT_SELECTED).

    What a call node was told at first sight stands, whatever the percentage becomes.

    \b
    Examples:
      counterfoil canary set reports/generate_report 5%
      counterfoil canary set reports/preview 0% --shadow
    """
    from ..ledger.rollout import set_canary

    target, tool = _tool(path)
    part = _percent(percent)
    settings = load_settings(fleet=fleet)
    if as_shadow:
        _require_no_effects(target, tool)
    with ledger_of(settings.fleet) as (database, name):
        known = set_canary(database, name, target, tool, part, shadow=as_shadow, reason=reason.strip())
    rest = "; the others run as shadows" if as_shadow else ""
    say(f"{target}/{tool}: {part:g} % of the call nodes that come from now on{rest}.")
    if not known:
        say(f"No call of {tool!r} was ever negotiated with {target}: is that its name?")


@canary.command("clear")
def canary_clear(
    path: ToolPath,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")] = "",
    fleet: Fleet = None,
) -> None:
    """Take on all call nodes of a tool: 100 %, no shadows.

    \b
    Example:
      counterfoil canary clear reports/generate_report
    """
    from ..ledger.rollout import set_canary

    target, tool = _tool(path)
    with ledger_of(fleet) as (database, name):
        set_canary(database, name, target, tool, 100.0, shadow=False, reason=reason.strip())
    say(f"{target}/{tool}: all call nodes that come from now on.")


def _tool(path: str) -> tuple[str, str]:
    target, mark, tool = path.partition("/")
    if not (mark and target and tool):
        raise InputRefused(f"{path[:64]!r} names no tool.", next_step="Write TARGET/TOOL: reports/generate_report.")
    return target, tool


def _percent(given: str) -> float:
    try:
        return float(given.strip().removesuffix("%").strip())
    except ValueError:
        raise InputRefused(
            f"{given[:32]!r} is no percentage.", code="E_CANARY_PERCENT", next_step="Write a number such as 5%."
        ) from None


def _require_no_effects(target: str, tool: str) -> None:
    """A shadow does what the old path does as well, so it may change nothing (SPEC section 8)."""
    from ..workers.targets import load_targets

    file = load_settings().targets_file
    if load_targets(file)[target].policy(tool).effects:
        raise InputRefused(
            f"{target}/{tool} may change something outside, so it can't run beside the old path.",
            code="E_SHADOW_EFFECTS",
            next_step=f"If it changes nothing, say `effects: false` for it in {file}; else leave out --shadow.",
        )


# -- shadow ------------------------------------------------------------------------------------------------------------

Told = Literal["succeeded", "failed", "cancelled"]


@shadow.command("report")
def shadow_report(
    path: Annotated[str | None, typer.Argument(metavar="[TARGET/TOOL]", help="Only this tool.")] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="At most so many lines.")] = 100,
    namespace: Namespace = "default",
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Compare what the old path told with what the shadows made: same, differs or missing.

    In all, and by call node; those that differ come first. With -o json the first object is the sum.

    \b
    Examples:
      counterfoil shadow report
      counterfoil shadow report reports/preview -o json | jq 'select(.verdict == "differs")'
    """
    from ..ledger.rollout import compare_shadows

    target, tool = (None, None) if path is None else _tool(path)
    with ledger_of(fleet) as (database, _), database.begin() as connection:
        found = compare_shadows(connection, namespace, target=target, tool=tool, limit=limit)
    if output is Format.JSON:
        print_json(found.model_dump(mode="json", exclude={"lines"}))
        for line in found.lines:
            print_json(line.model_dump(mode="json"))
        return
    print_facts([("same", found.same), ("differs", found.differs), ("missing", found.missing)])
    if found.lines:
        print()
        columns = ("CALL NODE", "TOOL", "VERDICT", "OLD PATH", "SHADOW", "WHAT")
        lines = found.lines
        print_table(
            columns, [(x.call_node_id, f"{x.target}/{x.tool}", x.verdict, x.told, x.made, x.why) for x in lines]
        )
    if len(found.lines) < found.same + found.differs + found.missing:
        say(f"{limit} lines shown; --limit shows more.")


@shadow.command("tell")
def shadow_tell(
    call_node: CallNode,
    outcome: Annotated[str, typer.Argument(metavar="OUTCOME", help=f"{', '.join(get_args(Told))}.")],
    result: Annotated[
        str | None, typer.Argument(metavar="[JSON|-]", help="Its result, as a receipt's would be; - reads stdin.")
    ] = None,
    *,
    namespace: Namespace = "default",
    fleet: Fleet = None,
) -> None:
    """Tell what the old path made of a call node that also ran as a shadow. Once: what was told first stands.

    \b
    Examples:
      counterfoil shadow tell run-42/step-3 succeeded '{"rows": 3}'
      counterfoil shadow tell run-42/step-3 failed
    """
    from ..ledger.rollout import NOTHING_TOLD, TOLD_OUTCOMES, tell_shadow
    from .commands_calls import read_json

    told = next((one for one in TOLD_OUTCOMES if one == outcome.lower()), None)
    if told is None:
        raise InputRefused(
            f"{outcome[:32]!r} is no outcome that the old path can have.",
            next_step=f"There is: {', '.join(TOLD_OUTCOMES)}.",
        )
    value = NOTHING_TOLD if result is None else read_json(result, "the result")
    with ledger_of(fleet) as (database, _), database.begin() as connection:
        tell_shadow(connection, namespace, call_node, told, value)
    say("kept.")
