"""OpenTelemetry, where COUNTERFOIL_OTEL switches it on; else nothing of it is imported.

The submit is one span, the root of the operation's own trace. Everything that is asked later (a poll may come ten hours
after) is a root span of a trace of its own with a link to the submit: a trace that is open for ten hours is one that no
backend keeps. Where the spans go, how many and under which name say the standard OTEL_… variables. The tracer
provider is ours alone: another one in this process is left as it is.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from ..adapters.contract import Answered, NoAnswer, Request
from .actions import Send
from .settings import Settings, SettingsError
from .traces import submit_span

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Span as OtelSpan

SUBMITS = frozenset({"submit", "sync"})


class Span(Protocol):
    """One request that is out. `request` carries its context to the server."""

    request: Request

    def answered(self, reply: Answered | NoAnswer) -> None: ...


class Untraced:
    """What a request is without telemetry."""

    def __init__(self, request: Request) -> None:
        self.request = request

    def answered(self, reply: Answered | NoAnswer) -> None:
        pass


class Tracing(Protocol):
    """`span` stands around one request; `close` sends what is not sent yet."""

    def span(self, send: Send) -> AbstractContextManager[Span]: ...

    def close(self) -> None: ...


def check_otel(settings: Settings) -> None:
    """Raises SettingsError (E_EXTRA) where telemetry is switched on and not installed."""
    if settings.otel and (find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None):
        raise SettingsError(
            "COUNTERFOIL_OTEL is set, and OpenTelemetry is not installed.",
            code="E_EXTRA",
            next_step="pip install 'counterfoil[otel]', or unset it.",
        )


def make_tracing(settings: Settings) -> Tracing | None:
    """For this process, after its fork; None where it is off. Raises SettingsError (E_EXTRA)."""
    if not settings.otel:
        return None
    check_otel(settings)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    return OtelTracing(BatchSpanProcessor(OTLPSpanExporter()), settings.fleet)


_next_ids: ContextVar[tuple[int, int] | None] = ContextVar("counterfoil_next_ids", default=None)


class OtelTracing:
    """Spans by the library, under ids of ours for submits."""

    def __init__(self, processor: "SpanProcessor", fleet: str) -> None:
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator  # noqa: PLC0415

        class Ids(RandomIdGenerator):
            def generate_trace_id(self) -> int:
                given = _next_ids.get()
                return super().generate_trace_id() if given is None else given[0]

            def generate_span_id(self) -> int:
                given = _next_ids.get()
                return super().generate_span_id() if given is None else given[1]

        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win: `create` reads them over what is given.
        resource = Resource.create({"service.name": "counterfoil", "counterfoil.fleet": fleet})
        self._provider = TracerProvider(resource=resource, id_generator=Ids(), shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("counterfoil")

    def close(self) -> None:
        self._provider.shutdown()

    @contextmanager
    def span(self, send: Send) -> Iterator[Span]:
        """Ends with the block; an answer that never came (the block is left by an error) is told as that error."""
        from opentelemetry.context import Context  # noqa: PLC0415
        from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags  # noqa: PLC0415

        about, links = send.about, []
        attributes: dict[str, str | int] = {
            "counterfoil.target": send.target,
            "http.request.method": send.request.method,
        }
        ids = None
        if about is not None:
            ids = (about.operation_id.int, submit_span(about.operation_id, about.attempt))
            attributes |= {
                "counterfoil.operation_id": str(about.operation_id),
                "counterfoil.lane": about.lane,
                "counterfoil.tool": about.tool,
                "counterfoil.attempt": about.attempt,
            }
            if about.lane not in SUBMITS or send.request.effect is None:
                flags = TraceFlags(TraceFlags.SAMPLED)
                links.append(Link(SpanContext(*ids, is_remote=True, trace_flags=flags)))
                ids = None
        name = "counterfoil.negotiate" if about is None else f"counterfoil.{about.lane}"
        token = _next_ids.set(ids)
        try:
            span = self._tracer.start_span(
                name, context=Context(), kind=SpanKind.CLIENT, attributes=attributes, links=links
            )
        finally:
            _next_ids.reset(token)
        context = span.get_span_context()
        told = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
        request = replace(send.request, headers=(*send.request.headers, ("traceparent", told)))
        try:
            yield _OtelSpan(span, request)
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            raise
        finally:
            span.end()


class _OtelSpan:
    def __init__(self, span: "OtelSpan", request: Request) -> None:
        self._span = span
        self.request = request

    def answered(self, reply: Answered | NoAnswer) -> None:
        from opentelemetry.trace import StatusCode  # noqa: PLC0415

        if isinstance(reply, Answered):
            self._span.set_attribute("http.response.status_code", reply.status)
        else:
            self._span.set_attribute("counterfoil.sent", str(reply.sent))
        if isinstance(reply, NoAnswer) or reply.status >= 400:
            self._span.set_status(StatusCode.ERROR)
