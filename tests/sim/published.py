"""The states and moves of docs/spec.md section 2, with the lanes whose evidence may cause each: written out by hand, so
that a table that went wrong in the product is seen here."""

ENDS = frozenset({"ACCEPTED", "CANCELLED_ACCEPTED", "REFUSED"})

_READS = {"poll", "fetch", "submit", "lookup", "cancel"}
"""Whose evidence can hold a result."""

PUBLISHED: dict[tuple[str, str], frozenset[str]] = {
    (source, target): frozenset(lanes)
    for source, targets in {
        "SUBMITTING": {
            "WORKING": {"submit", "lookup"},
            "INPUT_REQUIRED": {"submit"},
            "SUBMISSION_UNKNOWN": {"submit", "door"},
            "TERMINAL_OBSERVED": {"submit", "timer"},
            "CANCELLED_ACCEPTED": {"door", "submit"},
            "REFUSED": {"submit", "timer"},
        },
        "SUBMISSION_UNKNOWN": {
            "WORKING": {"lookup", "submit", "door"},
            "NOT_FOUND_SAFE": {"lookup"},
            "TERMINAL_OBSERVED": {"lookup", "submit"},
        },
        "NOT_FOUND_SAFE": {
            "SUBMITTING": {"submit"},
            "WORKING": {"submit", "lookup"},
            "TERMINAL_OBSERVED": {"submit"},
            "SUBMISSION_UNKNOWN": {"door"},
            "REFUSED": {"submit", "timer"},
            "CANCELLED_ACCEPTED": {"door", "submit"},
        },
        "WORKING": {
            "INPUT_REQUIRED": {"poll"},
            "TERMINAL_OBSERVED": {"poll"},
            "CANCEL_REQUESTED": {"door", "timer", "submit", "lookup"},
        },
        "INPUT_REQUIRED": {
            "WORKING": {"poll", "answer"},
            "SUBMITTING": {"door", "answer"},
            "TERMINAL_OBSERVED": {"poll", "timer"},
            "CANCEL_REQUESTED": {"door", "timer"},
            "CANCELLED_ACCEPTED": {"door", "timer"},
        },
        "CANCEL_REQUESTED": {
            "CANCELLED_ACCEPTED": {"cancel", "poll"},
            "TERMINAL_OBSERVED": {"cancel", "poll"},
        },
        "TERMINAL_OBSERVED": {"FETCHING_RESULT": _READS, "ACCEPTED": {"submit", "timer", "poll"}},
        "FETCHING_RESULT": {"ACCEPTED": _READS},
    }.items()
    for target, lanes in targets.items()
}
for _source in {source for source, _ in PUBLISHED}:
    # "any non-terminal -> ACCEPTED": a verdict, a person's or `on_unknown`.
    PUBLISHED[_source, "ACCEPTED"] = PUBLISHED.get((_source, "ACCEPTED"), frozenset()) | {"door", "timer"}

LANE_OF_STATE: dict[str, frozenset[str]] = {
    "SUBMITTING": frozenset({"submit", "sync"}),
    "SUBMISSION_UNKNOWN": frozenset({"lookup"}),
    "NOT_FOUND_SAFE": frozenset({"submit", "sync"}),
    "WORKING": frozenset({"poll"}),
    "INPUT_REQUIRED": frozenset({"timer", "poll", "answer"}),
    "CANCEL_REQUESTED": frozenset({"poll", "cancel"}),
    "TERMINAL_OBSERVED": frozenset({"fetch"}),
    "FETCHING_RESULT": frozenset({"fetch"}),
}
