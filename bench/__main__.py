"""`make bench` and its likes; what is wanted comes by environment, as make hands it on.

make bench                    everybody, three rounds (ROUNDS=1 PACED=200 BURST=1000 ONLY="counterfoil,dbos steps")
make bench REPORT=1           as well docs/performance.md with a flame graph (REPORT=again: from what was measured last)
make bench QUICK=1            ours and the bare loops, one line of figures
make bench PROFILE=1          a flame graph of a worker, in build/bench
make bench-million            SECONDS=600; QUICK=1: 60
make bench-kill
make bench-fair
"""

import os
import sys

from .fair import run_fair
from .field import BenchError
from .full import Plan, read_results, run_full
from .kill import run_kill
from .million import run_million
from .profile import run_profile
from .quick import run_quick
from .report import write_report


def main() -> int:
    get = os.environ.get

    def flag(name: str) -> bool:
        return get(name, "") not in ("", "0")

    what = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        if what == "kill":
            return 0 if run_kill() else 1
        if what == "fair":
            return 0 if run_fair() else 1
        if what == "million":
            return 0 if run_million(float(get("SECONDS", "") or (60 if flag("QUICK") else 600))) else 1
        if flag("QUICK"):
            return 0 if run_quick() else 1
        if flag("PROFILE"):
            run_profile()
            return 0
        plan = Plan(
            rounds=int(get("ROUNDS") or Plan.rounds),
            paced=int(get("PACED") or Plan.paced),
            burst=int(get("BURST") or Plan.burst),
            only=tuple(filter(None, get("ONLY", "").split(","))),
        )
        again = get("REPORT") == "again"
        rows = read_results() if again else run_full(plan)
        if flag("REPORT"):
            if not again:
                run_profile()
            sys.stdout.write(f"{write_report(rows)}\n")
    except BenchError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
