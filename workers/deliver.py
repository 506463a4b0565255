"""Pushes what is ready to the webhooks of its namespaces: a thread of its own in each worker process that has their
file.

At least once: acknowledged in the ledger after the receiver's 2xx, so when a process dies between the two another
pushes the same event again, with the same id. No order is promised. It looks once a tick instead of being told: one
small read a second costs less than a message for every receipt, and there is no message to lose.

What failed is tried again after 1 s, then after twice as long each time, up to an hour; jitter adds up to a quarter.
Two things wait so, the event and its endpoint. The endpoint counts only events that fail for the first time: an event
that its receiver can't digest then backs off alone and holds up nothing behind it. Three days without any success stop
the endpoint, as a 410 does at once, until `resume_webhook`; its events stay in the outbox, where they can be pulled.
"""

import asyncio
import logging
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import httpx

from ..adapters.answers import retry_after_s
from ..adapters.contract import Answered, NoAnswer, Request, Sent
from ..adapters.credentials import CredentialError, Credentials
from ..adapters.guard import Guard
from ..adapters.wire import Transport
from ..adapters.wire_httpx import HttpxTransport
from ..ledger.database import Database
from ..ledger.errors import CounterfoilError
from ..ledger.pushes import Failing, Push, Pushes
from .traces import traceparent
from .webhooks import INLINE_RESULT_BYTES, BadSecretError, Webhook, event_body, secret_key, signed_headers

log = logging.getLogger(__name__)

T = TypeVar("T")

BATCH = 8
"""Events of one endpoint at a time, all out together: fewer than a transport has connections."""

ENDPOINTS = 32
"""Endpoints at a time. A slow one holds one place for one deadline, and nobody else's."""

DEADLINE_S = 15.0
LEASE_S = 2 * DEADLINE_S
"""A batch is over within one deadline, so it is settled well inside its lease."""

MAX_ANSWER_BYTES = 1024 * 1024
"""An answer is read to its end and thrown away; a receiver that says more has failed."""

FIRST_RETRY_S = 1.0
LAST_RETRY_S = 3600.0
JITTER = 0.25
GIVE_UP_S = 3 * 86_400.0


