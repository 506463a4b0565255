"""The one process that owns a development stack's servers: `python -m counterfoil.console.supervisor`.

It holds the state folder's lock for life, ends what a killed predecessor left, starts the servers, says so on a pipe,
and waits for a signal, for the end of its holder, or for a server that ends by itself. Then it stops them all.
If it is killed itself, the kernel tells the servers (Linux); elsewhere the next supervisor ends them.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import cast

import psutil

from .devservers import SERVERS, PortTakenError, Server, new_record, open_log, stop_process, wait_ready, with_port
from .devstate import (
    SERVER_NAMES,
    DevStackError,
    DevState,
    Layout,
    ProcessIdentity,
    ServerName,
    StateLock,
    read_state,
    write_state,
)

READY_DEADLINE_S = 30.0
# How late the end of the holder (a test run, a notebook) is noticed; a look costs one system call.
_LOOK_S = 0.25
_PORT_TRIES = 3


class Report:
    """What the starter hears, one JSON object a line; it may have gone away, which is its own affair."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def say(self, **fact: object) -> None:
        try:
            os.write(self._handle, json.dumps(fact).encode() + b"\n")
        except OSError:
            self.close()

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class Supervisor:
    """The servers of one state folder, from start to stop."""

    def __init__(self, layout: Layout, names: Iterable[ServerName], report: Report) -> None:
        self._layout = layout
        self._names = tuple(names)
        self._report = report
        self._state = DevState()
        self._running: list[tuple[Server, subprocess.Popen[bytes]]] = []
        self.ending = threading.Event()

    def run(self, holder_pid: int | None) -> int:
        """Start, wait, stop. Returns the exit code: 0 unless a server could not start or ended by itself."""
        try:
            self._take_over()
            try:
                self._start()
                self._report.say(ready=self._state.ready)
                self._report.close()
                return self._watch(holder_pid)
            finally:
                self._stop()
        except (DevStackError, OSError) as error:
            print(error, file=sys.stderr)
            self._report.say(error=str(error))
            return 1

    def _take_over(self) -> None:
        before = read_state(self._layout) or DevState()
        end_leftovers(before)
        self._state = DevState(supervisor=ProcessIdentity.of(os.getpid()), servers=before.servers)

    def _start(self) -> None:
        for name in self._names:
            self._state.servers.setdefault(name, new_record(name))
        self._save()  # a password is on disk before the data that it opens
        for name in self._names:
            if not self.ending.is_set():
                self._start_server(name)
        self._state.ready = not self.ending.is_set()
        self._save()

    def _start_server(self, name: ServerName) -> None:
        self._report.say(progress=f"starting {name}")
        for tries_left in reversed(range(_PORT_TRIES)):
            server = SERVERS[name](self._layout, self._state.servers[name])
            server.prepare()
            server.record = with_port(name, server.record)
            process = server.start()
            self._running.append((server, process))
            server.record.process = ProcessIdentity.of(process.pid)
            self._state.servers[name] = server.record
            self._save()
            try:
                wait_ready(server, process, self._layout, READY_DEADLINE_S)
            except PortTakenError:
                self._running.pop()
                if not tries_left:
                    raise
                continue
            server.set_up()
            return

    def _watch(self, holder_pid: int | None) -> int:
        while not self.ending.wait(_LOOK_S):
            if holder_pid is not None and os.getppid() != holder_pid:
                break
            for server, process in self._running:
                if process.poll() is not None:
                    print(f"{server.name} ended by itself (exit {process.returncode}): stopping.", file=sys.stderr)
                    return 1
        return 0

    def _stop(self) -> None:
        self._state.ready = False
        with suppress(OSError):  # a full disk must not keep the servers from being stopped
            self._save()
        while self._running:
            server, process = self._running.pop()
            if process.poll() is None:
                stop_process(psutil.Process(process.pid), server.stopping)
                process.wait()
            server.record.process = None
        self._state.supervisor = None
        self._save()

    def _save(self) -> None:
        write_state(self._layout, self._state)


def end_leftovers(state: DevState) -> bool:
    """End the servers that a killed supervisor left running, and strike them from the state. Returns whether any ran.

    The caller holds the lock, so they are nobody's. Only a process whose pid and start agree with the record is
    touched.

    Raises:
        DevStackError: one can't be ended.
    """
    any_ran = False
    for name, record in state.servers.items():
        if record.process is not None and (process := record.process.find()) is not None:
            stop_process(process, SERVERS[name].stopping)
            any_ran = True
        record.process = None
    state.supervisor, state.ready = None, False
    return any_ran


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("state_dir", type=Path)
    parser.add_argument("--root-data-dir", type=Path, required=True)
    parser.add_argument("--servers", required=True)
    parser.add_argument("--report-handle", type=int, required=True)
    parser.add_argument("--holder-pid", type=int, help="stop when this parent is gone; without: go into the background")
    arguments = parser.parse_args()
    if arguments.holder_pid is None and os.fork() > 0:
        return 0
    report = Report(arguments.report_handle)
    layout = Layout.at(arguments.state_dir, arguments.root_data_dir)
    lock = StateLock.try_acquire(layout)
    if lock is None:
        report.say(busy=True)
        return 0
    with open_log(layout, "supervisor") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    names = [cast("ServerName", name) for name in arguments.servers.split(",") if name in SERVER_NAMES]
    supervisor = Supervisor(layout, names, report)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: supervisor.ending.set())
    with lock:
        return supervisor.run(arguments.holder_pid)


if __name__ == "__main__":
    sys.exit(main())
