"""What a profile and a policy mean for a call, in words: for people who decide whether to trust a tool with it."""

from ..adapters.profile import Profile
from ..ledger.policy import Policy
from ..workers.targets import Target
from .probe import Tool

LABELS = {
    "long": "can it be long",
    "lost_submit": "lost submit",
    "sent_again": "sent again",
    "cancel": "cancel",
    "questions": "questions",
    "person": "a person",
    "limits": "assumed",
    "declare": "to declare",
}
"""What is told of each tool, with what people see beside it."""

_TAKES_TASKS = ("optional", "required")


def tool_words(tool: Tool, target: Target, *, keyed: bool = False) -> dict[str, str]:
    """One sentence or two for each of LABELS; no `declare` where nothing is left to be declared. `keyed`: the server
    has the lookup tool of its protocol's profile."""
    policy = target.policy(tool.name)
    told = {
        "long": _long(tool, target, policy),
        "lost_submit": _lost_submit(policy, target.profile, keyed=keyed),
        "sent_again": _sent_again(policy),
        "cancel": _cancel(policy),
        "questions": _questions(target, policy),
        "person": _person(target, policy),
        "limits": _limits(tool, target, policy),
    }
    left = _to_declare(tool, target, policy, keyed=keyed)
    return {**told, "declare": " ".join(left)} if left else told


def _long(tool: Tool, target: Target, policy: Policy) -> str:
    if policy.sync:
        bound_s = target.sync_bound_s(tool.name)
        bound = "its owner's word, which you have to set" if bound_s is None else span(bound_s)
        return (
            f"Only as long as its published bound (`sync_bound_s`: {bound}): it blocks until it is over, and past the "
            "bound the answer is lost."
        )
    if tool.task_support in _TAKES_TASKS:
        return "Yes, as a task: the tool takes calls as tasks, and a task is polled until it is over."
    return (
        "Yes, where the server answers with work that can be polled, which it alone decides call by call; else it has "
        f"to answer within {span(policy.answer_by_s)} (`answer_by_s`)."
    )


def _lost_submit(policy: Policy, profile: Profile, *, keyed: bool) -> str:
    """What becomes of it."""
    if policy.lookup == "none":
        could = (
            f"Could be looked up: the server has the tool {profile.lookup_tool}, which is not declared."
            if keyed
            else "Can't be looked up: no way to ask for it by its key is declared."
        )
        return f"{could} A person looks at the server and says what became of it."
    if policy.lookup == "replay":
        return "Is found by sending it again: the server answers with the first call's task or result."
    by = f" (`{policy.lookup_tool}`)" if policy.lookup_tool else ""
    return f"Is looked up by its submission key{by}, without a person where the answer is clear."


_AFTER_ABSENCE = {
    "unique": "Once, under the same key, where the lookup finds nothing: the key makes no second operation.",
    "closes": "Once, under the same key, where the lookup finds nothing: the server then refuses the first one.",
    "bounded": "Once, under the same key, where the lookup finds nothing for a while: your own risk, and no proof.",
    None: "Not once it may have arrived: that the lookup finds nothing proves nothing, and asks a person.",
}


def _sent_again(policy: Policy) -> str:
    """Whether a submit may leave a second time, and why that is safe."""
    if policy.lookup == "none":
        return "Not once it may have arrived: nothing says that the server would know the repeat from a second call."
    if policy.lookup == "replay":
        return (
            "Safely: the same bytes under the same key. Its owner says that the server remembers a key for "
            f"{span(policy.key_lifetime_s)}."
        )
    if policy.max_attempts == 1 and policy.absence is not None:
        return "Not once it may have arrived: `max_attempts` is 1."
    return _AFTER_ABSENCE[policy.absence]


_REPLY_AGAIN = {
    "safe": "is sent again: the server takes the answer to a question once",
    "read_first": "is sent again only where a reading shows that the question is still open",
    "never": "is not sent again: where reading doesn't show that it arrived, a person is asked",
}


def _questions(target: Target, policy: Policy) -> str:
    if not target.profile.watches_input:
        return "Can't ask any: the protocol has none, or nobody would hear them."
    return (
        f"It may ask people, and waits {span(policy.input_deadline_s)} for an answer. A reply that is lost "
        f"{_REPLY_AGAIN[policy.reply_replay]}."
    )