def backoff_s(tries: int, noise: float) -> float:
    """How long after the `tries`-th failure, in seconds. `noise`, from 0 to 1, only makes it later."""
    return min(LAST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(tries - 1, 20)) * (1 + JITTER * noise)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a batch: to acknowledge, to give back for so many seconds, and what it says of the endpoint."""

    delivered: list[Push]
    failed: list[tuple[Push, float]]
    failing: Failing | None


def judge(replies: Sequence[tuple[Push, Answered | NoAnswer]], rng: Callable[[], float]) -> Verdict:
    """A 2xx has it; 410 wants nothing more, ever; anything else is asked again, later."""
    delivered = [push for push, reply in replies if _taken(reply)]
    lost = [(push, reply) for push, reply in replies if not _taken(reply)]
    failed = [(push, backoff_s(push.deliveries, rng())) for push, _ in lost]
    answers = [reply for _, reply in lost if isinstance(reply, Answered)]
    gone = any(answer.status == 410 for answer in answers)
    asked = [retry_after_s(answer.headers) for answer in answers if answer.status in (429, 503)]
    waits_s = [wait_s for wait_s in asked if wait_s is not None]
    if not lost or (delivered and not gone and not waits_s):
        return Verdict(delivered, failed, None)
    blamed = not delivered and any(push.fresh for push, _ in lost)
    failures = max(1, lost[0][0].failures + blamed)
    delay_s = max([backoff_s(failures, rng()), *waits_s])
    return Verdict(delivered, failed, Failing(failures, delay_s, _why(lost[0][1]), gone, GIVE_UP_S))


def _taken(reply: Answered | NoAnswer) -> bool:
    return isinstance(reply, Answered) and 200 <= reply.status < 300


def _why(reply: Answered | NoAnswer) -> str:
    if isinstance(reply, Answered):
        return f"HTTP {reply.status}" + (" (redirects are not followed)" if 300 <= reply.status < 400 else "")
    return "".join(character if character.isprintable() else "?" for character in reply.why[:200])


class Deliverer:
    """Made after a fork, started once, stopped once. `rng` answers from 0 to 1; it looks every `tick_s`."""

    def __init__(
        self,
        database_url: str,
        webhooks: Mapping[str, Webhook],
        credentials: Credentials,
        *,
        fleet: str = "main",
        rng: Callable[[], float],
        tick_s: float = 1.0,
        traced: bool = False,
    ) -> None:
        self._database = Database(database_url, fleet=fleet, pool_size=1)
        self._pushes = Pushes(self._database)
        self._webhooks = webhooks
        self._credentials = credentials
        self._rng = rng
        self._tick_s = tick_s
        self._traced = traced
        self._tls: ssl.SSLContext = httpx.create_ssl_context(trust_env=False)
        self._transports: dict[str, Transport] = {}
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._places = asyncio.Semaphore(ENDPOINTS)
        self._wake = asyncio.Event()
        self._stopping = False
        self._told = ""
        self._calls = ThreadPoolExecutor(1, "counterfoil-pushes")

    def start(self) -> None:
        """Begin. Where the ledger is away it waits for it. Nothing is opened before."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, name="counterfoil-deliver", daemon=True)
        self._thread.start()

    def stop(self, grace_s: float = LEASE_S) -> bool:
        """Take nothing new, bring home what is out, end. True when all came home within `grace_s`."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end)
            self._thread.join(grace_s)
        return not self._thread.is_alive()

    def _end(self) -> None:
        self._stopping = True
        self._wake.set()

    # -- the thread --------------------------------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            self._loop.run_until_complete(self._run())
        finally:
            self._calls.shutdown(wait=False, cancel_futures=True)
            self._database.dispose()
            self._loop.close()

    async def _run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            timer = self._loop.call_later(self._tick_s, self._wake.set)
            with self._surviving():
                await self._look()
            await self._wake.wait()
            timer.cancel()
        await asyncio.gather(*self._busy.values())
        for transport in self._transports.values():
            await transport.aclose()

    async def _look(self) -> None:
        """Begin a batch for every endpoint that is due and has none under way."""
        free = [namespace for namespace in self._webhooks if namespace not in self._busy]
        for namespace in await self._in_ledger(lambda: self._pushes.due(free)):
            self._busy[namespace] = self._loop.create_task(self._batch(self._webhooks[namespace]))

    async def _batch(self, webhook: Webhook) -> None:
        try:
            async with self._places:
                with self._surviving():
                    await self._push(webhook)
        finally:
            del self._busy[webhook.namespace]

    async def _push(self, webhook: Webhook) -> None:
        result_bytes = INLINE_RESULT_BYTES if webhook.include_result else 0
        pushes = await self._in_ledger(
            lambda: self._pushes.take(webhook.namespace, limit=BATCH, lease_s=LEASE_S, result_bytes=result_bytes)
        )
        if not pushes:
            return
        replies = await self._send_all(webhook, pushes)
        verdict = judge(list(zip(pushes, replies, strict=True)), self._rng)
        stopped = await self._in_ledger(
            lambda: self._pushes.settle(webhook.namespace, verdict.delivered, verdict.failed, verdict.failing)
        )
        _tell(webhook, verdict, stopped=stopped)
        if not verdict.failed:
            self._wake.set()  # there may be more

    async def _send_all(self, webhook: Webhook, pushes: Sequence[Push]) -> Sequence[Answered | NoAnswer]:
        try:
            # A secret is read as a token is: at each use, with the same caps.
            read = [await self._credentials.authorization(reference) for reference in webhook.secrets]
            keys = [secret_key(text.removeprefix("Bearer ")) for text in read]
        except (CredentialError, BadSecretError) as error:
            return [NoAnswer(Sent.NO, str(error))] * len(pushes)
        return await asyncio.gather(*(self._send(webhook, keys, push) for push in pushes))

    async def _send(self, webhook: Webhook, keys: Sequence[bytes], push: Push) -> Answered | NoAnswer:
        try:
            body = event_body(push, webhook.namespace)
            headers = (
                ("content-type", "application/cloudevents+json"),
                *signed_headers(push.id, push.now_s, body, keys).items(),
                *((("traceparent", traceparent(push.operation_id, 1)),) if self._traced else ()),
            )
            request = Request("POST", webhook.url, headers, body, deadline_s=DEADLINE_S, max_bytes=MAX_ANSWER_BYTES)
            return await self._transport(webhook).send(request)
        except Exception as error:
            # A bug here must back the event off, or it would go out again and again at the pace of its lease.
            log.exception("a webhook could not be sent")
            return NoAnswer(Sent.MAYBE, f"it could not be sent ({type(error).__name__})")

    def _transport(self, webhook: Webhook) -> Transport:
        found = self._transports.get(webhook.namespace)
        if found is None:
            guard = Guard(allow_private=webhook.allow_private)
            found = self._transports[webhook.namespace] = HttpxTransport(guard, self._credentials, self._tls)
        return found

    async def _in_ledger(self, call: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._calls, call)

    @contextmanager
    def _surviving(self) -> Iterator[None]:
        """Whatever breaks costs a round: leases run out and the next look finds the same rows. Said once."""
        try:
            yield
        except CounterfoilError as error:
            if str(error) != self._told:
                self._told = str(error)
                log.warning("webhooks wait: %s", error)
        except Exception:
            log.exception("a round of webhooks broke")
        else:
            self._told = ""


def _tell(webhook: Webhook, verdict: Verdict, *, stopped: bool) -> None:
    tried, failing = len(verdict.delivered) + len(verdict.failed), verdict.failing
    if failing is not None and stopped:
        log.error(
            "the webhook of namespace %r is stopped: %s. Its events wait in the outbox until it is resumed.",
            webhook.namespace,
            failing.why if failing.gone else f"no success for {GIVE_UP_S / 86_400:g} days, at last {failing.why}",
        )
    elif verdict.failed:
        log.warning(
            "the webhook of namespace %r did not take %d of %d events%s",
            webhook.namespace,
            len(verdict.failed),
            tried,
            "" if failing is None else f": {failing.why}; the next try is in {failing.delay_s:.0f} s",
        )
