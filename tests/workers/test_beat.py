"""Beat ticks on time and rests in between."""

import threading

from celery import Celery
from celery.beat import Scheduler

from counterfoil.workers.beat import Ticker

EVERY_S = 0.03
TICKS = 6


def looks_for(scheduler: type[Scheduler]) -> int:
    """How often beat's loop turns for `TICKS` ticks. The broker is kombu's own in-memory one."""
    app = Celery("ticks", broker="memory://", set_as_current=False)
    app.conf.update(beat_schedule={"tick": {"task": "tick", "schedule": EVERY_S}}, result_expires=None)
    beat = scheduler(app)
    looks = 0
    while beat.schedule["tick"].total_run_count < TICKS:
        looks += 1
        threading.Event().wait(beat.tick())  # real time: Celery's schedules read the wall clock themselves
    beat.close()
    return looks


def test_a_tick_costs_two_looks_where_the_stock_scheduler_spins_for_10_ms() -> None:
    ours, stock = looks_for(Ticker), looks_for(Scheduler)
    assert ours <= 2 * TICKS + 4
    assert stock > 4 * ours, "the stock scheduler no longer spins: this subclass can go"


def test_beat_keeps_its_schedule_in_memory_and_adds_no_task_of_its_own() -> None:
    app = Celery("ticks", broker="memory://", set_as_current=False)
    app.conf.update(beat_schedule={"tick": {"task": "tick", "schedule": EVERY_S}}, result_expires=None)
    beat = Ticker(app)
    assert set(beat.schedule) == {"tick"}
