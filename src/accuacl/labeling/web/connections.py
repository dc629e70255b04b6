"""Connections: how long a request may take to arrive, and how many connections there may be at once.

Whoever opens connections and sends half a request on each would otherwise use up the file descriptors of the process,
and lock everybody out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 400  # connections; a browser keeps up to six, for some seconds
READ = 20.0  # seconds for a request to arrive
RATE = 20_000.0  # bytes a second that a longer one must come with
QUIET = 60.0  # seconds in which the same warning is logged once


class BoundedProtocol(H11Protocol):
    """Closes a connection whose request does not arrive in time; and, when there are too many, the one that has
    waited longest for a request.
    """

    most, read, rate = MOST, READ, RATE

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begun, self._received = time.monotonic(), 0
        self._timer = self.loop.call_later(self.read, self._check)
        if len(self.connections) > self.most:
            waiting = [one for one in self.connections if isinstance(one, BoundedProtocol) and one.waiting]
            min(waiting or [self], key=lambda one: one._begun).drop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:  # the first bytes of a request
            self._begun, self._received = time.monotonic(), 0
            self._timer.cancel()
            self._timer = self.loop.call_later(self.read, self._check)
        self._received += len(data)
        super().data_received(data)

    @property
    def waiting(self) -> bool:
        """Whether a request has not arrived in full, so that nothing is lost by closing."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def drop(self) -> None:
        """Close at once; uvicorn forgets the connection when the loop reports that it is lost."""
        self.connections.discard(self)
        self.transport.abort()

    def _check(self) -> None:
        if not self.waiting or self.transport.is_closing() or self.timeout_keep_alive_task is not None:
            return  # between two requests uvicorn has its own, shorter limit
        left = self._begun + self.read + self._received / self.rate - time.monotonic()
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
