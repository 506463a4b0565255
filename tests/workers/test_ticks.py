"""What the processes of one worker tell each other of beat's ticks."""

import math
import os

from counterfoil.workers.ticks import Ticks


def test_a_process_learns_of_a_tick_that_another_one_had_after_the_fork() -> None:
    ticks = Ticks()
    assert ticks.last_s == -math.inf
    child = os.fork()
    if child == 0:
        ticks.note(12.5)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert ticks.last_s == 12.5
