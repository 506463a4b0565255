"""Why a server can't be negotiated with, in words: a code, what is wrong, what to do next."""

from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

from ..adapters import registry
from ..adapters.contract import Answered, Endpoint, NoAnswer, Sent
from ..ledger.errors import CounterfoilError

_MAX_CHARS = 300

DECLARE = (
    f"An HTTP API can't be asked what it offers: it is declared in the targets file ({', '.join(registry.DECLARED)}; "
    "docs/targets.md)."
)


class ProbeFailed(CounterfoilError):
    """The negotiation came to nothing."""


def unanswered(reply: NoAnswer, endpoint: Endpoint) -> ProbeFailed:
    """No usable answer: the address, the credential, TLS, the size, or nobody is there."""
    where = _origin(endpoint.url)
    code, mark, text = reply.why.partition(": ")
    if mark and code == "E_ADDRESS_REFUSED":
        step = "If that address is meant, say --allow-private, or `allow_private: true` in the targets file."
        return ProbeFailed(f"{text.partition(': set `allow_private')[0]}.", code=code, next_step=step)
    if mark and code == "E_CREDENTIAL":
        step = 'Set what it names, or give another: env:NAME, file:PATH, exec:["program", …].'
        return ProbeFailed(f"{text}.", code=code, next_step=step)
    if len(reply.body) >= endpoint.max_response_bytes:
        return ProbeFailed(
            f"{where} sent more than {endpoint.max_response_bytes} bytes as one answer.",
            code="E_ANSWER_TOO_LARGE",
            next_step="Have its owner list tools in pages, or raise `max_response_bytes` in the targets file.",
        )
    encrypted = endpoint.url.lower().startswith("https:")
    if encrypted and reply.sent is Sent.NO and ("SSL" in reply.why or reply.why == "ConnectError"):
        return ProbeFailed(
            f"no TLS connection to {where}: {reply.why[:_MAX_CHARS]}.".replace(" ConnectError.", " it was broken off."),
            code="E_TLS",
            next_step="Its certificate has to name that host and be signed by a public authority; a server without TLS "
            "has an http:// URL.",
        )
    return ProbeFailed(
        f"{where} does not answer: {reply.why[:_MAX_CHARS].rstrip('.')}.",
        code="E_UNREACHABLE",
        next_step="Is the server running, and is this its URL?",
    )


def redirected(reply: Answered, endpoint: Endpoint) -> ProbeFailed:
    """A redirect is never followed: it could lead a credential to another host."""
    try:
        place = urljoin(endpoint.url, reply.headers.get("location", ""))
        # Without its query, which may hold a token.
        shown = f"{_origin(place)}{urlsplit(place).path}"[:_MAX_CHARS]
    except ValueError:
        place, shown = "", "a URL that can't be read"
    other = _origin(place) != _origin(endpoint.url)
    return ProbeFailed(
        f"{_origin(endpoint.url)} redirects to {'another host, ' if other else ''}{shown} (HTTP {reply.status}).",
        code="E_REDIRECT",
        next_step="Redirects are not followed. Give that URL, if it is the server that you mean.",
    )


def no_credential(reply: Answered, credential: str) -> ProbeFailed:
    """401, or 403 with a challenge."""
    told = "refuses the credential" if credential else "wants a credential"
    return ProbeFailed(
        f"the server {told} (HTTP {reply.status}).",
        code="E_AUTH",
        next_step="Name one by reference: --credential env:NAME, file:PATH or 'exec:[\"program\", …]'.",
    )


def nothing_in_common(whys: Sequence[str]) -> ProbeFailed:
    """It speaks MCP, but no version that we do."""
    return ProbeFailed(
        "the server speaks nothing that this release does: " + " ".join(whys),
        code="E_CAPABILITY_UNSUPPORTED",
        next_step="Its owner has to offer one of these protocols, or a newer Counterfoil has to speak what it does.",
    )


def nothing_to_call(refusals: Sequence[tuple[str, str]]) -> ProbeFailed:
    """It speaks a protocol of ours, but none of the tools that were looked at can be called. (code, why) of each."""
    codes = {code for code, _ in refusals}
    whys = list(dict.fromkeys(why for _, why in refusals))[:3]
    return ProbeFailed(
        "no tool can be called: " + (" ".join(whys) or "the server offers none."),
        code=codes.pop() if len(codes) == 1 else "E_CAPABILITY_UNSUPPORTED",
        next_step="`counterfoil check URL` says it tool by tool.",
    )


def unrecognised(last: Answered | NoAnswer, others: Sequence[str]) -> ProbeFailed:
    """Not one answer was JSON-RPC. `others`: why it isn't of another family either."""
    status = last.status if isinstance(last, Answered) else 0
    if status >= 500 or status == 429:
        step = "Try again when it is well; its log may say more."
        return ProbeFailed(f"the server answers HTTP {status} to everything.", code="E_UNREACHABLE", next_step=step)
    kind = last.headers.get("content-type", "no content type")[:64] if isinstance(last, Answered) else "nothing"
    return ProbeFailed(
        " ".join((f"what answers there is no MCP server (HTTP {status}, {kind}).", *others)),
        code="E_NOT_MCP",
        next_step="Give the URL of its streamable HTTP endpoint, which often ends in /mcp, or of an A2A agent's "
        f"interface. A server that only speaks stdio has to be started with that transport. {DECLARE}",
    )


def _origin(url: str) -> str:
    """Scheme, host and port: no user, no query."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "a URL that can't be read"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{'' if port is None else f':{port}'}"
