"""What a profile and a policy mean for a call, in words: for people who decide whether to trust a tool with it."""

from ..ledger.policy import Policy
from ..workers.targets import Target
from .probe import Tool

LABELS = {
    "long": "can it be long",
    "lost_submit": "lost submit",
    "cancel": "cancel",
    "person": "a person",
    "limits": "assumed",
}
"""What is told of each tool, with what people see beside it."""

_TAKES_TASKS = ("optional", "required")


KEYED = "counterfoil_lookup"
"""The lookup tool of a server that its owner made keyed (docs/tool-owners.md), under its usual name."""


def tool_words(tool: Tool, target: Target, *, keyed: bool = False) -> dict[str, str]:
    """One sentence or two for each of LABELS. `keyed`: the server has the tool KEYED."""
    policy = target.policy(tool.name)
    return {
        "long": _long(tool, target, policy),
        "lost_submit": _lost_submit(policy, keyed=keyed),
        "cancel": _cancel(policy),
        "person": _person(target, policy),
        "limits": _limits(tool, target, policy),
    }


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
        "Yes, where the server makes it a task, which it alone decides call by call; else it has to answer within "
        f"{span(policy.answer_by_s)} (`answer_by_s`)."
    )


_ABSENT = {
    "unique": "what the server does not hold is sent once more under the same key, which makes no second operation",
    "closes": "what the server does not hold, it refuses from then on, and it is sent once more under the same key",
    "bounded": "what the server does not hold after a while is taken as never sent, which is your own risk",
    None: "that the server holds nothing proves nothing, and asks a person",
}


def _lost_submit(policy: Policy, *, keyed: bool) -> str:
    if policy.lookup == "none" and keyed:
        return (
            f"Could be looked up: the server has the tool {KEYED}. Declare it, and a lost submit closes itself: "
            f"`lookup: {{tool: {KEYED}, absence: unique}}`. Until then a person looks at the server."
        )
    if policy.lookup == "none":
        return (
            "Can't be looked up: the tool offers no key. Nothing is sent a second time; a person looks at the server "
            "and says what became of it."
        )
    if policy.lookup == "replay":
        return (
            "The same bytes are sent again under the same key, which the server answers with the first call's task or "
            f"result; it remembers a key for {span(policy.key_lifetime_s)}."
        )
    return f"Is looked up by its submission key, without a person where the answer is clear; {_ABSENT[policy.absence]}."


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
    elif policy.absence is None:
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


def size(number: int) -> str:
    """A size as people say it: `1 MiB`, `500 bytes`."""
    for unit, length in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if number >= length and number % length == 0:
            return f"{number // length} {unit}"
    return f"{number} bytes"
