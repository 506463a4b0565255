"""The commands for a server of yours: check and try."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

from typing import Annotated

import typer

from .commands_calls import Timeout, read_arguments
from .connect import load_settings
from .exits import Exit, end
from .output import Format, Output, print_json, say

Url = Annotated[str, typer.Argument(metavar="URL", help="The server's streamable HTTP endpoint.")]
Protocol = Annotated[str | None, typer.Option(metavar="P", help="Try this protocol alone.")]
Credential = Annotated[
    str | None,
    typer.Option(metavar="REF", help="Where the token is, never the token: env:NAME, file:PATH, exec:[…]."),
]
AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="The address may be private or link-local (loopback always may).")
]
SyncBound = Annotated[
    float | None,
    typer.Option("--sync-bound-s", min=0.001, max=86_400, metavar="S", help="The longest that a blocking call takes."),
]

app = typer.Typer()


@app.command()
def check(
    url: Url,
    *,
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="Judge this tool alone.")] = None,
    protocol: Protocol = None,
    credential: Credential = None,
    allow_private: AllowPrivate = False,
    json_: Annotated[bool, typer.Option("--json", help="One object, check.v1.")] = False,
) -> None:
    """Say what a server is good for, tool by tool.

    Also which protocol to pin, and the lines for the targets file. Nothing is called. MCP servers and A2A agents are
    recognised; an HTTP API has to be declared, and then `targets check NAME` says the same of it.

    Needs no database, no broker, no file. Exits 0 when a tool (the one that --tool names) can be called, else 1.

    \b
    Examples:
      counterfoil check http://127.0.0.1:8765/mcp
      counterfoil check https://reports.example.com/mcp --credential env:REPORTS_TOKEN --tool generate_report
    """
    from .adhoc import entry_of, negotiate, pin
    from .check_view import as_json, is_good, show_server
    from .targets_file import suggested_name

    entry = entry_of(url, credentials=credential, allow_private=allow_private)
    found = negotiate(entry, protocol, tool)
    proposed = None if found.proposed is None else pin(entry, found.proposed.target.protocol)
    if json_:
        print_json(as_json(url, found, proposed))
    else:
        show_server(url, found, proposed, suggested_name(url))
    if found.trouble is not None:
        say(f"{found.trouble.code}: {found.trouble.message}\n  {found.trouble.next_step}")
    end(Exit.OK if is_good(found) else Exit.INTERNAL)


@app.command("try")
def try_(
    url: Url,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="A tool of that server.")],
    arguments: Annotated[str, typer.Argument(metavar="JSON|-", help="Its arguments, a JSON object; - reads stdin.")],
    *,
    protocol: Protocol = None,
    credential: Credential = None,
    sync_bound_s: SyncBound = None,
    allow_private: AllowPrivate = False,
    timeout_s: Timeout = None,
    output: Output = Format.TABLE,
) -> None:
    """Call a tool of any server once, for real.

    Shows the call's life and its receipt.

    Runs on the development stack (started where it isn't up), in the namespace `try`, with a loop in this process.
    Each run is a new call. Exits by the outcome, as `receipt` words it.

    \b
    Examples:
      counterfoil try http://127.0.0.1:8765/mcp generate_report '{"month": "2026-10"}'
      counterfoil try http://127.0.0.1:8765/mcp add '{"a": 1, "b": 2}' --sync-bound-s 30
    """
    from .adhoc import entry_of
    from .trial import run_trial

    given = read_arguments(arguments)
    entry = entry_of(url, credentials=credential, sync_bound_s=sync_bound_s, allow_private=allow_private)
    end(run_trial(load_settings(), entry, protocol, tool, given, timeout_s=timeout_s, output=output))
