"""The commands of a call's life: submit, get, cancel, list, watch, receipt, ready."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

import sys
from typing import Annotated
from uuid import UUID

import typer

from ..ledger.errors import InputRefused, NoSuchOperation, StillRunning
from ..ledger.states import State
from .connect import CallNode, Fleet, Namespace, Principal, client_of, load_settings
from .exits import Exit, end
from .output import Format, Output, print_json, print_table, say

app = typer.Typer()

_MAX_STDIN_BYTES = 8 * 1024 * 1024
"""Arguments are capped at 1 MiB as canonical text; written with spaces and escapes they may be longer."""

Timeout = Annotated[
    float | None, typer.Option("--timeout", min=0, metavar="S", help="Seconds; then exit 7 (6: a case).")
]


@app.command()
def submit(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A target of the workers' targets file.")],
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="A tool of that target.")],
    arguments: Annotated[str, typer.Argument(metavar="JSON|-", help="Its arguments, a JSON object; - reads stdin.")],
    *,
    call_node: Annotated[
        str, typer.Option(metavar="ID", help="Run + step, as your runtime computes it again after a crash.")
    ],
    wait: Annotated[bool, typer.Option("--wait", help="Wait, print the receipt, exit by its outcome.")] = False,
    timeout_s: Timeout = None,
    namespace: Namespace = "default",
    principal: Principal = "default",
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Hand a call in.

    A repeat with the same call node finds the same operation; with another request it is refused.

    \b
    Examples:
      counterfoil submit reports generate_report '{"month": "2026-10"}' --call-node run-42/step-3
      counterfoil submit reports generate_report - --call-node run-42/step-3 --wait < arguments.json
    """
    from .operation_view import settled, show_operation, show_receipt, unsettled

    if timeout_s is not None and not wait:
        raise InputRefused("--timeout says how long to wait, and nothing waits.", next_step="Add --wait.")
    parsed = read_arguments(arguments)
    with client_of(namespace, fleet, principal) as client:
        operation = client.submit(target, tool, parsed, call_node_id=call_node)
        if not wait:
            show_operation(output, operation)
            return
        try:
            say("waiting for the receipt; Ctrl-C stops the waiting only.")
            receipt = client.wait(call_node, timeout_s)
        except KeyboardInterrupt:
            say("stopped waiting; the operation goes on.")
            end(Exit.INTERRUPTED)
        except StillRunning:
            raise unsettled(client.get(call_node)) from None
        else:
            show_receipt(output, receipt)
            end(settled(receipt, client.get(call_node)))


def read_arguments(given: str) -> dict[str, object]:
    """The arguments of a call, as given or from stdin (`-`). Raises InputRefused (E_ARGUMENTS_…)."""
    return read_object(given, "the arguments")


def read_object(given: str, what: str) -> dict[str, object]:
    """A JSON object, as given or from stdin (`-`). `what` it is, in an error. Raises InputRefused (E_ARGUMENTS_…)."""
    value = read_json(given, what)
    if not isinstance(value, dict):
        raise InputRefused(
            f"{what} must be a JSON object.",
            code="E_ARGUMENTS_INVALID",
            next_step="""Name what is in it: '{"month": "2026-10"}'.""",
        )
    return dict(value)


def read_json(given: str, what: str) -> object:
    """A JSON value, strictly: no key twice, no NaN, nothing that would be sent otherwise than it was written."""
    from ..adapters.strict_json import BadJson, loads

    try:
        return loads(_read_stdin(what) if given == "-" else given.encode("utf-8", "surrogateescape"))
    except BadJson as error:
        raise InputRefused(
            f"{what} can't be read: {error}.",
            code="E_ARGUMENTS_INVALID",
            next_step="""Write JSON, such as '{"month": "2026-10"}', in single quotes for the shell.""",
        ) from None


def _read_stdin(what: str) -> bytes:
    data = sys.stdin.buffer.read(_MAX_STDIN_BYTES + 1)
    if len(data) > _MAX_STDIN_BYTES:
        raise InputRefused(
            f"{what} on stdin: longer than {_MAX_STDIN_BYTES} bytes.",
            code="E_ARGUMENTS_TOO_LARGE",
            next_step="Store the data where the tool can fetch it and pass a reference.",
        )
    return data


