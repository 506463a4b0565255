"""The shape of the targets file: every key an operator may write, its type, its range and what it means.

The descriptions are the one place that says what a key means: `counterfoil targets explain` shows them, and the tables
of docs/targets.md are made of them (`target_keys.py`).
"""

import json
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ..adapters import registry
from ..adapters.http_api import HttpApi, Key, Places, Routes, Statuses, checked_headers
from ..ledger.digest import canonical_json
from ..ledger.errors import CounterfoilError
from . import schemas


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


class LookupEntry(Strict):
    """How a lost submit of a tool is found again, as its server's owner promises it."""

    tool: str | None = Field(
        None,
        min_length=1,
        max_length=256,
        description="The server's read-only tool that is asked by submission key. `counterfoil.server.keyed()` gives a "
        "server one that is called `counterfoil_lookup`.",
    )
    replay: bool = Field(
        default=False,
        description="true: instead of asking, the same bytes are sent again under the same key, which the server "
        "answers with the first call's task or result.",
    )
    absence: Literal["unique", "closes", "bounded"] | None = Field(
        None,
        description="Why 'nothing under this key' allows a second submit: `unique`, a repeat of the key returns or "
        "refuses the first call; `closes`, the lookup makes the server refuse this attempt and earlier ones; "
        "`bounded`, only time speaks, which is your own risk. Left out: nothing is sent again, a person is asked.",
    )
    key_lifetime_s: float = Field(
        86_400.0, gt=0, le=366 * 86_400, description="How long the server remembers a key, from the first send on."
    )

    @model_validator(mode="after")
    def _one_way(self) -> "LookupEntry":
        if self.tool is not None and self.replay:
            raise ValueError("names one way: `tool: NAME`, or `replay: true`")
        if self.replay and self.absence is not None:
            # What a replay answers can't prove that the first attempt did not run (SPEC section 7).
            raise ValueError("can't say `absence` of a replay: only a lookup by key can find nothing")
        return self


class Poll(Strict):
    min_s: float | None = Field(None, description="The shortest pause between two reads, whatever the server suggests.")
    max_s: float | None = Field(None, description="The longest pause between two reads, whatever the server suggests.")
    default_s: float | None = Field(None, description="The pause between two reads where the server suggests none.")


