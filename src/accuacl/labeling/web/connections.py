"""Connections: how long a request may take to arrive and an answer to be read, and how many connections there may be.

Whoever opens connections and sends half a request on each, or many requests whose answers they never read, would
otherwise use up the file descriptors of the process, and lock everybody out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import h11
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 400  # connections; a browser keeps up to six, for some seconds
READ = 20.0  # seconds for a request to arrive
RATE = 20_000.0  # bytes a second that a longer one must come with
WRITE = 20.0  # seconds after which a peer must have taken some more of its answer
AHEAD = 10  # requests that may follow others whose answers are not there yet; browsers send none
QUIET = 60.0  # seconds in which the same warning is logged once


class BoundedProtocol(H11Protocol):
    """Closes a connection whose request does not arrive in time, or whose answer is not read. When there are too many,
    the one that has kept the server waiting longest gives way to the new one.
    """

    most, read, rate, write, ahead = MOST, READ, RATE, WRITE, AHEAD
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # `pause_writing` is called as soon as anything is left in the buffer
        self._ahead = 0
        self._begin()
        if len(self.connections) > self.most:
            others = [one for one in self.connections if isinstance(one, BoundedProtocol) and one is not self]
            min(others, key=lambda one: (one.serving, one._since)).drop()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:  # the first bytes of a request
            self._ahead = 0
            if not self.flow.write_paused:
                self._begin()
        self._received += len(data)
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state is h11.DONE and self.conn.trailing_data[0]:  # another request has come already
            self._ahead += 1
            if self._ahead > self.ahead:
                self.headers.append(CLOSE_HEADER)
                self.cycle.keep_alive = False

    def on_response_complete(self) -> None:
        if not self.flow.write_paused:
            self._begin()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._begin()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._begin()

    @property
    def waiting(self) -> bool:
        """Whether a request has not arrived in full, so that nothing is lost by closing."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    @property
    def serving(self) -> bool:
        """Whether the peer waits for the server, not the server for the peer."""
        answered = self.cycle is None or self.cycle.response_complete
        return not (answered or self.waiting or self.flow.write_paused)

    def drop(self) -> None:
        """Close at once; uvicorn forgets the connection when the loop reports that it is lost."""
        self.connections.discard(self)
        self.transport.abort()

    def _begin(self) -> None:
        """From now on the server waits for the peer: for a request, or until it takes more of the answer."""
        self._since, self._received, self._unread = time.monotonic(), 0, self.transport.get_write_buffer_size()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(self.write if self.flow.write_paused else self.read, self._check)

    def _check(self) -> None:
        if self.flow.write_paused:
            before, self._unread = self._unread, self.transport.get_write_buffer_size()
            if self._unread < before:
                self._timer = self.loop.call_later(self.write, self._check)
            else:
                self.drop()
        elif self.waiting and not self.transport.is_closing() and self.timeout_keep_alive_task is None:
            # between two requests uvicorn has its own, shorter limit
            left = self._since + self.read + self._received / self.rate - time.monotonic()
            if left > 0 and self.conn.their_state is h11.SEND_BODY:
                self._timer = self.loop.call_later(left, self._check)
            else:
                self.drop()


class Seldom(logging.Filter):
    """Passes the same message once in a while only: nobody can fill the disk with warnings of their requests."""

    def __init__(self, quiet: float = QUIET) -> None:
        super().__init__()
        self.quiet, self._last = quiet, dict[Any, float]()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log it."""
        now, key = time.monotonic(), (record.name, record.levelno, record.msg)
        if record.exc_info or now - self._last.get(key, -self.quiet) >= self.quiet:
            self._last[key] = now
            return True
        return False
