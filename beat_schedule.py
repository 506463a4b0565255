"""What beat ticks, and how often. Data only; `workers/app.py` reads it.

Beat ticks `plan`, and `plan` asks the ledger which rows are due. The jitter of the polls is therefore not here but in
each row's `due_at`, drawn when the row is written and only ever upward (SPEC section 3: never sooner than the server
asked). A jittered tick would move every operation of the fleet at once; a jittered `due_at` spreads them.

A tick is harmless twice, late or lost: two beats may run without a lock, and a worker that has seen no tick for
`self_tick_s` plans by itself. `expires` is one period, so that ticks don't pile up behind a fleet that is away.
"""

PLAN_EVERY_S = 0.5
"""A committed cancel waits for the next plan and must leave within a second (SPEC section 9): at 1 s its first byte
left after 1.08 s in the slowest percent, with claim, connection, token and intent behind the wait."""

BEAT_SCHEDULE = {
    "plan": {
        "task": "counterfoil.plan",
        "schedule": PLAN_EVERY_S,
        "options": {"expires": PLAN_EVERY_S},
    },
}