class Overrides(Strict):
    """What an operator may set of a Policy, for a target or for one tool. Policy itself checks the ranges."""

    wait_budget_s: float | None = Field(
        None, description="How long we wait for the server, from the first intent; a person's thinking doesn't count."
    )
    on_budget: Literal["reconcile", "cancel"] | None = Field(
        None,
        description="At the end of the wait budget: `reconcile` asks a person, `cancel` sends one cancel and takes "
        "what the server then says.",
    )
    poll: Poll = Field(
        Poll(), description="The clamp of the server's suggested interval: `{min_s: 2, max_s: 60, default_s: 5}`."
    )
    send_by_s: float | None = Field(
        None, description="No byte of a request with an effect leaves later than this after its intent."
    )
    answer_by_s: float | None = Field(
        None,
        description="The bound of a submit's answer. A call that blocks until it is over has `sync_bound_s` instead.",
    )
    sync_bound_s: float | None = Field(
        None,
        gt=0,
        le=86_400,
        description="For a protocol whose calls block until they are over (`mcp-sync`): the longest that the tool "
        "takes, as its owner publishes it. Past it the answer is lost, and a person is asked. Without it such a "
        "call is refused (E_CAPABILITY_UNSUPPORTED).",
    )
    require_lookup: bool | None = Field(
        None,
        description="true refuses the tool (E_CAPABILITY_UNSUPPORTED) unless a lost submit could be looked up by its "
        "key. Else it runs, and a lost submit asks a person.",
    )
    lookup: LookupEntry | None = Field(
        None,
        description="How a lost submit is found again; without it a lost submit asks a person. "
        "`{tool: counterfoil_lookup, absence: unique, key_lifetime_s: 604800}`. It counts for submits from now on: "
        "one that was sent before it was declared carried no key.",
    )
    preset: Literal["azure", "idempotency-key", "ogc", "plain"] | None = Field(
        None,
        description="A declaration that many APIs share, which the keys below add to: `azure` (status monitors, "
        "Operation-Id), `ogc` (OGC API Processes), `idempotency-key` (the IETF draft), `plain` (`{id, status}` with "
        "the usual words).",
    )
    routes: Routes | None = Field(
        None,
        description="For `http-202` and `aip-151`, whose servers can't be asked what they offer: verb and path of each "
        "request. `{submit: POST /jobs, status: GET /jobs/{id}, result: GET /jobs/{id}/result}`.",
    )
    statuses: Statuses | None = Field(
        None,
        description="What the API's status words mean, whatever their case. A word that is not listed is no status "
        "(E_STATUS_UNKNOWN). Without any, the HTTP status is all there is: 202 is working, any other 2xx the result.",
    )
    fields: Places | None = Field(
        None, description="Where things are in the API's answers: JSON pointers. `{id: /jobId, status: /state}`."
    )
    key: Key | None = Field(
        None,
        description="How the submission key travels: `{header: Idempotency-Key}`, `{body: requestId}`. Without it, or "
        "`{key}` in `routes.submit`, it doesn't, and a lost submit can't be looked up.",
    )
    headers: dict[str, str] | None = Field(
        None, description="Constant headers of every request: `{X-Api-Version: '7'}`. Never a credential."
    )
    respond_async: bool | None = Field(None, description="true: the submit says `Prefer: respond-async`.")
    rejections: list[int] | None = Field(
        None,
        description="HTTP statuses that reject a submit for certain: nothing ran, and a repeat changes nothing. "
        "Left out: 400, 404, 405, 406, 411, 413, 414, 415, 422 and 431.",
    )
    cancel_is_evidence: bool | None = Field(
        None,
        description="true: the word in the answer to a cancel is the end of the work, since it can't be asked for "
        "afterwards (OGC).",
    )
    max_attempts: int | None = Field(
        None, description="Submits of one operation. A second one needs proof that the first never was."
    )
    not_found_asks: int | None = Field(
        None, description='How often "no such task" is asked again before a person is asked.'
    )
    auth_tries: int | None = Field(None, description="How often a refused credential is resolved anew and tried again.")
    can_cancel: bool | None = Field(
        None, description="false: a cancel is refused at the door. true can't make a protocol cancel that can't."
    )
    cancel_confirm_s: float | None = Field(
        None, description="A cancel without an end for so long is a case; reading goes on slowly."
    )
    cancel_sends: int | None = Field(
        None, description="How often the same cancel may be sent while its answer is lost and the task works on."
    )
    input_deadline_s: float | None = Field(None, description="How long a question of the tool waits for a person.")
    on_input_deadline: Literal["cancel", "reconcile"] | None = Field(
        None, description="When nobody answered in time: `cancel` the task, or `reconcile` (ask a person what to do)."
    )
    require_answer: bool | None = Field(
        None,
        description="true: a question that closes without our answer (the server went on by itself) asks a person; "
        "else the receipt counts it in `unanswered_rounds`.",
    )
    four_eyes: bool | None = Field(
        None, description="true: whoever asked for the call (its principal) may not answer its questions."
    )
    input_watch_s: float | None = Field(
        None, description="How often a task is read while its question waits for a person; 0: never."
    )
    effects: bool | None = Field(None, description="Does the tool change anything outside of itself?")
    effect_case: Literal["always", "on_evidence"] | None = Field(
        None,
        description="When a cancelled run asks a person to check for effects: `always`, or only `on_evidence` that it "
        "ran on. By protocol: `always` where the answer to a cancel is all the evidence there is.",
    )
    cancel_stops: bool | None = Field(
        None, description="true: your word that a confirmed cancel stops the work, so nobody has to check after it."
    )
    audit_s: float | None = Field(
        None,
        description="How long after a won cancel the task is still looked at now and then; 0: not at all. What is seen "
        "opens a case, and never changes the receipt.",
    )
    on_unknown: Literal["reconcile", "abandon"] | None = Field(
        None,
        description="When nothing tells what became of a call: `reconcile` waits for a person's verdict, `abandon` "
        "(only with `effects: false`) closes it as abandoned after `on_unknown_after_s`.",
    )
    on_unknown_after_s: float | None = Field(
        None, description="How long a case of a tool without effects waits for a person, with `on_unknown: abandon`."
    )
    max_result_bytes: int | None = Field(None, description="The most that the message with a result may be.")
    empty_result: bool | None = Field(None, description="true: an empty result is a result (else E_RESULT_MISSING).")
    settle_s: float | None = Field(
        None, description='How long after the last `send_by` a lookup\'s "not there" begins to count.'
    )

    @field_validator("headers")
    @classmethod
    def _are_harmless(cls, headers: dict[str, str] | None) -> dict[str, str] | None:
        return None if headers is None else checked_headers(headers)

    @field_validator("rejections")
    @classmethod
    def _are_rejections(cls, statuses: list[int] | None) -> list[int] | None:
        if any(not 400 <= status <= 501 or status in (401, 408, 500) for status in statuses or ()):
            raise ValueError("holds only statuses from 400 to 501, and not 401, 408 or 500")
        return statuses

    def declared(self) -> dict[str, object]:
        """What was written of the tool's API, as a layer of its declaration."""
        written = self.model_dump(exclude_unset=True)
        return {name: written[name] for name in HttpApi.model_fields if written.get(name) is not None}

    def for_policy(self) -> dict[str, object]:
        """The fields that were set, under the names that Policy has."""
        own = self.model_dump(exclude_none=True, include=Overrides.model_fields.keys() - NO_POLICY)
        return own | {f"poll_{name}": value for name, value in self.poll.model_dump(exclude_none=True).items()}


