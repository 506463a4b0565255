"""The commands of the targets file: add, check, list, explain."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .commands_check import AllowPrivate, Credential, Protocol, SyncBound, Url
from .connect import load_settings
from .exits import Exit, end
from .output import Format, Output, print_facts, print_json, print_table, say

if TYPE_CHECKING:
    from ..workers.target_keys import Key

app = typer.Typer()
targets = typer.Typer(no_args_is_help=True, help="The targets file: which servers the fleet may call.")
app.add_typer(targets, name="targets")

File = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="Else COUNTERFOIL_TARGETS_FILE, else targets.yaml.")
]


def _file(given: Path | None) -> Path:
    return given if given is not None else load_settings().targets_file


@targets.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What calls will name it.")],
    url: Url,
    *,
    protocol: Protocol = None,
    credential: Credential = None,
    qps: Annotated[float | None, typer.Option(min=0.001, max=10_000, metavar="N", help="Requests a second.")] = None,
    sync_bound_s: SyncBound = None,
    allow_private: AllowPrivate = False,
    file: File = None,
) -> None:
    """Write a server into the targets file.

    Negotiates with it and pins the protocol. What stands in the file stays, comments too.

    \b
    Examples:
      counterfoil targets add reports https://reports.example.com/mcp --credential env:REPORTS_TOKEN
      counterfoil targets add sheets http://127.0.0.1:8765/mcp --sync-bound-s 120
    """
    from .adhoc import entry_of, negotiate, pin, target_of
    from .targets_file import add_target, require_free

    path = _file(file)
    require_free(path, name)
    entry = entry_of(url, credentials=credential, qps=qps, sync_bound_s=sync_bound_s, allow_private=allow_private)
    proposed = negotiate(entry, protocol, None).require()
    pinned = pin(entry, proposed.target.protocol)
    add_target(path, name, pinned)
    names = ", ".join(tool.name for tool in proposed.offered[:12])
    print_facts([("target", name), ("file", path), ("protocol", pinned["protocol"]), ("tools", names)])
    objection = target_of(name, pinned).objection("its tools")
    if objection is not None:
        say(f"E_CAPABILITY_UNSUPPORTED: {objection.removeprefix('Not sent: ')}")
    say("Workers read the file when they start: restart those that run.")


@targets.command("check")
def check_(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="This target alone, tool by tool.")] = None,
    *,
    file: File = None,
    output: Output = Format.TABLE,
) -> None:
    """Read the file, then negotiate with each target. Exit 2: faults, with their lines; 1: a target fails.

    With a NAME it says in words what each of its tools is good for, as `check URL` does. Nothing is called: a declared
    HTTP API is asked for work that nobody made, and has to know none.

    \b
    Examples:
      counterfoil targets check
      counterfoil targets check reports
      counterfoil targets check --file /etc/counterfoil/targets.yaml -o json
    """
    from ..workers.targets import load_targets
    from .check_view import show
    from .targets_check import check_targets

    targets = load_targets(_file(file))
    found = check_targets(targets, () if name is None else (name,))
    if name is not None and output is Format.TABLE:
        show(targets[name].endpoint().url, found[0].probe)
        for problem in found[0].problems:
            say(problem)
    elif output is Format.JSON:
        for one in found:
            problems = list(one.problems)
            print_json({"target": one.name, "protocol": one.protocol, "tools": one.tools, "problems": problems})
    else:
        columns = ("TARGET", "PROTOCOL", "TOOLS", "")
        print_table(columns, [(one.name, one.protocol, one.tools, " ".join(one.problems) or "ok") for one in found])
    end(Exit.INTERNAL if any(one.problems for one in found) else Exit.OK)


@targets.command("list")
def list_(*, file: File = None, output: Output = Format.TABLE) -> None:
    """List the targets of the file.

    \b
    Example:
      counterfoil targets list -o json | jq -r .url
    """
    from ..workers.targets import load_targets

    found = load_targets(_file(file))
    rows = []
    for name in found.names:
        target = found[name]
        limit, credential = target.limit, target.credential_for("default")
        rows.append(
            (name, target.endpoint().url, target.protocol, limit.qps, credential, ", ".join(target.tools) or None)
        )
    columns = ("TARGET", "URL", "PROTOCOL", "QPS", "CREDENTIAL", "TOOLS WITH SETTINGS")
    if output is Format.TABLE:
        print_table(columns, rows)
        return
    for row in rows:
        keys = ("target", "url", "protocol", "qps", "credential", "tools")
        print_json(dict(zip(keys, row, strict=True)))


@targets.command()
def explain(
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="As it stands in the file: `poll`, `poll.min_s`.")
    ] = None,
) -> None:
    """Say what a key of the targets file means; without one, list them all.

    \b
    Examples:
      counterfoil targets explain
      counterfoil targets explain wait_budget_s
    """
    from ..workers.target_keys import all_keys, find

    if key is None:
        print_table(("KEY", "AT", "DEFAULT", "MEANS"), [(k.name, k.where, k.default, k.means) for k in all_keys()])
        return
    for number, found in enumerate(find(key)):
        if number:
            print()
        _print_key(found)


def _print_key(key: "Key") -> None:
    print_facts(
        [("key", key.name), ("at", key.where), ("takes", key.kind), ("default", key.default), ("means", key.means)]
    )
