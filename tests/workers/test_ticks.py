"""What the processes of one worker tell each other of beat's ticks."""

import math
import subprocess
import sys

from counterfoil.workers.ticks import Ticks

FORKS = """
import os
from counterfoil.workers.ticks import Ticks
ticks = Ticks()
print(ticks.last_s)
child = os.fork()
if child == 0:
    ticks.note(12.5, full=False)
    os._exit(0)
os.waitpid(child, 0)
print(ticks.last_s)
"""


def test_a_process_learns_of_a_tick_that_another_one_had_after_the_fork() -> None:
    # In a process of its own: one with threads had better not fork.
    told = subprocess.run([sys.executable, "-P", "-u", "-c", FORKS], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["-inf", "12.5"]


def test_who_is_full_at_two_ticks_in_a_row_asks_the_others_to_look_for_themselves() -> None:
    ticks, heard = Ticks(), list[float]()
    for now_s, full in ((1.0, False), (2.0, True), (3.0, True), (4.0, False), (5.0, True)):
        ticks.note(now_s, full=full)
        heard.append(ticks.last_s)
    assert heard == [1.0, 1.0, -math.inf, 4.0, 4.0]