API_KEYS = frozenset(HttpApi.model_fields) | {"preset"}
"""Keys that declare a tool's API."""

NO_POLICY = frozenset({"poll", "lookup", "sync_bound_s", "require_lookup"}) | API_KEYS
"""Keys that no field of Policy has the name of: what they mean for it hangs on the protocol too."""


class ToolEntry(Overrides):
    output_schema: dict[str, object] | None = Field(
        None, description="A JSON Schema that a result has to fit. It counts instead of the tool's own."
    )

    @field_validator("output_schema")
    @classmethod
    def _is_schema(cls, schema: dict[str, object] | None) -> dict[str, object] | None:
        if schema is not None:
            try:
                schemas.require_schema(canonical_json(schema))
            except CounterfoilError as error:
                raise ValueError(error.message) from None
        return schema


class Shares(Strict):
    cancel: float = Field(0.1, ge=0, lt=1, description="The part of the rate that is kept for cancels.")
    submit: float = Field(0.1, ge=0, lt=1, description="The part of the rate that is kept for submits.")
    fetch: float = Field(0.1, ge=0, lt=1, description="The part of the rate that is kept for fetching results.")

    @model_validator(mode="after")
    def _leave_something(self) -> "Shares":
        if self.cancel + self.submit + self.fetch > 0.9:
            raise ValueError("add up to more than 0.9, which leaves polls nothing")
        return self


class Credentials(Strict):
    default: str | None = Field(None, description="The reference for every principal that has none of its own.")
    principals: dict[str, str] = Field({}, description="Principal -> reference: `{alice: env:ALICE_TOKEN}`.")

    @model_validator(mode="after")
    def _are_references(self) -> "Credentials":
        references = [*self.principals.values(), *([] if self.default is None else [self.default])]
        # A pasted token must not be repeated in the message.
        if not all(is_reference(reference) for reference in references):
            raise ValueError('name where the token is, never the token: env:NAME, file:PATH or exec:["program", …]')
        return self


