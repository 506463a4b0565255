"""Counterfoil's producer in a paced measurement: `python -m counterfoil.bench.producer COUNT RATE WORK_S NAME`.

Each operation is handed in by itself, in a transaction of its own, as a service does that handles requests.
"""

import sys

from ..ledger.client import Client
from .peers.work import Work, moments, wait_for_begin, wait_for_end

TARGET, TOOL = "remote", "work"


def main() -> None:
    work, name = Work.read(sys.argv[1:])
    client = Client()
    client.operations(limit=1)  # connected
    wait_for_begin()
    for number in moments(work):
        call = f"{name}-{number}"
        client.submit(TARGET, TOOL, {"call": call, "work_s": work.work_s}, call_node_id=call)
    wait_for_end()


if __name__ == "__main__":
    main()
