"""What the processes of one worker tell each other of beat's ticks."""

import subprocess
import sys

FORKS = """
import os
from counterfoil.workers.ticks import Ticks
ticks = Ticks()
print(ticks.last_s)
child = os.fork()
if child == 0:
    ticks.note(12.5)
    os._exit(0)
os.waitpid(child, 0)
print(ticks.last_s)
"""


def test_a_process_learns_of_a_tick_that_another_one_had_after_the_fork() -> None:
    # In a process of its own: one with threads had better not fork.
    told = subprocess.run([sys.executable, "-P", "-u", "-c", FORKS], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["-inf", "12.5"]
