"""The commands of people: cases and their verdicts, questions and their answers."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` takes 0.2 s instead of 1 s

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, cast
from uuid import UUID

import typer

from ..ledger.errors import InputRefused, NoSuchOperation
from .access import Actor, Reason, Yes, confirm, desk_of, ledger_of
from .connect import CallNode, Fleet, Namespace, client_of
from .exits import Exit, end
from .output import Format, Output, print_json, say

if TYPE_CHECKING:
    from ..ledger.events import Verdict
    from ..ledger.people import CaseView, InputView
    from ..workers.desk import Desk

app = typer.Typer()
cases = typer.Typer(no_args_is_help=True, help="Questions that only a person can settle.")
inputs = typer.Typer(no_args_is_help=True, help="Questions of tools, and people's answers.")
app.add_typer(cases, name="cases")
app.add_typer(inputs, name="inputs")

Anywhere = Annotated[
    str | None, typer.Option("--namespace", "-n", metavar="NAME", help="Only of this namespace; else of all.")
]
Limit = Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="At most so many, the oldest first.")]
Target = Annotated[str | None, typer.Option("--target", metavar="TARGET", help="Only of this target.")]
Code = Annotated[str | None, typer.Option("--code", metavar="E_CODE", help="Only with this code.")]
CaseOrNode = Annotated[str, typer.Argument(metavar="CASE|CALL_NODE", help="A case's id, or its call node.")]


# -- cases -------------------------------------------------------------------------------------------------------------


@cases.command("list")
def cases_list(
    *,
    target: Target = None,
    code: Code = None,
    each: Annotated[bool, typer.Option("--each", help="One line a case.")] = False,
    limit: Limit = 100,
    namespace: Anywhere = None,
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """List open cases: one line for one outage, by target and code, with how many it holds.

    \b
    Examples:
      counterfoil cases list
      counterfoil cases list --target reports --code E_AUTH_EXPIRED --each -o json | jq -r .case_id
    """
    from ..ledger.outages import list_outages
    from .case_view import list_groups

    with ledger_of(fleet) as (database, name), database.begin() as connection:
        found = list_outages(connection, name, namespace=namespace, target=target, code=code, each=each, limit=limit)
    if found or output is Format.JSON:
        list_groups(output, found)
    else:
        say("no case is open.")


@cases.command("show")
def cases_show(
    case: CaseOrNode, *, namespace: Namespace = "default", fleet: Fleet = None, output: Output = Format.TABLE
) -> None:
    """Show a case: what the server said, side by side, the verdicts that are safe, and the words to search for.

    \b
    Examples:
      counterfoil cases show run-42/step-3
      counterfoil cases show 01936f0e-0000-7000-8000-000000000001 -o json | jq .offered
    """
    from .case_view import show_case

    with desk_of(fleet) as desk:
        for number, view in enumerate(_views(desk, case, namespace, fleet)):
            if number and output is Format.TABLE:
                print()
            show_case(output, view)


def _views(desk: "Desk", case: str, namespace: str, fleet: str | None) -> list["CaseView"]:
    """The case of this id, or the open ones of this call node (whose id may look like a case's)."""
    missing: InputRefused | None = None
    if (case_id := _uuid(case)) is not None:
        try:
            return [desk.case(case_id)]
        except InputRefused as error:
            if error.code != "E_NO_SUCH_CASE":
                raise
            missing = error
    with client_of(namespace, fleet) as client:
        try:
            operation = client.get(case)
        except NoSuchOperation as error:
            raise missing or error from None
    found = [desk.case(one.id) for one in operation.cases if one.closed_at is None]
    if not found:
        raise InputRefused(
            f"call node {case!r} has no open case.",
            code="E_NO_CASE",
            next_step="`counterfoil cases list` shows what waits; `counterfoil story` tells how it went.",
        )
    return found


def _uuid(given: str) -> UUID | None:
    try:
        return UUID(given)
    except ValueError:
        return None


@cases.command("settle")
def cases_settle(
    words: Annotated[
        list[str], typer.Argument(metavar="[CASE|CALL_NODE] VERDICT", help="bind, accept, never_created or give_up.")
    ],
    *,
    reason: Reason,
    actor: Actor,
    second: Annotated[
        str | None, typer.Option("--second", metavar="NAME", help="The second person who looked at it.")
    ] = None,
    task: Annotated[str | None, typer.Option("--task", metavar="ID", help="The task, for `bind`.")] = None,
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="N", help="As `cases show` told; refused if it moved (E_CASE_CHANGED)."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every open case of one target and code.")] = False,
    target: Annotated[str | None, typer.Option("--target", metavar="TARGET", help="With --all.")] = None,
    code: Annotated[str | None, typer.Option("--code", metavar="E_CODE", help="With --all.")] = None,
    yes: Yes = False,
    namespace: Namespace = "default",
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Settle a case. Nothing is ever sent again by a verdict.

    Without --version it counts for the case as it is now. With --all it asks back; what is refused of many is listed,
    and the command exits 6.

    \b
    Examples:
      counterfoil cases settle run-42/step-3 bind --task t-17 --actor ann --reason "found it in the server's log"
      counterfoil cases settle run-42/step-3 give_up --actor ann --second ben --reason "the server was wiped"
      counterfoil cases settle --all --target reports --code E_AUTH_EXPIRED bind --actor ann --reason "token renewed"
    """
    verdict = _verdict(words[-1])
    if every:
        _settle_all(
            words, verdict, target, code, reason=reason, actor=actor, second=second, yes=yes, fleet=fleet, output=output
        )
        return
    if len(words) != 2 or target is not None or code is not None:
        raise InputRefused(
            "one case and one verdict are wanted.",
            next_step="`cases settle CASE VERDICT`, or `cases settle --all --target T --code E_… VERDICT`.",
        )
    from .operation_view import show_operation

    with desk_of(fleet) as desk:
        view = _one(_views(desk, words[0], namespace, fleet))
        seen = view.version if version is None else version
        operation = desk.settle(
            view.case.id, verdict, actor=actor, reason=reason, version=seen, second=second, task_id=task
        )
    show_operation(output, operation)


def _verdict(given: str) -> "Verdict":
    from .case_view import VERDICTS

    word = given.lower().replace("-", "_")
    if word not in VERDICTS:
        raise InputRefused(
            f"{given[:32]!r} is no verdict.",
            code="E_VERDICT_NOT_OFFERED",
            next_step=f"There is: {', '.join(VERDICTS)}; `counterfoil cases show` tells which of them the case offers.",
        )
    return cast("Verdict", word)


def _one(views: Sequence["CaseView"]) -> "CaseView":
    if len(views) > 1:
        ids = ", ".join(f"{view.case.id} ({view.case.code})" for view in views)
        raise InputRefused(f"{len(views)} cases are open there: {ids}.", next_step="Name one by its id.")
    return views[0]


def _settle_all(
    words: Sequence[str],
    verdict: "Verdict",
    target: str | None,
    code: str | None,
    *,
    reason: str,
    actor: str,
    second: str | None,
    yes: bool,
    fleet: str | None,
    output: Format,
) -> None:
    from ..ledger.outages import list_outages

    if len(words) != 1 or target is None or code is None:
        raise InputRefused(
            "--all takes one target and one code.",
            next_step="Write `cases settle --all --target T --code E_… VERDICT`; `cases list` shows both.",
        )
    with ledger_of(fleet) as (database, name), database.begin() as connection:
        count = sum(group.count for group in list_outages(connection, name, target=target, code=code))
    if not count:
        raise InputRefused(
            f"no case of {target[:64]!r} with {code[:64]} is open.",
            code="E_NO_CASE",
            next_step="`counterfoil cases list` shows what waits.",
        )
    confirm(
        f"Settle {count} cases of {target} with {code} as {verdict}?", yes=yes, what=f"{count} cases would be settled"
    )
    with desk_of(fleet) as desk:
        done = desk.settle_all(target, code, verdict, actor=actor, reason=reason, second=second)
    if output is Format.JSON:
        refused = [{"case_id": str(id_), "code": why} for id_, why in done.refused]
        print_json({"settled": done.settled, "refused": refused})
    else:
        print(f"settled  {done.settled}")
        for id_, why in done.refused:
            print(f"refused  {id_}  {why}")
    end(Exit.NEEDS_PERSON if done.refused else Exit.OK)


# -- questions ---------------------------------------------------------------------------------------------------------

Round = Annotated[
    int | None, typer.Option("--round", min=1, metavar="N", help="Which question; else the one that is open.")
]


@inputs.command("list")
def inputs_list(
    *, limit: Limit = 100, namespace: Anywhere = None, fleet: Fleet = None, output: Output = Format.TABLE
) -> None:
    """List questions that wait for an answer.

    \b
    Examples:
      counterfoil inputs list
      counterfoil inputs list -o json | jq -r .message
    """
    from ..ledger.people import list_inputs
    from .case_view import list_questions

    with ledger_of(fleet) as (database, name), database.begin() as connection:
        found = list_inputs(connection, name, namespace=namespace, limit=limit)
    if found or output is Format.JSON:
        list_questions(output, found)
    else:
        say("no question waits.")


@inputs.command("show")
def inputs_show(
    call_node: CallNode,
    *,
    number: Round = None,
    namespace: Namespace = "default",
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Show a question, and the schema that an answer has to fit.

    \b
    Example:
      counterfoil inputs show run-42/step-3
    """
    from .case_view import show_question

    show_question(output, _question(call_node, number, namespace, fleet))


@inputs.command("answer")
def inputs_answer(
    call_node: CallNode,
    content: Annotated[str, typer.Argument(metavar="JSON|-", help="The answer, a JSON object; - reads stdin.")],
    *,
    actor: Actor,
    number: Round = None,
    namespace: Namespace = "default",
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Answer a question, once. It has to fit the question's schema (E_INPUT_SCHEMA).

    \b
    Examples:
      counterfoil inputs answer run-42/step-3 '{"approve": true}' --actor ann
      counterfoil inputs answer run-42/step-3 - --actor ann < answer.json
    """
    from .commands_calls import read_object

    said = read_object(content, "the answer")
    _reply(_question(call_node, number, namespace, fleet), "accept", said, actor=actor, fleet=fleet, output=output)


@inputs.command("decline")
def inputs_decline(
    call_node: CallNode,
    *,
    actor: Actor,
    dismiss: Annotated[
        bool, typer.Option("--dismiss", help="Say that it was dismissed (`cancel`) instead of declined.")
    ] = False,
    number: Round = None,
    namespace: Namespace = "default",
    fleet: Fleet = None,
    output: Output = Format.TABLE,
) -> None:
    """Decline a question: the tool is told no, and goes on as it likes.

    \b
    Example:
      counterfoil inputs decline run-42/step-3 --actor ann
    """
    action: Literal["decline", "cancel"] = "cancel" if dismiss else "decline"
    _reply(_question(call_node, number, namespace, fleet), action, None, actor=actor, fleet=fleet, output=output)


def _reply(
    asked: "InputView",
    action: Literal["accept", "decline", "cancel"],
    content: dict[str, object] | None,
    *,
    actor: str,
    fleet: str | None,
    output: Format,
) -> None:
    from .case_view import show_question

    with desk_of(fleet) as desk:
        show_question(output, desk.answer(asked.operation_id, asked.number, action, content, actor=actor))
    say("kept; a worker sends it on.")


def _question(call_node: str, number: int | None, namespace: str, fleet: str | None) -> "InputView":
    """The question that is meant. Raises NoSuchOperation, InputRefused (E_NO_SUCH_ROUND)."""
    from ..ledger.people import get_input
    from ..ledger.reads import get_operation

    with ledger_of(fleet) as (database, _), database.begin() as connection:
        operation = get_operation(connection, namespace, call_node)
        if number is not None:
            return get_input(connection, operation.id, number)
        # `input_round` is the last one's number, and there are 50 at most.
        rounds = [get_input(connection, operation.id, one) for one in range(1, operation.input_round + 1)]
    waiting = [one for one in rounds if one.state == "open"]
    if not waiting:
        raise InputRefused(
            f"call node {call_node!r} is {operation.state} and waits for no answer.",
            code="E_NO_SUCH_ROUND",
            next_step="`counterfoil inputs list` shows what waits.",
        )
    if len(waiting) > 1:
        numbers = ", ".join(str(one.number) for one in waiting)
        raise InputRefused(f"questions {numbers} wait there.", next_step="Name one: --round N.")
    return waiting[0]