@app.command()
def get(
    call_node: Annotated[str | None, typer.Argument(metavar="[CALL_NODE]", help="The call node id.")] = None,
    *,
    key: Annotated[
        str | None, typer.Option("--key", metavar="UUID", help="Its submission key instead, in any namespace.")
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", metavar="ID", help="The server's task id instead, in any namespace.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="TARGET", help="With --task: of this target.")
    ] = None,
    namespace: Namespace = "default",
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Show one operation as it stands, with its open cases.

    What a server's log names, its task id or the submission key, finds it as well; a task id that several bear lists
    them.

    \b
    Examples:
      counterfoil get run-42/step-3
      counterfoil get --task t-17 --target reports
      counterfoil get run-42/step-3 -o json | jq -r .state
    """
    from .operation_view import list_operations, show_operation

    given = [one for one in (call_node, key, task) if one is not None]
    if len(given) != 1 or (target is not None and task is None):
        raise InputRefused(
            "one of call node, --key and --task is wanted; --target goes with --task.",
            next_step="`counterfoil get CALL_NODE`, `get --key UUID` or `get --task ID --target T`.",
        )
    with client_of(namespace, fleet) as client:
        if call_node is not None:
            show_operation(output, client.get(_known(call_node)))
            return
        found = client.find(submission_key=None if key is None else _uuid(key), task_id=task, target=target)
    if not found:
        raise NoSuchOperation(
            f"there is no operation with the {'submission key' if task is None else 'task id'} {given[0][:80]!r}.",
            next_step="Is this the ledger that sent it? `counterfoil list -A` shows what there is.",
        )
    if len(found) == 1:
        show_operation(output, found[0])
    else:
        list_operations(output, found, namespaces=True)


def _uuid(given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        raise InputRefused(
            f"{given[:64]!r} is no submission key.", next_step="It is a UUID; a task id goes to --task."
        ) from None


@app.command()
def cancel(
    call_node: CallNode,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why: it stands in the journal.")] = "",
    namespace: Namespace = "default",
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Ask for a cancel. It is a request: only the receipt says who won. A repeat is the same cancel.

    Exit 8 where it is over already, or can't be cancelled; nothing is changed then.

    \b
    Examples:
      counterfoil cancel run-42/step-3 --reason "wrong month"
      counterfoil cancel run-42/step-3 && counterfoil watch run-42/step-3
    """
    from .operation_view import show_operation

    with client_of(namespace, fleet) as client:
        operation = client.cancel(_known(call_node), reason)
    show_operation(output, operation)
    if operation.outcome is None:
        say("asked for; `counterfoil watch` waits for who wins.")


@app.command("list")
def list_(
    *,
    state: Annotated[
        list[State] | None,
        typer.Option(case_sensitive=False, metavar="STATE", help="Only this state; may be given again."),
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="TARGET", help="Only this target.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="At most so many, the newest first.")] = 50,
    namespace: Namespace = "default",
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of every namespace.")] = False,
    dead: Annotated[
        bool, typer.Option("--dead", help="The fleet's dead letters instead: messages that became none.")
    ] = False,
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """List operations, newest first.

    \b
    Examples:
      counterfoil list --state WORKING --state INPUT_REQUIRED
      counterfoil list -A -o json | jq -r 'select(.cases != []) | .call_node_id'
      counterfoil list --dead
    """
    if dead:
        from .dead_letter_view import list_dead

        if state or target:
            raise InputRefused("a dead letter has no state and no target.", next_step="Give --dead without them.")
        list_dead(load_settings(fleet=fleet), output, limit)
        return
    from .operation_view import list_operations

    with client_of(namespace, fleet) as client:
        found = client.operations(states=state or (), target=target, limit=limit, all_namespaces=all_namespaces)
    list_operations(output, found, namespaces=all_namespaces)
    if not found and output is Format.TABLE:
        say("no operation matches.")


@app.command()
def watch(
    call_node: CallNode,
    *,
    timeout_s: Timeout = None,
    namespace: Namespace = "default",
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Show each change of an operation.

    Ends when its receipt is there, and exits by the outcome. Ctrl-C stops the watching and nothing else.

    \b
    Examples:
      counterfoil watch run-42/step-3
      counterfoil watch run-42/step-3 -o json --timeout 60
    """
    from .operation_view import settled, unsettled
    from .watching import watch_changes

    with client_of(namespace, fleet) as client:
        try:
            operation = watch_changes(client, _known(call_node), output, timeout_s)
        except KeyboardInterrupt:
            say("stopped watching; the operation goes on.")
            end(Exit.INTERRUPTED)
        else:
            receipt = client.receipt(call_node)
            if receipt is None:
                raise unsettled(operation)
            end(settled(receipt, operation))


@app.command()
def receipt(
    call_node: CallNode,
    *,
    verify: Annotated[bool, typer.Option("--verify", help="Compute the digests again; exit 1 if one differs.")] = False,
    namespace: Namespace = "default",
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Show the receipt of a call node. Exit 7 while it is running, 6 while a person is asked.

    \b
    Examples:
      counterfoil receipt run-42/step-3 --verify
      counterfoil receipt run-42/step-3 -o json | jq .result
    """
    from .operation_view import show_receipt, unsettled

    with client_of(namespace, fleet) as client:
        found = client.receipt(_known(call_node))
        if found is None:
            raise unsettled(client.get(call_node))
    problems = found.problems() if verify else None
    show_receipt(output, found, problems)
    if problems:
        say("NOT SOUND: " + "; ".join(problems) + ".")
        end(Exit.INTERNAL)
    if verify:
        say("sound: the digests over the receipt's fields and over the result's exact bytes agree.")


@app.command()
def ready(
    *,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="N", help="At most so many, the oldest first.")
    ] = 100,
    ack: Annotated[bool, typer.Option("--ack", help="Acknowledge what was printed.")] = False,
    namespace: Namespace = "default",
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Print receipts that nobody has acknowledged.

    They are handed out at least once: dedupe by id.

    \b
    Examples:
      counterfoil ready
      counterfoil ready --ack -o json >> taken.jsonl
    """
    with client_of(namespace, fleet) as client:
        # Without --ack this only looks: no lease, so that the consumer whose work it is gets them at once.
        found = client.ready(limit, lease_s=60.0 if ack else 0.0)
        if output is Format.JSON:
            for row in found:
                print_json(row.model_dump(mode="json"))
        elif found:
            columns = ("READY ID", "CALL NODE", "RECEIPT", "DELIVERIES", "SINCE (UTC)")
            rows = [(r.id, r.call_node_id, r.receipt_id, r.deliveries, f"{r.created_at:%m-%d %H:%M:%S}") for r in found]
            print_table(columns, rows)
        if ack:
            # Printed first: a crash in between hands them out again instead of losing them.
            sys.stdout.flush()
            say(f"acknowledged {client.ack([row.id for row in found])}.")
        elif not found and output is Format.TABLE:
            say("nothing is ready.")


def _known(call_node: str) -> str:
    """The call node, or InputRefused for what can't be one: an error about it need not repeat ten kilobytes."""
    from ..ledger.digest import checked_name

    return checked_name("call node", call_node)
