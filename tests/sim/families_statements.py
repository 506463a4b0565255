"""Families of tier B: every statement is a move."""

from . import plans
from .family import (
    BY_KEY,
    EARLY,
    LATER,
    M25,
    M26,
    Family,
)

STATEMENTS = (
    Family(
        "bump against everything",
        M25,
        "unique",
        plans.bumps,
        starts=(*EARLY, *LATER, "over"),
        entry=BY_KEY,
        tier="B",
    ),
    Family("doors against workers", M26, "unique", plans.doors_against_workers, starts=LATER, entry=BY_KEY, tier="B"),
    Family(
        "doors against acceptance",
        M26,
        "blind",
        plans.doors_against_acceptance,
        ("completes", "fails", "is over at once"),
        starts=("working",),
        tier="B",
    ),
    Family(
        "crashes between statements",
        M26,
        "blind",
        plans.crashes_anywhere,
        ("completes", "fails", "is over at once"),
        starts=("working", "sent"),
        tier="B",
    ),
    Family("doors against submits", M26, "blind", plans.doors_against_submits, ("completes",), tier="B"),
    Family("leases against intents", M26, "blind", plans.leases, starts=("cancel asked",), tier="B"),
    Family("two at one desk", M26, "blind", plans.desk, ("completes",), starts=("intent open", "sent"), tier="B"),
    Family("two doors", M26, "blind", plans.doors, tier="B"),
)