def is_reference(text: str) -> bool:
    kind, _, rest = text.partition(":")
    if kind != "exec":
        return kind in ("env", "file") and bool(rest)
    try:
        argv = json.loads(rest)
    except ValueError:
        return False
    return isinstance(argv, list) and bool(argv) and all(isinstance(part, str) for part in argv)


class TargetEntry(Overrides):
    url: str = Field(description="http:// or https://, without user, password or fragment.")
    protocol: str = Field(
        description="The one version that is spoken; negotiation picks nothing by itself. `counterfoil check URL` "
        f"proposes it. There is: {', '.join(registry.PROTOCOLS)}."
    )
    credentials: Credentials = Field(
        Credentials(),
        description='Where the token is, never the token: `env:NAME`, `file:PATH` (read each time), `exec:["program", '
        "…]` (run again after a 401); or `{default: …, principals: {alice: …}}`.",
    )
    qps: float = Field(
        5.0,
        gt=0,
        le=10_000,
        description="HTTP requests a second, all workers together: any window of t seconds holds at most "
        "qps * t + burst.",
    )
    burst: int = Field(5, ge=1, le=10_000, description="HTTP requests that may leave at once after a quiet while.")
    shares: Shares = Field(
        Shares(),
        description="The parts of the rate that polls can't take away: `{cancel: 0.1, submit: 0.1, fetch: 0.1}`.",
    )
    allow_private: bool = Field(
        default=False,
        description="May its address be private, link-local, shared or a cloud's metadata? Loopback always may.",
    )
    not_processed_statuses: list[int] = Field(
        [],
        description="HTTP statuses that prove that a submit did not run, such as 429, or a 503 that your own gateway "
        "makes.",
    )
    max_response_bytes: int = Field(
        8 * 1024 * 1024, ge=1024, le=256 * 1024 * 1024, description="The most that any one answer may be."
    )
    deadline_s: float = Field(15.0, gt=0, le=120, description="The bound of a read. A submit has `answer_by_s`.")
    tools: dict[str, ToolEntry] = Field(
        {}, description="Per tool: any key that may stand at a tool. Tools that are not named may be called as well."
    )

    @model_validator(mode="before")
    @classmethod
    def _no_stdio(cls, data: object) -> object:
        if isinstance(data, dict) and "command" in data:
            raise ValueError(
                "`command:` starts a server over stdio, which ends with its client, so that a lost answer could never "
                "be asked for again; start the server with the streamable HTTP transport and give its `url:`, or put a "
                "bridge in front of it (`uvx mcp-proxy --port 8765 -- COMMAND ARGS`, then `url: http://127.0.0.1:8765/mcp`)"
            )
        return data

    @field_validator("credentials", mode="before")
    @classmethod
    def _one_for_all(cls, data: object) -> object:
        return {"default": data} if isinstance(data, str) else data

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        try:
            parts, port = urlsplit(url), urlsplit(url).port
        except ValueError:
            raise ValueError("has no valid host and port") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise ValueError("must be an http:// or https:// URL")
        if not url.isascii() or any(character <= " " for character in url):
            raise ValueError("holds characters that a URL writes as %XX")
        if parts.username is not None or parts.password is not None:
            raise ValueError("must hold no user or password: it is stored and shown; use `credentials:`")
        if parts.fragment:
            raise ValueError("must hold no #fragment: it is never sent")
        return url

    @field_validator("protocol")
    @classmethod
    def _is_spoken(cls, protocol: str) -> str:
        try:
            registry.adapter(protocol)
        except registry.UnknownProtocol as error:
            raise ValueError(str(error)) from None
        return protocol

    @field_validator("not_processed_statuses")
    @classmethod
    def _are_errors(cls, statuses: list[int]) -> list[int]:
        if any(not 400 <= status <= 599 for status in statuses):
            raise ValueError("holds only statuses from 400 to 599")
        return statuses


class TargetsFile(Strict):
    targets: dict[str, object] = Field(
        min_length=1, description="Name -> server. Names have letters, digits, '.', '_' and '-', 63 at most."
    )
