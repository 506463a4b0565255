"""The desk at which people reply to tools and settle cases (SPEC sections 4 and 7).

It consumes evidence first, as every transition does, so it needs what a worker knows: the targets and their adapters.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias
from uuid import UUID

from ..ledger import people, reads, sessions
from ..ledger.database import Database
from ..ledger.decision import Refusal
from ..ledger.digest import canonical_json, checked_name, sha256
from ..ledger.errors import CounterfoilError, InputRefused
from ..ledger.events import Event, ReplyGiven, Result, Verdict, VerdictGiven
from ..ledger.people import CaseView, InputView
from ..ledger.records import ToolOperation
from ..ledger.rows import Row, read_rows
from ..ledger.states import Lane
from ..ledger.store import Store
from ..ledger.transition import Transitions
from ..ledger.work import Applied, Item
from . import interpret, schemas
from .catalog import Catalog
from .sessions import Sessions
from .targets import Targets
from .vault import Vault, VaultError

Action: TypeAlias = Literal["accept", "decline", "cancel"]

MAX_REPLY_BYTES = 256 * 1024
MAX_REASON_CHARS = 500
BULK_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Bulk:
    """What became of a verdict on many: how many were settled, and why others were not (case, code)."""

    settled: int
    refused: tuple[tuple[UUID, str], ...]


class Desk:
    """Replies and verdicts of one fleet. Always in the ledger's current epoch; safe to share between threads."""

    def __init__(self, database_url: str, targets: Targets, *, fleet: str = "main", vault: Vault | None = None) -> None:
        self._database = Database(database_url, fleet=fleet)
        self._fleet = fleet
        self._vault = vault
        self._catalog = Catalog(targets, self._load_descriptors, Sessions(self))

    def close(self) -> None:
        """Close the connections."""
        self._database.dispose()

    # -- questions ---------------------------------------------------------------------------------------------------

    def inputs(self, namespace: str | None = None, limit: int = 100) -> list[InputView]:
        """Questions that wait for a reply, the oldest first."""
        with self._database.autocommit() as connection:
            return people.list_inputs(connection, self._fleet, namespace=namespace, limit=limit)

    def input(self, operation_id: UUID, number: int) -> InputView:
        """One round. Raises InputRefused (E_NO_SUCH_ROUND)."""
        with self._database.autocommit() as connection:
            return people.get_input(connection, operation_id, number)

    def answer(
        self,
        operation_id: UUID,
        number: int,
        action: Action,
        content: Mapping[str, object] | None = None,
        *,
        actor: str,
    ) -> InputView:
        """Reply to a round, once. `content` must fit the question's schema when `action` is accept.

        Raises InputRefused with E_NO_SUCH_ROUND, E_INPUT_ROUND_CLOSED, E_INPUT_SCHEMA, E_INPUT_TOO_LARGE or
        E_FOUR_EYES; nothing is changed then, but for a line in the journal.
        """
        actor = checked_name("actor", actor)
        asked = self.input(operation_id, number)
        reply = _reply(asked, action, content)
        row = self._row(operation_id)
        if row.operation.policy.four_eyes and actor == row.principal:
            raise InputRefused(
                f"{actor!r} asked for this call, and its policy wants somebody else to answer.",
                code="E_FOUR_EYES",
                next_step="Let another person answer.",
            )
        self._speak(operation_id, ReplyGiven(number, reply, actor), actor)
        return self.input(operation_id, number)

    # -- cases -------------------------------------------------------------------------------------------------------

    def cases(
        self, namespace: str | None = None, target: str | None = None, code: str | None = None, limit: int = 100
    ) -> list[CaseView]:
        """Open cases, the oldest first."""
        with self._database.autocommit() as connection:
            return people.list_cases(
                connection,
                self._fleet,
                namespace=namespace,
                target=target,
                code=code,
                limit=limit,
                policy_of=self._catalog.policy,
            )

    def case(self, case_id: UUID) -> CaseView:
        """One case, with its evidence and the verdicts it offers. Raises InputRefused (E_NO_SUCH_CASE)."""
        with self._database.autocommit() as connection:
            return people.get_case(connection, case_id, policy_of=self._catalog.policy)

    def settle(
        self,
        case_id: UUID,
        verdict: Verdict,
        *,
        actor: str,
        reason: str,
        version: int,
        second: str | None = None,
        task_id: str | None = None,
    ) -> ToolOperation:
        """Settle a case. `version` is the one of the case that the person saw.

        Raises InputRefused with E_NO_SUCH_CASE, E_CASE_CLOSED, E_CASE_CHANGED (look again), E_VERDICT_NOT_OFFERED,
        E_VERDICT_INCOMPLETE, E_TASK_ID_REUSED or E_REASON; nothing is changed then, but that evidence which waited has
        been read.
        """
        view = self.case(case_id)
        if view.case.closed_at is not None:
            raise InputRefused(
                f"case {case_id} is closed: {view.case.closed_by} settled it.",
                code="E_CASE_CLOSED",
                next_step="`counterfoil cases list` shows what waits.",
            )
        said = replace(
            _said(verdict, actor, reason, second),
            task_id=task_id,
            result=self._kept(view) if verdict == "accept" else None,
            seen_seq=version,
        )
        self._speak(view.operation.id, said, actor)
        with self._database.autocommit() as connection:
            return reads.get_operation_by_id(connection, view.operation.id)

    def settle_all(
        self, target: str, code: str, verdict: Verdict, *, actor: str, reason: str, second: str | None = None
    ) -> Bulk:
        """One verdict on every open case of a target with this code, each in its own transaction. A bind reads the
        known task on. Raises InputRefused for a bad actor, reason or second person: that concerns all of them."""
        _said(verdict, actor, reason, second)
        settled, refused = 0, list[tuple[UUID, str]]()
        for view in self.cases(target=target, code=code, limit=BULK_LIMIT):
            try:
                self.settle(
                    view.case.id,
                    verdict,
                    actor=actor,
                    reason=reason,
                    version=view.version,
                    second=second,
                    task_id=view.operation.task_id,
                )
            except CounterfoilError as error:
                refused.append((view.case.id, error.code))
            else:
                settled += 1
        return Bulk(settled, tuple(refused))

    def _kept(self, view: CaseView) -> Result | None:
        """The result that a person may accept although it breaks its schema."""
        with self._database.autocommit() as connection:
            kept = people.kept_result(connection, view.operation.id)
        return None if kept is None else interpret.accepted(*kept)

    # -- speaking ----------------------------------------------------------------------------------------------------

    def _row(self, operation_id: UUID) -> Row:
        with self._database.autocommit() as connection:
            (row,) = read_rows(connection, [operation_id], self._catalog.policy, lock=False)
        self._catalog.sessions.preload([row.operation.session_id])
        return row

    def _speak(self, operation_id: UUID, event: Event, actor: str) -> Applied:
        """One transition in the ledger's current epoch. The last answer is the one to what was said."""
        self._row(operation_id)
        transitions = Transitions(
            self._database,
            self._fleet,
            None,
            interpret=self._catalog.read_evidence,
            policy_of=self._catalog.policy,
            actor=actor,
        )
        (applied,) = transitions.apply([Item(operation_id, Lane.DOOR, (event,))])
        answer = applied.answers[-1] if applied.answers else None
        if isinstance(answer, Refusal):
            raise InputRefused(f"{answer.why}.", code=answer.code, next_step=_NEXT.get(answer.code, _LOOK))
        if applied.failed:
            raise InputRefused(
                "what was said could not be written.", code="E_NOT_WRITTEN", next_step="Look at the logs; try again."
            )
        return applied

    # -- what the catalog asks for -----------------------------------------------------------------------------------

    def load(self, ids: Iterable[UUID]) -> dict[UUID, bytes]:
        """Open sessions by id, for `Sessions`. Raises VaultError where no key opens one."""
        if self._vault is None:
            raise VaultError(
                "a session has to be opened, and this process has no keys.",
                next_step="Set COUNTERFOIL_KEYS and start again.",
            )
        vault = self._vault
        return {one.id: vault.open(one.sealed) for one in sessions.read_sessions(self._database, ids)}

    def _load_descriptors(self, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        return Store(self._database, self._fleet, 0, self._catalog.policy).descriptors(digests)


_LOOK = "`counterfoil cases show` tells how it stands."
_NEXT = {
    "E_CASE_CHANGED": "Look at the case again and decide on what it shows now.",
    "E_INPUT_ROUND_CLOSED": "`counterfoil inputs list` shows what waits.",
    "E_VERDICT_INCOMPLETE": "Name the task: --task ID.",
    "E_TASK_ID_REUSED": "`counterfoil get --task ID` shows who holds it.",
}


def _reply(asked: InputView, action: Action, content: Mapping[str, object] | None) -> bytes:
    """The exact JSON that goes to the server, checked against the question's own schema."""
    if action != "accept":
        return canonical_json({"action": action})
    body = canonical_json({"action": "accept", "content": dict(content or {})})
    if len(body) > MAX_REPLY_BYTES:
        raise InputRefused(
            f"the reply is longer than {MAX_REPLY_BYTES} bytes.", code="E_INPUT_TOO_LARGE", next_step="Say it shorter."
        )
    schema = canonical_json(asked.request_schema if isinstance(asked.request_schema, dict) else {})
    if sha256(schema).hex() != asked.schema_digest:
        raise InputRefused(
            "the question's schema is not the one that was pinned.",
            code="E_INPUT_SCHEMA",
            next_step="Look at the question again.",
        )
    problems = schemas.check(schema, json.loads(body)["content"])
    if problems:
        told = "; ".join(f"{problem.path or '/'} {problem.message}" for problem in problems[:3])
        raise InputRefused(
            f"the reply breaks the question's schema: {told}.",
            code="E_INPUT_SCHEMA",
            next_step="`counterfoil inputs show` prints the schema.",
        )
    return body


def _said(verdict: Verdict, actor: str, reason: str, second: str | None) -> VerdictGiven:
    """Who says what, and why, as far as it hangs on no case."""
    if not reason.strip():
        raise InputRefused(
            "a verdict needs a reason.", code="E_REASON", next_step="Say what you saw: whoever reads the journal asks."
        )
    if second is not None and checked_name("second actor", second) == actor:
        raise InputRefused(
            "the second person is the first one.", code="E_FOUR_EYES", next_step="Name somebody else, or nobody."
        )
    kept = reason.replace("\0", "")[:MAX_REASON_CHARS]
    return VerdictGiven(verdict, checked_name("actor", actor), kept, second_actor=second)
