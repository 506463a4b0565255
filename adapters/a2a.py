"""A2A 1.0 over JSON-RPC: what to send. What answers mean is in `a2a_answers.py`, what a card says in `a2a_card.py`.

An agent has skills where a tools server has tools: a call's tool is the id of a skill in the agent's card. Its
arguments are one A2A part (`{"text": …}`, `{"data": …}`, …) or `{"parts": […]}`, and leave byte for byte as the
message's parts.

The submission key travels as `messageId`, and as `contextId` where the target declares `lookup: {tool: ListTasks}`: a
client may choose one, an agent keeps it or refuses the message. A lost submit is asked for by it: not every agent
lists its tasks, and only its owner can say why an empty list allows a second submit.
"""

from dataclasses import replace
from typing import TypeAlias

from . import a2a_answers as answers
from . import a2a_card as cards
from . import strict_json
from .answers import trouble
from .contract import (
    MAX_REQUESTS_PER_EXCHANGE,
    Answered,
    Call,
    Effect,
    Endpoint,
    Exchange,
    InputReply,
    RemoteTask,
    Reply,
    Request,
    Search,
)
from .fields import member
from .jsonrpc import JsonRpc, NoResponse, read
from .outcomes import (
    Busy,
    CancelOutcome,
    Hint,
    LookupOutcome,
    NeedsInput,
    Negotiation,
    NoAccess,
    NoSuchVerb,
    Observation,
    ReplyOutcome,
    SubmitOutcome,
)
from .profile import BucketScope, Lookup, Profile, ReplyReplay
from .strict_json import Json

PROTOCOL = cards.PROTOCOL
LOOKUP = "ListTasks"
"""What a target names as its lookup where its agent lists tasks by context."""

SUBMISSION_KEY = "dev.counterfoil/submission-key"
SKILL = "dev.counterfoil/skill"
"""In a message's metadata: A2A has no place of its own for the skill that is meant."""

PROFILE = Profile(
    protocol=PROTOCOL,
    # An agent may keep a client's contextId and may list tasks: its owner says so, the protocol doesn't. A messageId is
    # no key: the same one sent twice made two tasks.
    lookup=Lookup.NONE,
    absence=None,
    lookup_tool=LOOKUP,
    # Only what the dispatcher says before any of the agent's code runs. The others (-32600, -32602, -32004, -32005) are
    # errors that the agent's own code may raise after it has begun.
    definite_codes=frozenset({-32700, -32601, answers.VERSION_NOT_SUPPORTED}),
    not_processed_statuses=frozenset(),
    can_cancel=True,
    # `canceled` was said, readable, and then overwritten by `completed` with its effect done.
    cancel_is_evidence=False,
    # The same reply sent twice ran twice; an agent need not heed the messageId.
    reply_replay=ReplyReplay.NEVER,
    result_separate=False,
    # auth_required may end without a word of ours, so somebody has to look.
    watches_input=True,
    settle_s=5.0,
    bucket_scope=BucketScope.TARGET,
)

_Card: TypeAlias = dict[str, Json]