def _to_declare(tool: Tool, target: Target, policy: Policy, *, keyed: bool) -> list[str]:
    """What only an operator can say, and would spare a person or a refusal."""
    profile, left = target.profile, list[str | None]()
    if policy.lookup == "none":
        left.append(_lookup_to_declare(tool, target, keyed=keyed))
    elif policy.lookup != "replay" and policy.absence is None:
        left.append("`absence` beside the lookup, if the server's owner says why nothing found means nothing ran.")
    if policy.sync and target.sync_bound_s(tool.name) is None:
        left.append("`sync_bound_s`, the longest that it takes: calls are refused without it.")
    if profile.declares and not policy.can_cancel:
        left.append("`routes.cancel`, if it can be cancelled.")
    if policy.effect_case == "always":
        left.append(
            "`effects: false`, if it changes nothing; or `cancel_stops: true`, if a cancel stops the work for certain."
        )
    return [one for one in left if one is not None]


def _lookup_to_declare(tool: Tool, target: Target, *, keyed: bool) -> str | None:
    name, api = target.profile.lookup_tool, target.api(tool.name)
    if keyed:
        return f"`lookup: {{tool: {name}, absence: unique}}`: a lost submit then closes itself."
    if name:
        return f"`lookup: {{tool: {name}}}`, if the server's owner says that it answers by our key."
    if api is None:
        return None
    if not api.carries_key:
        return "`key`, how a submission key travels, if the API takes one; and then a `lookup`."
    return (
        "`lookup: {replay: true}`, if a repeat of the key gets the first call's answer; or `routes.lookup`, if the API "
        "can be asked by it."
    )


def _cancel(policy: Policy) -> str:
    if not policy.can_cancel:
        return "Can't be cancelled: refused at the door, and nothing moves."
    if policy.cancel_is_evidence:
        return "Its answer is the end of the task. The work may run on behind it" + (
            ": a person is asked to check for effects." if policy.effect_case == "always" else "."
        )
    return (
        "Its answer only says that the request was heard: the status is read until it is over. No end within "
        f"{span(policy.cancel_confirm_s)}: a person is asked, and reading goes on."
    )


def _person(target: Target, policy: Policy) -> str:
    """When one will be needed, the likeliest first."""
    when = []
    if policy.lookup == "none":
        when.append("when the answer to a submit is lost")
    elif policy.lookup != "replay" and policy.absence is None:
        when.append("when a lost submit is not found by its key")
    when.append("when the result is missing, too large or against its schema")
    if not policy.sync:
        when.append(f"when the server no longer knows the task (asked {policy.not_found_asks} times)")
        if policy.on_budget == "reconcile":
            when.append(f"when it isn't over after {span(policy.wait_budget_s)}")
    if target.profile.watches_input:
        when.append(f"when the tool asks a question (it waits {span(policy.input_deadline_s)} for an answer)")
    alone = ""
    if policy.on_unknown == "abandon":
        alone = f" Nobody speaks within {span(policy.on_unknown_after_s)}: it is closed as abandoned."
    return f"Is asked {', '.join(when[:-1])}{', and ' if len(when) > 1 else ''}{when[-1]}.{alone}"


def _limits(tool: Tool, target: Target, policy: Policy) -> str:
    endpoint, limit = target.endpoint(), target.limit
    polls = (
        f"a poll every {span(policy.poll_min_s)} to {span(policy.poll_max_s)} as the server suggests, else every "
        f"{span(policy.poll_default_s)}; {span(policy.wait_budget_s)} of waiting"
    )
    unbound = policy.sync and target.sync_bound_s(tool.name) is None
    answer = "its bound" if unbound else span(policy.answer_by_s)
    return "; ".join(
        [
            *([] if policy.sync else [polls]),
            f"a submit leaves within {span(policy.send_by_s)} and is answered within {answer}",
            f"a result of {size(policy.max_result_bytes)}, any answer of {size(endpoint.max_response_bytes)}",
            f"{limit.qps:g} requests a second, {limit.burst} at once.",
        ]
    )


def span(seconds: float) -> str:
    """A duration as people say it: `90 s`, `5 min`, `2 h`."""
    for unit, length_s, from_s in (("h", 3600, 3600), ("min", 60, 120)):
        if seconds >= from_s and seconds % length_s == 0:
            return f"{seconds / length_s:g} {unit}"
    return f"{seconds:g} s"


def age(seconds: float) -> str:
    """A measured duration, in the coarsest unit of which there are two: `119 s`, `61 min`, `47 h`, `3 d`."""
    for unit, length_s in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length_s:
            return f"{seconds // length_s:.0f} {unit}"
    return f"{seconds:.0f} s"


def size(number: int) -> str:
    """A size as people say it: `1 MiB`, `500 bytes`."""
    for unit, length in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if number >= length and number % length == 0:
            return f"{number // length} {unit}"
    return f"{number} bytes"
