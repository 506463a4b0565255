"""Everything the ledger raises. `code` is stable and documented in docs/errors.md; the text says what to do next.

CounterfoilError: the base
- InputRefused: what the caller handed in can't be used (E_ARGUMENTS_…, E_CALL_NODE_INVALID, E_TARGET_UNKNOWN …)
  - CallNodeConflict (E_CALL_NODE_CONFLICT): this call node already stands for another request
- CreateStopped (E_CREATE_OFF, E_ADAPTER_DRAINING): new operations are switched off
- NotSelected (E_NOT_SELECTED): the call node belongs to the old path, for ever
- NoSuchOperation (E_NOT_FOUND)
- StillRunning (E_STILL_RUNNING): the wait is over, the operation is not; nothing was changed
- StaleEpoch (E_STALE_EPOCH): this process serves an epoch that is over
- RecoverFirst (E_RECOVER_FIRST): the database was promoted or restored; nothing may be sent yet
- LedgerUnavailable (E_LEDGER_UNAVAILABLE): the database can't be reached
- SchemaOutdated (E_SCHEMA): the tables are missing, or older than this release
- ReleaseTooOld (E_RELEASE_TOO_OLD): a migration shut this release out
"""


class CounterfoilError(Exception):
    """Base of all errors a caller may see. `code` starts with `E_`; `next_step` is what the reader should do now."""

    code = "E_INTERNAL"

    def __init__(self, message: str, *, code: str | None = None, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.next_step = next_step

    def __str__(self) -> str:
        tail = f" {self.next_step}" if self.next_step else ""
        return f"{self.code}: {self.message}{tail}"


class InputRefused(CounterfoilError):
    code = "E_INPUT"


class CallNodeConflict(InputRefused):
    code = "E_CALL_NODE_CONFLICT"


class CreateStopped(CounterfoilError):
    code = "E_CREATE_OFF"


class NotSelected(CounterfoilError):
    """This call node is the old path's business, now and for ever (SPEC section 8). It is recorded: act on it."""

    code = "E_NOT_SELECTED"


class NoSuchOperation(CounterfoilError):
    code = "E_NOT_FOUND"


class StillRunning(CounterfoilError):
    """The caller's patience ended. The operation goes on and nothing was changed (SPEC section 3)."""

    code = "E_STILL_RUNNING"


class StaleEpoch(CounterfoilError):
    code = "E_STALE_EPOCH"


class RecoverFirst(CounterfoilError):
    code = "E_RECOVER_FIRST"


class LedgerUnavailable(CounterfoilError):
    code = "E_LEDGER_UNAVAILABLE"


class StoodStill(LedgerUnavailable):
    """The database ended a transaction because this process did nothing in it for seconds: nothing of it was written,
    and no row is at fault."""


class SchemaOutdated(CounterfoilError):
    code = "E_SCHEMA"


class ReleaseTooOld(CounterfoilError):
    """The ledger was brought up to a version that this release can't live with."""

    code = "E_RELEASE_TOO_OLD"
