"""What every code means: the one place for these texts.

`counterfoil explain` shows them; docs/errors.md is made of them by `python -m counterfoil.console.reference`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One code, or several that mean the same. `then`: what to do next; `outcome`: the receipt's word with it."""

    codes: tuple[str, ...]
    means: str
    then: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Where codes are met."""

    title: str
    entries: tuple[Entry, ...]
    note: str = ""


def _entries(*rows: tuple[str, ...]) -> tuple[Entry, ...]:
    """Rows as (codes, means, do next, outcome), the codes with spaces between them."""
    return tuple(Entry(tuple(codes.split()), *rest) for codes, *rest in rows)


_NAMES = (
    "E_CALL_NODE_INVALID E_NAMESPACE_INVALID E_PRINCIPAL_INVALID E_TARGET_INVALID E_TOOL_INVALID E_FLEET_INVALID"
    " E_ACTOR_INVALID E_SECOND_ACTOR_INVALID"
)

SECTIONS = (
    Section(
        "Refused at the door (nothing was written)",
        _entries(
            ("E_INPUT", "What was handed in can't be used.", "See the text."),
            (_NAMES, "Empty, over 512 characters, or not printable.", "Use a short identifier."),
            (
                "E_CALL_NODE_CONFLICT",
                "The call node already stands for another request.",
                "One call node is one request, for ever.",
            ),
            (
                "E_ARGUMENTS_INVALID",
                "Not JSON, an integer beyond 2^53 - 1, a lone surrogate, or against the tool's input schema.",
                "Correct the arguments.",
            ),
            ("E_ARGUMENTS_TOO_LARGE", "Over 1 MiB.", "Pass a reference."),
            (
                "E_TARGET_UNKNOWN",
                "No worker has announced that target.",
                "Check the name; start a worker with its targets file.",
            ),
            ("E_PROTOCOL_UNKNOWN", "No adapter of that name.", "The text lists them."),
            (
                "E_FLEET_UNKNOWN E_NAMESPACE_TAKEN",
                "No such fleet; or the namespace is another's.",
                "Use the right one.",
            ),
            ("E_CREATE_OFF", "New operations are switched off.", "What is in flight goes on."),
            (
                "E_ADAPTER_DRAINING",
                "The target's protocol version takes no new submits (drain or off).",
                "`counterfoil adapters list` tells why; what is in flight goes on.",
            ),
            (
                "E_NOT_SELECTED",
                "The call node is the old path's (canary or shadow), now and for ever. The answer is recorded.",
                "Run it there, once your transaction has committed.",
            ),
            (
                "E_CANNOT_CANCEL",
                "The server, or the policy, knows no cancel; the operation goes on as it was.",
                "Wait for its end, or end it at the server.",
            ),
            ("E_ALREADY_OVER", "Asked of an operation that has ended; the text says with what.", "Read its receipt."),
            ("E_NOT_FOUND", "No such operation.", "`counterfoil list` shows what there is."),
            (
                "E_SERIALIZATION",
                "Your transaction (REPEATABLE READ or above) can't be serialized.",
                "Run it again; the same call nodes give the same operations.",
            ),
        ),
    ),
    Section(
        "What people say (refused, nothing was changed)",
        _entries(
            ("E_NO_SUCH_CASE E_NO_CASE", "No such case, or none is open there.", "`counterfoil cases list`."),
            ("E_CASE_CLOSED", "Somebody, or evidence, settled it before.", "`counterfoil cases show` tells how."),
            (
                "E_CASE_CHANGED",
                "Something happened since the case was looked at, or evidence that waited moved it.",
                "Look again, and decide on what it shows now.",
            ),
            (
                "E_VERDICT_NOT_OFFERED",
                "The case does not offer that verdict: it wouldn't be safe.",
                "`counterfoil cases show` lists the ones that are.",
            ),
            ("E_VERDICT_INCOMPLETE", "`bind` without the task id.", "Name it: --task ID."),
            ("E_REASON", "A reason that says nothing.", "Say what you saw: whoever comes after you asks."),
            (
                "E_FOUR_EYES",
                "The policy wants another person than the one who asked for it; or the second person is the first.",
                "Let somebody else speak.",
            ),
            ("E_NO_SUCH_ROUND", "No such question, or none waits there.", "`counterfoil inputs list`."),
            (
                "E_INPUT_ROUND_CLOSED",
                "The question was replied to, is over, or its deadline has passed. A reply is used once.",
                "`counterfoil inputs list` shows what waits.",
            ),
            (
                "E_INPUT_SCHEMA",
                "The reply breaks the question's schema.",
                "`counterfoil inputs show` prints the schema.",
            ),
            ("E_INPUT_TOO_LARGE", "A reply over 256 KiB.", "Say it shorter."),
            ("E_NOT_WRITTEN", "What was said could not be written.", "See the logs; say it again."),
        ),
    ),
    Section(
        "Switches (refused, nothing was changed)",
        _entries(
            (
                "E_EPOCH_DOWN",
                "An epoch lower than the ledger's. Epochs only grow.",
                "To go back to an older release, bump and start its workers in the new epoch.",
            ),
            (
                "E_ADAPTER_IN_USE",
                "A protocol version can't be off while one operation or audit of it is open.",
                "`counterfoil adapters drain`, and switch it off after the last.",
            ),
            ("E_CANARY_PERCENT", "Not a number from 0 to 100.", "Write 5%."),
            (
                "E_SHADOW_EFFECTS",
                "The tool may change something outside, so it can't run beside the old path; nothing was sent.",
                "`effects: false` in the targets file, if that is true.",
            ),
            ("E_NOT_A_SHADOW", "That call node did not run as a shadow.", "`counterfoil shadow report` lists them."),
            ("E_SHADOW_TOLD", "Something else was told of that call node before.", "What was told first stands."),
            (
                "E_SHADOW_RESULT",
                "A result that has no RFC 8785 text, or is over 1 MiB: it can't be compared.",
                "Tell the outcome alone.",
            ),
        ),
    ),
    Section(
        "A server that can't be used",
        _entries(
            ("E_UNREACHABLE", "A server that is needed does not answer.", "Is it running, and is this its URL?"),
            (
                "E_NOT_MCP",
                "What answers there is no MCP server, and no A2A agent.",
                "Give the URL of its MCP endpoint, often /mcp, or of an A2A agent. An HTTP API is declared.",
            ),
            (
                "E_TLS",
                "No TLS connection: the certificate is not trusted, names another host, or there is no TLS at all.",
                "Have the certificate mended; a server without TLS has an http:// URL.",
            ),
            (
                "E_REDIRECT",
                "The server sends us elsewhere. Redirects are never followed: a credential could go to another host.",
                "Give the URL that it names, if that server is meant.",
            ),
            (
                "E_CROSS_ORIGIN_REDIRECT",
                "A server pointed outside of its target's origin; nothing was asked there.",
                "Correct the target's `url`, or declare the route.",
            ),
            (
                "E_ADAPTER_BROKEN",
                "Another package's adapter can't be loaded, or failed while it ran.",
                "Mend, update or remove the package that the text names.",
            ),
            (
                "E_HOOKS",
                "The hooks file can't be used.",
                "Correct the lines that it names (docs/adapters.md, Callbacks).",
            ),
            (
                "E_RETENTION",
                "A retention that `db prune` can't take: no such kind, or no number of days.",
                "As in `--keep evidence=90`; the register is kept for ever.",
            ),
            (
                "E_BUSY",
                "A month could not be detached: a long transaction reads it. It was left as it is.",
                "`counterfoil doctor` names the transaction. Run it again later.",
            ),
            ("E_LISTEN", "An address can't be listened on.", "Name another: `--host`, `--port`."),
            (
                "E_HEALTH_DIR",
                "The folder for signs of life can't be used, or none is set.",
                "Set COUNTERFOIL_HEALTH_DIR to a folder that may be written, for worker, beat and probe alike.",
            ),
            (
                "E_ADDRESS_REFUSED",
                "The target's address is private, link-local or a cloud's metadata.",
                "`allow_private: true` where that is meant.",
            ),
            (
                "E_ANSWER_TOO_LARGE",
                "One answer is larger than `max_response_bytes`.",
                "Have the owner page the list of tools, or raise the cap.",
            ),
            ("E_AUTH", "The server wants a credential, or another one.", "Name one by reference: `env:NAME`."),
            ("E_CREDENTIAL", "A credential reference gives no token.", "The text names it, never what was read."),
            ("E_SCHEMA_INVALID", "A JSON Schema that can't be used.", "Ask the tool's owner to mend it."),
        ),
    ),
    Section(
        "Waiting and running",
        _entries(
            (
                "E_STILL_RUNNING",
                "Your patience ended, the operation didn't; nothing was changed.",
                "Wait again with the same call node.",
            ),
            (
                "E_LEDGER_UNAVAILABLE E_NO_DATABASE",
                "The database can't be reached, or none is configured.",
                "`counterfoil dev up`, or COUNTERFOIL_DATABASE_URL.",
            ),
            (
                "E_BROKER_UNAVAILABLE E_NO_BROKER",
                "The broker can't be reached, or none is configured.",
                "`counterfoil dev up`, COUNTERFOIL_BROKER_URL, or `worker --solo`.",
            ),
            ("E_SCHEMA", "The tables are missing, or older than this release.", "`counterfoil db upgrade`."),
            (
                "E_RELEASE_TOO_OLD",
                "A migration shut out older releases, and this is one: it may not work on this ledger.",
                "Start the release that is current.",
            ),
            ("E_SETTINGS", "A setting can't be used.", "The text names the variable, never its value."),
            (
                "E_TARGETS E_NO_TARGETS",
                "The targets file can't be used, or there is none.",
                "The text names the lines; `counterfoil targets explain`.",
            ),
            ("E_TARGET_EXISTS", "The targets file has a target of that name.", "Choose another, or edit it there."),
            ("E_PRODUCERS", "The producers file can't be used.", "The text names the lines."),
            ("E_WEBHOOKS", "The webhooks file can't be used.", "The text names the lines."),
            ("E_TRANSCRIPT_INVALID", "A transcript is not longop-transcript.v1.", "The text names the places."),
            (
                "E_KEYS",
                "Sessions are stored encrypted: COUNTERFOIL_KEYS is unset, malformed, or lacks the one that sealed it.",
                "Set it, for every worker the same; keep old keys behind new ones.",
            ),
            ("E_DEV_STACK", "The development stack can't do what was asked.", "See the text."),
            ("E_EXTRA E_DEMO_EXTRA", "A library is not installed.", "The text names the extra that brings it."),
            ("E_FILE", "A file or folder can't be used.", "Correct the path or its permissions."),
            (
                "E_STALE_EPOCH",
                "This process serves an epoch that is over; its write was refused.",
                "Start a new one; nothing is lost.",
            ),
            (
                "E_GENERATION",
                "The ledger is in the generation of another release than this worker's.",
                "`counterfoil epoch adopt` with the release that is rolled out; its hook does.",
            ),
            ("E_BUMP_BLOCKED", "Somebody holds the epoch and does not let go.", "End that backend, bump again."),
            (
                "E_RECOVER_FIRST",
                "The database was promoted or restored; it may lack what was sent.",
                "`counterfoil recover` before anything is sent.",
            ),
            ("E_INTERNAL", "A fault of ours.", "Please report it."),
        ),
    ),
    Section(
        "On a receipt",
        _entries(
            ("E_TOOL_ERROR", "The tool itself reported an error.", "Read the result.", "failed"),
            ("E_NEVER_SENT", "The wait budget ended and nothing was ever sent.", "Call anew.", "failed"),
            (
                "E_CAPABILITY_UNSUPPORTED E_TOOL_UNKNOWN",
                "The server does not offer what the call needs, or its policy forbids it; nothing was sent.",
                "`counterfoil check URL`.",
                "refused",
            ),
            (
                "E_NOT_RESUBMITTED",
                "A proven-absent first attempt was not followed by a second.",
                "Call anew.",
                "refused",
            ),
            ("E_AUTH_EXPIRED", "The credential was refused three times.", "Renew it.", "refused, or a case"),
            ("E_REMOTE_CANCELLED", "The server cancelled it, we did not ask.", "Ask its owner.", "cancelled"),
            ("E_INPUT_DEADLINE", "Nobody answered in time.", "Answer earlier.", "cancelled, or a case"),
            ("E_NOT_SENT_BY_VERDICT", "A person found that it never ran.", "A new call is a new call node.", "failed"),
            (
                "E_ABANDONED",
                "Closed by a verdict, effects unknown.",
                "Stop and ask: never a reason to run again.",
                "abandoned",
            ),
        ),
        "A protocol's own number (`-32601` …) is a definite rejection of the first attempt: `failed`, and nothing ran.",
    ),
    Section(
        "Cases (a person has to speak)",
        _entries(
            (
                "E_SUBMISSION_UNKNOWN",
                "The answer to a submit is lost; nothing was sent again.",
                "Search the server for the submission key.",
            ),
            (
                "E_KEY_REUSED_DIFFERENT_REQUEST",
                "The server knows the key with another request; no new key was made.",
                "Find out whose it is.",
            ),
            ("E_TWO_OPERATIONS", "A late answer names a second remote operation.", "Look at both at the server."),
            (
                "E_TASK_ID_REUSED",
                "The task id belongs to another open operation, or shows another `createdAt`.",
                "Ask the server's owner.",
            ),
            (
                "E_OPERATION_UNKNOWN",
                "The server no longer knows the task (asked three times). It may have run.",
                "Check for its effects.",
            ),
            (
                "E_RESULT_MISSING E_RESULT_TOO_LARGE E_RESULT_SCHEMA E_RESULT_DIGEST_CONFLICT",
                "It ended, its result can't be accepted.",
                "Do not run it again: take the result from the server.",
            ),
            ("E_WAIT_BUDGET_EXHAUSTED", "Waited as long as the policy allows.", "Ask the server how it stands."),
            (
                "E_CANCEL_UNCONFIRMED",
                "Cancel sent, no end seen in time; reading goes on slowly.",
                "Wait, or end it at the server.",
            ),
            (
                "E_KEY_UNSURE E_LOOKUP_FAILED",
                "The question by key was not answered for certain: what became of the submit is open.",
                "Search the server for the submission key.",
            ),
            (
                "E_INPUT_UNANSWERED",
                "The task went on without the answer that the policy requires (`require_answer`).",
                "Find out at the server what it did instead.",
            ),
            (
                "E_INPUT_UNCLEAR",
                "Nobody knows whether a reply arrived, and the protocol does not let it be sent again.",
                "See at the server whether it has the answer.",
            ),
            (
                "E_INPUT_UNREADABLE E_INPUT_TOO_MANY",
                "The task waits for input, and its question is never delivered; or it asks without an end.",
                "Ask the tool's owner.",
            ),
            (
                "E_EFFECTS_POSSIBLE",
                "The cancel was taken, which does not say that the work stopped.",
                "Check outside effects, then settle it with `accept`.",
            ),
            (
                "E_STATUS_REGRESSED",
                "The server contradicts an end that it had told.",
                "Find out at the server which of the two holds.",
            ),
            (
                "E_LATE_COMPLETION_AFTER_CANCEL E_LATE_ANSWER",
                "Something ran although the receipt does not say succeeded.",
                "Check outside effects.",
            ),
            (
                "E_QUARANTINED",
                "Five claims in a row ended without an outcome: something about this row stops its bearers.",
                "See the workers' logs.",
            ),
        ),
    ),
    Section(
        "Dead letters (a message that became no operation)",
        _entries(
            ("E_MESSAGE_MALFORMED", "Not the form of counterfoil.submit.v1.", "Mend the producer (docs/producers.md)."),
            (
                "E_MESSAGE_UNSIGNED",
                "Not signed, and unsigned ones are not allowed here.",
                "Sign it, or allow unsigned ones in development.",
            ),
            ("E_MESSAGE_FORGED", "No such key, or not its signature.", "Check key id and secret on both sides."),
            (
                "E_MESSAGE_STALE",
                "Older than a week, or from the future.",
                "Check the producer's clock; hand it in again.",
            ),
        ),
    ),
    Section(
        "In the journal and the logs only",
        _entries(
            ("E_NOT_SENT_YET", "Backing off; nothing left."),
            ("E_TARGET_CLOSED", "The target asked for quiet; a negotiation waits for its end."),
            ("E_NOT_NOW", "A message could be neither handed in nor kept: the ledger is away. It is tried again."),
            ("E_NO_CONNECTION", "Nobody took the connection; not one byte left."),
            ("E_NO_ANSWER", "The connection was lost after bytes had left."),
            ("E_UNREADABLE_ANSWER", "An answer that is not the protocol's."),
            ("E_STATUS_UNKNOWN", "A status word that this version does not have; it is no status."),
            ("E_TASK_ID_MISMATCH", "An answer for another task."),
            ("E_PROTOCOL_MIX", "An answer of another version of the protocol."),
            ("E_INPUT_MALFORMED", "A question that can't be put to a person."),
            ("E_RESULT_TYPE_UNKNOWN", "A kind of result that this version does not have."),
            ("E_NO_TASKS", "A call of this protocol makes no task: there is nothing to read."),
            ("E_SESSION_GONE", "The server forgot the session; a new one was begun."),
            ("E_ORPHANS", "Operations that nobody will come by for; must be none. `counterfoil orphans` shows them."),
            ("E_LATE_EVIDENCE", "Evidence after an end, or of an attempt that is over; it changes nothing."),
            ("E_CANCEL_UNCLEAR", "An answer to a cancel that says nothing for certain; the status is read."),
            ("E_NOT_APPLICABLE", "Nothing follows from this in that state."),
            (
                "E_INTENT_OPEN E_STATE_MOVED E_LEASE_LOST E_GENERATION_MOVED E_CASE_OPEN E_POLICY_PINNED",
                "An intent that was not granted: nothing was sent.",
            ),
            ("E_KEY_EXPIRED", "A second send was due and the server may have forgotten the key: nothing was sent."),
            ("E_INPUT_REPLIED", "A person replied; the text says who."),
            ("E_READ_ON", "A person's word: it is the task, and it is read on."),
            ("E_EFFECTS_CHECKED", "A person looked after what was done outside."),
            ("E_RECOVERED", "`recover` took over a promoted or restored database; this may have been sent."),
        ),
    ),
)


def all_codes() -> list[str]:
    return [code for section in SECTIONS for entry in section.entries for code in entry.codes]
