"""HTTP 202 and its kin, one adapter for all: status monitors, location polling, keys of every make.

Nothing about such an API can be asked, so its operator declares it (`http_api.py`), and the declared routes are the
contract. This file says what to ask; what answers mean is in `http202_answers.py`.
"""

from . import http202_answers as answers
from .contract import (
    Call,
    Endpoint,
    Exchange,
    RemoteTask,
    Reply,
)
from .declared import DeclaredAdapter
from .http_answers import ask
from .http_api import HttpApi
from .outcomes import (
    CancelOutcome,
    LookupOutcome,
    Observation,
    Refused,
    SubmitOutcome,
    Terminal,
)
from .profile import BucketScope, Lookup, Profile, ReplyReplay

PROTOCOL = "http-202"

PROFILE = Profile(
    protocol=PROTOCOL,
    # lookup, cancel and a separate result are what the declaration says (`HttpApi.of_profile`)
    lookup=Lookup.NONE,
    absence=None,
    # HTTP statuses of a rejection are declared (`rejections`): they are the API's, not the protocol's.
    definite_codes=frozenset(),
    not_processed_statuses=frozenset(),
    can_cancel=False,
    cancel_is_evidence=False,
    reply_replay=ReplyReplay.NEVER,
    result_separate=False,
    watches_input=False,
    settle_s=5.0,
    bucket_scope=BucketScope.TARGET,
    declares=frozenset(HttpApi.model_fields) | {"preset"},
)


class Http202(DeclaredAdapter):
    """The adapter. Stateless: the declaration comes with each verb (`Endpoint.api`)."""

    profile = PROFILE

    def read_submit(self, endpoint: Endpoint, call: Call, reply: Reply) -> SubmitOutcome:
        """Pure: kept evidence reads the same in another worker."""
        return answers.read_submit(endpoint, HttpApi.of(endpoint.api), reply)

    def read_lookup(self, endpoint: Endpoint, api: HttpApi, reply: Reply, *, by_id: bool) -> LookupOutcome:
        """What the server holds under the key."""
        return answers.read_lookup(endpoint, api, reply, by_id=by_id)

    def poll(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """The status, and the result in the same exchange where the server names its place and no route is declared."""
        api = HttpApi.of(endpoint.api)
        reply = yield from ask(endpoint, api, answers.status_url(endpoint, api, task.task_id))
        if isinstance(reply, Refused):
            return reply
        observed = answers.read_status(endpoint, api, task, reply)
        if not isinstance(observed, answers.Elsewhere):
            return observed
        reply = yield from ask(endpoint, api, observed.url, see_other=True)
        if isinstance(reply, Refused):
            return reply
        return answers.read_result(endpoint, api, reply, terminal=Terminal.COMPLETED, status=observed.status)

    def fetch(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """The declared route of the result; without one it comes with the status."""
        api = HttpApi.of(endpoint.api)
        route = api.route("result")
        if route is None:
            return (yield from self.poll(endpoint, task))
        reply = yield from ask(
            endpoint, api, route.url(endpoint.url, id=task.task_id, name=task.task_id), see_other=True
        )
        if isinstance(reply, Refused):
            return reply
        terminal = Terminal(task.terminal or Terminal.COMPLETED)
        return answers.read_result(endpoint, api, reply, terminal=terminal, status=terminal.value)

    def read_cancel(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> CancelOutcome:
        """Pure, as `read_submit`."""
        return answers.read_cancel(endpoint, HttpApi.of(endpoint.api), task, reply)