class A2a10:
    """The adapter. Stateless but for the maker of request ids."""

    profile = PROFILE

    def __init__(self, rpc: JsonRpc) -> None:
        self._rpc = rpc

    # -- negotiate -----------------------------------------------------------------------------------------------------

    def negotiate(self, endpoint: Endpoint, tool: str) -> Exchange[Negotiation]:
        """The agent card, then the one for those who bring a credential where the skill is not in the first."""
        card = yield from self._card(endpoint)
        if not isinstance(card, dict):
            return card
        refusal = cards.objection(card, endpoint.name, endpoint.url)
        if refusal is not None:
            return refusal
        shown, skill = [card], cards.skill(card, tool)
        if skill is None and cards.has_more(card):
            extended = yield from self._extended_card(endpoint)
            if not isinstance(extended, dict):
                return extended
            shown.append(extended)
            skill = cards.skill(extended, tool)
        if skill is None:
            return cards.unknown(shown, tool, endpoint.name)
        return cards.agreed(shown[-1], skill, endpoint.name)

    def _card(self, endpoint: Endpoint) -> Exchange[_Card | Negotiation]:
        places = cards.places(endpoint.url)
        for url in places:
            reply = yield Request(
                "GET",
                url,
                (("Accept", "application/json"), ("A2A-Version", cards.VERSION)),
                deadline_s=endpoint.deadline_s,
                max_bytes=endpoint.max_response_bytes,
            )
            found = trouble(reply)
            if found is not None:
                return found
            assert isinstance(reply, Answered)  # `trouble` took everything else
            card = cards.read(reply)
            if card is not None:
                return card
        return cards.missing(endpoint.name, len(places))

    def _extended_card(self, endpoint: Endpoint) -> Exchange[_Card | Busy | NoAccess]:
        """An empty one where the agent does not show it after all: the public one has said what there is."""
        request_id = self._rpc.new_id()
        reply = yield self._post(endpoint, request_id, "GetExtendedAgentCard", {})
        found = trouble(reply)
        if found is not None:
            return found
        assert isinstance(reply, Answered)
        try:
            card = read(reply, request_id).result
        except NoResponse:
            card = None
        return card if isinstance(card, dict) else {}

    # -- submit, lookup ------------------------------------------------------------------------------------------------

    def submit(self, endpoint: Endpoint, call: Call) -> Exchange[SubmitOutcome]:
        """`SendMessage`, answered at once: a blocking one of a task over 5 s was lost by the reference client."""
        call = replace(call, request_id=call.request_id or self._rpc.new_id())
        said = {"metadata": strict_json.dumps({SKILL: call.tool, SUBMISSION_KEY: call.submission_key})}
        if call.lookup_tool:
            said["contextId"] = strict_json.dumps(call.submission_key)
        request = self._message(endpoint, call.request_id, call.submission_key, _parts(call.arguments), said)
        reply = yield replace(request, effect=Effect.SUBMIT, deadline_s=call.answer_by_s)
        return self.read_submit(endpoint, call, reply)

    def read_submit(self, endpoint: Endpoint, call: Call, reply: Reply) -> SubmitOutcome:
        """Pure: kept evidence reads the same in another worker (with the `request_id` that was sent)."""
        return answers.read_submit(self.profile, endpoint, call, reply)

    def lookup(self, endpoint: Endpoint, search: Search) -> Exchange[LookupOutcome]:
        """`ListTasks` by the context that is the submission key, page by page."""
        if search.lookup_tool != LOOKUP:
            return NoSuchVerb(f"{PROTOCOL} looks tasks up by {LOOKUP}, and the target declares another way")
        pages: list[answers.Page] = []
        for _ in range(MAX_REQUESTS_PER_EXCHANGE):
            request_id = self._rpc.new_id()
            asked: dict[str, Json] = {"contextId": search.submission_key, "historyLength": 0, "pageSize": 100}
            if pages:
                asked["pageToken"] = pages[-1].next_token
            reply = yield self._post(endpoint, request_id, LOOKUP, _texts(asked))
            page = answers.read_page(endpoint, request_id, reply, search.submission_key)
            if not isinstance(page, answers.Page):
                return page
            pages.append(page)
            if not page.next_token:
                return answers.found(pages, complete=True)
        return answers.found(pages, complete=False)

    # -- poll, fetch, cancel -------------------------------------------------------------------------------------------

    def poll(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """`GetTask`, with the artifacts once there are any. A task that waits is read again with its history: the reply
        to what it asks may be in there."""
        seen = yield from self._get(endpoint, task, history=0)
        if isinstance(seen, NeedsInput) and task.reads_question:
            seen = yield from self._get(endpoint, task, history=answers.HISTORY)
        return seen

    def _get(self, endpoint: Endpoint, task: RemoteTask, *, history: int) -> Exchange[Observation]:
        task = replace(task, request_id=self._rpc.new_id())
        asked = _texts({"id": task.task_id, "historyLength": history})
        reply = yield self._post(endpoint, task.request_id, "GetTask", asked)
        return answers.read_poll(endpoint, task, reply)

    def fetch(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """The result comes with the status, so this is `GetTask` again."""
        return self._get(endpoint, task, history=0)

    def end_session(self, endpoint: Endpoint, session: bytes) -> Exchange[None]:
        """Nothing to end: every request stands alone."""
        yield from ()

    def cancel(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[CancelOutcome]:
        """`CancelTask`: an attempt; its answer is an acknowledgement."""
        task = replace(task, request_id=task.request_id or self._rpc.new_id())
        request = self._post(endpoint, task.request_id, "CancelTask", _texts({"id": task.task_id}))
        reply = yield replace(request, effect=Effect.CANCEL)
        return self.read_cancel(endpoint, task, reply)

    def read_cancel(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> CancelOutcome:
        """Pure, as `read_submit`."""
        return answers.read_cancel(self.profile, endpoint, task, reply)

    # -- input ---------------------------------------------------------------------------------------------------------

    def read_input(self, endpoint: Endpoint, task: RemoteTask, body: bytes) -> Observation:
        """Pure."""
        return answers.read_input(task, body)

    def reply(self, endpoint: Endpoint, task: RemoteTask, reply: InputReply) -> Exchange[ReplyOutcome]:
        """`SendMessage` to the task, under an id of the reply's own, so that it can be found in the task's history."""
        task = replace(task, request_id=task.request_id or self._rpc.new_id())
        request = self._message(
            endpoint,
            task.request_id,
            answers.reply_id(task.task_id, reply.key),
            _said(reply.content),
            {"taskId": strict_json.dumps(task.task_id)},
        )
        answer = yield replace(request, effect=Effect.ANSWER)
        return self.read_reply(endpoint, task, answer)

    def read_reply(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> ReplyOutcome:
        """Pure, as `read_submit`."""
        return answers.read_reply(self.profile, endpoint, task, reply)

    # -- requests ------------------------------------------------------------------------------------------------------

    def hints(self, reply: Reply) -> tuple[Hint, ...]:
        return answers.hints(reply)

    def _message(
        self, endpoint: Endpoint, request_id: str, message_id: str, parts: bytes, more: dict[str, bytes]
    ) -> Request:
        message = {"messageId": strict_json.dumps(message_id), "role": b'"ROLE_USER"', "parts": parts} | more
        configuration: dict[str, Json] = {"returnImmediately": True, "historyLength": 0}
        params = {"message": strict_json.splice(message), "configuration": strict_json.dumps(configuration)}
        return self._post(endpoint, request_id, "SendMessage", params)

    def _post(self, endpoint: Endpoint, request_id: str, method: str, params: dict[str, bytes]) -> Request:
        return Request(
            method="POST",
            url=endpoint.url,
            # On every request: an agent takes one without it for version 0.3.
            headers=(
                ("Content-Type", "application/json"),
                ("Accept", "application/json"),
                ("A2A-Version", cards.VERSION),
            ),
            body=self._rpc.request(request_id, method, params),
            deadline_s=endpoint.deadline_s,
            max_bytes=endpoint.max_response_bytes,
        )


def _texts(members: dict[str, Json]) -> dict[str, bytes]:
    return {name: strict_json.dumps(value) for name, value in members.items()}


def _parts(said: bytes) -> bytes:
    """The message's parts, byte for byte as they were digested: `{"parts": […]}` has no other member
    (`cards.PARTS_SCHEMA`) and the text is canonical, so what it holds stands between these two."""
    if said.startswith(b'{"parts":[') and said.endswith(b"]}"):
        return said.removeprefix(b'{"parts":').removesuffix(b"}")
    return b"[" + said + b"]"


def _said(content: bytes) -> bytes:
    """A person's word as parts. A2A has no word for declining, so it is said as it is."""
    reply = strict_json.loads(content)
    if member(reply, "action") != "accept":
        return strict_json.dumps([{"text": str(member(reply, "action"))}])
    said = member(reply, "content")
    parts = member(said, "parts")
    return strict_json.dumps(parts if isinstance(parts, list) else [said])
