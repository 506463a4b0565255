"""Server-sent events: bytes in, events out (WHATWG HTML, section 9.2). Incremental, bounded, no I/O."""

import re
from collections.abc import Mapping

MAX_EVENT_BYTES = 8 * 1024 * 1024
_LINE_END = re.compile(rb"\r\n|\n|\r")


def is_stream(headers: Mapping[str, str]) -> bool:
    """Whether an answer with these headers (lower-case names) is an event stream."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "text/event-stream"


class BadStream(ValueError):
    """One event is larger than the cap: the stream can't be read on."""


class SseParser:
    """Feed chunks as they come; each call returns the data of the events that became complete, exact bytes.

    Only events of the type `message` (named or by default) are returned, as MCP sends no others. Comments, ids, retry
    hints and unknown fields are skipped.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._buffer = bytearray()
        self._searched = 0
        self._data: list[bytes] = []
        self._event_bytes = 0
        self._type = b""
        self._at_start = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that end within `chunk`. Raises BadStream when one exceeds the cap."""
        self._buffer += chunk
        events: list[bytes] = []
        taken = 0
        while (end := _LINE_END.search(self._buffer, max(taken, self._searched))) is not None:
            if end.group() == b"\r" and end.end() == len(self._buffer):
                break  # its "\n" may be the next chunk's first byte
            self._line(bytes(self._buffer[taken : end.start()]), events)
            taken = end.end()
        del self._buffer[:taken]
        # a line that arrives in many chunks is searched once, not once a chunk
        self._searched = max(0, len(self._buffer) - 1)
        self._check(len(self._buffer))
        return events

    def close(self) -> list[bytes]:
        """The stream is over: what stands without the blank line that should end it.

        The standard throws such an event away. Here it is handed out, because a JSON object with its last brace is
        whole, and dropping one would turn an answered submit into a person's case.
        """
        events: list[bytes] = []
        self._line(bytes(self._buffer).rstrip(b"\r"), events)
        self._line(b"", events)
        self._buffer.clear()
        return events

    def _line(self, line: bytes, events: list[bytes]) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._event_bytes += len(value) + 1
            self._check(0)
        elif name == b"event":
            self._type = value

    def _dispatch(self, events: list[bytes]) -> None:
        if self._data and self._type in (b"", b"message"):
            events.append(b"\n".join(self._data))
        self._data, self._event_bytes, self._type = [], 0, b""

    def _check(self, pending_bytes: int) -> None:
        if self._event_bytes + pending_bytes > self._max_event_bytes:
            raise BadStream(f"an event of more than {self._max_event_bytes} bytes")
