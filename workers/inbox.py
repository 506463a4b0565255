"""Where submit messages become operations, or dead letters with the reason. One a process, made after the fork."""

import logging
from collections.abc import Callable

import psycopg
from sqlalchemy import func, select

from ..ledger.client import Call, Client
from ..ledger.database import Database
from ..ledger.dead_letters import MAX_LETTERS_AN_HOUR, write_dead_letter
from ..ledger.digest import sha256
from ..ledger.errors import CounterfoilError, CreateStopped, InputRefused
from .messages import Message, MessageRefused
from .producers import Producer, Producers
from .settings import Settings

log = logging.getLogger(__name__)

RETRY_S = 1.0
HOLD_S = 15.0
"""How long a message waits in the process for the ledger before it goes back to the broker. With one last look (5 s to
connect) this stays under the 25 s that a worker's soft shutdown leaves: a held message dies with its process."""

GIVE_UP_S = 60.0
"""Where the broker doesn't take it back either, the message is lost after this, with an error in the log."""


class NotNow(CounterfoilError):
    """The message could be neither handed in nor buried: the ledger is away, or the producers file can't be used."""

    code = "E_NOT_NOW"


class Inbox:
    """Takes messages for one fleet, whatever they hold."""

    def __init__(self, database_url: str, fleet: str, producers: Producers, *, allow_unsigned: bool = False) -> None:
        self._database_url = database_url
        self._fleet = fleet
        self._producers = producers
        self._allow_unsigned = allow_unsigned
        # One connection: a process takes one message at a time.
        self._database = Database(database_url, fleet=fleet, pool_size=1)
        self._clients: dict[Producer, Client] = {}

    @classmethod
    def load(cls, settings: Settings) -> "Inbox":
        """Connects nothing yet. Raises SettingsError."""
        producers = Producers(settings.producers_file)
        return cls(settings.require_database_url(), settings.fleet, producers, allow_unsigned=settings.allow_unsigned)

    def take(self, message: Message) -> str:
        """Hand the call in, or keep the message with the reason. Returns "" or the dead letter's code; either is
        committed then. A message that comes again is harmless: the same request finds its own operation.

        Raises NotNow; then nothing was written.
        """
        try:
            refusal = self._refusal(message)
            if refusal is not None:
                self._bury(message, refusal)
        except CounterfoilError as error:
            raise NotNow(f"{error.code}: {error.message}") from error
        except psycopg.Error as error:
            # Time limits, a full disk, a standby: not the sender's to mend. The error's own text holds the parameters.
            raise NotNow(f"the database refuses ({type(error).__name__}, SQLSTATE {error.sqlstate}).") from error
        return "" if refusal is None else refusal.code

    def _refusal(self, message: Message) -> CounterfoilError | None:
        """Hand the call in; what comes back is the message's own fault and would be the same for ever."""
        try:
            self._hand_in(message)
        except (InputRefused, CreateStopped) as refusal:
            return refusal
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            return MessageRefused(f"the ledger can't store it (SQLSTATE {error.sqlstate}).")
        except (CounterfoilError, psycopg.Error):
            raise
        except Exception as error:
            log.exception("a fault in taking the submit message with sha256 %s", sha256(message.body).hex())
            return CounterfoilError(f"a fault of the worker's ({type(error).__name__}); its log says where.")
        return None

    def _hand_in(self, message: Message) -> None:
        producer = message.authenticate(self._producers, allow_unsigned=self._allow_unsigned)
        request = message.request()
        call = Call(request.target, request.tool, request.arguments, request.call_node_id)
        client = self._client(producer)

        def work() -> None:
            with self._database.begin() as connection:
                request.check_age(connection.execute(select(func.counterfoil.ledger_now())).scalar_one())
                client.submit_in(connection, [call])

        self._database.again(work)

    def _client(self, producer: Producer) -> Client:
        """A producer's door. Only its checks and statements are used: the connection is the inbox's, so a thousand keys
        don't open a thousand."""
        if producer not in self._clients:
            self._clients[producer] = Client(
                self._database_url, namespace=producer.namespace, principal=producer.principal, fleet=self._fleet
            )
        return self._clients[producer]

    def _bury(self, message: Message, refusal: CounterfoilError) -> None:
        why = f"{refusal.message} {refusal.next_step}".strip()
        with self._database.begin() as connection:
            kept = write_dead_letter(
                connection, self._fleet, code=refusal.code, why=why, key_id=message.shown_key, body=message.body
            )
        what = (refusal.code, message.shown_key, sha256(message.body).hex(), why)
        if kept:
            log.warning("dead letter: %s, key %r, sha256 %s: %s", *what)
        else:
            log.error(
                "not kept, since this hour has its %d dead letters: %s, key %r, sha256 %s: %s",
                MAX_LETTERS_AN_HOUR,
                *what,
            )

    def close(self) -> None:
        """Close the connections."""
        self._database.dispose()


def deliver(
    message: Message,
    take: Callable[[Message], str],
    put_back: Callable[[], bool],
    *,
    now_s: Callable[[], float],
    wait: Callable[[float], object],
) -> bool:
    """Bring a message home: into the ledger, or after `HOLD_S` back to the broker. False when it was lost, with an
    error in the log, since neither took it for `GIVE_UP_S`.

    `now_s` is a monotonic clock, `wait` pauses for so many seconds.
    """
    started_s = now_s()
    told = False
    while True:
        try:
            take(message)
        except NotNow as error:
            digest = sha256(message.body).hex()
            if not told:
                log.warning("submit message with sha256 %s waits: %s", digest, error.message)
                told = True
            held_s = now_s() - started_s
            if held_s >= HOLD_S and put_back():
                log.warning("submit message with sha256 %s went back to the queue", digest)
                return True
            if held_s >= GIVE_UP_S:
                what = (message.shown_key, digest, error.message)
                log.error("LOST: the submit message of key %r with sha256 %s: %s", *what)  # noqa: TRY400  says all
                return False
            wait(RETRY_S)
        else:
            return True
