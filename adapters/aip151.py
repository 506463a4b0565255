"""AIP-151 (google.longrunning) over HTTP/JSON: what to ask. What answers mean is in `aip151_answers.py`.

The method that starts an operation is declared (`routes.submit`), and so is how its request id travels (AIP-155:
`key: {body: requestId}`), since a server that does not know the member rejects it. `done` carries the result, so
nothing is fetched; a cancel is acknowledged and shows later, as error 1.
"""

from . import aip151_answers as answers
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
)
from .profile import BucketScope, Lookup, Profile, ReplyReplay

PROTOCOL = "aip-151"

PROFILE = Profile(
    protocol=PROTOCOL,
    lookup=Lookup.NONE,
    absence=None,
    definite_codes=frozenset(answers.REJECTIONS.values()),
    not_processed_statuses=frozenset(),
    can_cancel=True,
    cancel_is_evidence=False,
    reply_replay=ReplyReplay.NEVER,
    result_separate=False,
    watches_input=False,
    settle_s=5.0,
    bucket_scope=BucketScope.TARGET,
    declares=frozenset({"routes", "key", "headers"}),
)


class Aip151(DeclaredAdapter):
    """The adapter. Stateless: the declaration comes with each verb (`Endpoint.api`)."""

    profile = PROFILE
    cancel_body = b"{}"

    def read_submit(self, endpoint: Endpoint, call: Call, reply: Reply) -> SubmitOutcome:
        """Pure: kept evidence reads the same in another worker."""
        return answers.read_submit(endpoint, HttpApi.of(endpoint.api), reply)

    def read_lookup(self, endpoint: Endpoint, api: HttpApi, reply: Reply, *, by_id: bool) -> LookupOutcome:
        """Operations under the key, listed by the service's own filter, or the one under an id that we chose."""
        return answers.read_lookup(endpoint, reply, by_id=by_id)

    def poll(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """`GetOperation`: status and, when it is over, the result inline."""
        api = HttpApi.of(endpoint.api)
        route = api.route("status")
        assert route is not None, "the protocol's own declaration has one"
        reply = yield from ask(endpoint, api, route.url(endpoint.url, id=task.task_id, name=task.task_id))
        return reply if isinstance(reply, Refused) else answers.read_operation(endpoint, task.task_id, reply)

    def fetch(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        """The result comes with the status, so this is `GetOperation` again."""
        return self.poll(endpoint, task)

    def read_cancel(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> CancelOutcome:
        """Pure, as `read_submit`."""
        return answers.read_cancel(endpoint, reply)
