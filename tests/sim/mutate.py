"""Only the mutants whose names hold these words: `python -m counterfoil.tests.sim.mutate lock epoch`.

Writes down by what each was noticed (mutants/hints.json), so that the next campaign tries that first.
"""

import logging
import sys

from . import ledgerdb
from .__main__ import play_mutants
from .lanes import TEMPLATE
from .mutants import check_all_apply, keep_hints, load_mutants


def main(words: list[str]) -> int:
    logging.disable(logging.CRITICAL)
    wanted = [mutant for mutant in load_mutants() if not words or any(word in mutant.name for word in words)]
    print("\n".join(check_all_apply(wanted)) or f"{len(wanted)} apply", flush=True)
    with ledgerdb.server() as stack:
        ledgerdb.make_template(stack, TEMPLATE)
        answers = play_mutants(stack, wanted, tell=lambda one: print(_line(one), flush=True))
    keep_hints(answers)
    return 0 if all(one["killed"] for one in answers) else 1


def _line(one: dict[str, object]) -> str:
    mark = "killed" if one["killed"] else "LIVES "
    return f"{mark} {one['took_s']:6.1f} s {one.get('runs', '?'):>4}  {one['mutant']}: {one['why']} [{one.get('by')}]"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
