"""Connections: how long a request may take to arrive and an answer to be read, and how many connections there may be.

Whoever opens connections and sends half a TLS handshake or half a request on each, or many requests whose answers they
never read, would otherwise use up the memory and the file descriptors of the process, and lock everybody out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import time
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 400  # connections; a browser keeps up to six, for some seconds
READ = 20.0  # seconds for a TLS handshake, and then for a request to arrive
RATE = 20_000.0  # least bytes per second of a longer one
WRITE = 20.0  # seconds after which a peer must have taken some more of its answer
FLUSH = 86400.0  # seconds that asyncio gives all of an answer over TLS after its end; WRITE is what limits it
AHEAD = 10  # requests that may follow others whose answers are not there yet; browsers send none
QUIET = 60.0  # seconds in which the same warning is logged once


class ServerConfig(uvicorn.Config):
    """Leaves TLS to the protocol: asyncio's own server reports a connection only after its handshake, so that those
    before it could be neither counted nor closed.
    """

    tls: ssl.SSLContext | None = None

    def load(self) -> None:
        super().load()
        self.tls, self.ssl = self.ssl, None


class BoundedProtocol(H11Protocol):
    """Closes a connection whose handshake or request does not arrive in time, or whose answer is not read. When there
    are too many, the one that has kept the server waiting longest gives way to the new one.
    """

    config: ServerConfig
    most, read, rate, write, ahead = MOST, READ, RATE, WRITE, AHEAD
    _timer: asyncio.TimerHandle | None = None
    _handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wire = transport
        transport.set_write_buffer_limits(0)  # `pause_writing` is called as soon as anything is left in the buffer
        self._ahead = 0
        self._begin()
        if len(self.connections) > self.most:
            others = [peer for peer in self.connections if isinstance(peer, BoundedProtocol) and peer is not self]
            min(others, key=lambda peer: (peer.serving, peer._since)).drop()
        if self.config.tls is not None:
            transport.pause_reading()  # until there is TLS to read it
            self._early = b""
            self._handshake = self.loop.create_task(self._shake_hands(self.config.tls))

    async def _shake_hands(self, tls: ssl.SSLContext) -> None:
        """From now on `transport` encrypts, and what it has encrypted goes through `_wire`."""
        transport = None
        if not self._wire.is_closing():  # it may have been dropped already
            with contextlib.suppress(OSError):  # including SSLError
                transport = await self.loop.start_tls(
                    self._wire, self, tls, server_side=True, ssl_shutdown_timeout=FLUSH
                )
        self._handshake = None
        if transport is None or transport.is_closing():
            self.drop()  # asyncio does not report that a connection is lost before its handshake is done
            return
        super().connection_made(transport)
        transport.set_write_buffer_limits(1)  # TLS pauses at the limit, not above it: with 0 it would for good
        self._begin()
        if self._early:
            self.data_received(self._early)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._handshake is not None:  # asyncio reads on before `start_tls` returns
            self._early += data
            return
        if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:  # the first bytes of a request
            self._ahead = 0
            if not self.unread:
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
        if self.transport is not self._wire or not self.unread:  # TLS may leave an answer in the buffer without a pause
            self._begin()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._begin()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._begin()

    @property
    def unread(self) -> int:
        """How many bytes wait for the peer to read. If any wait for encryption, some that are encrypted do too."""
        return self._wire.get_write_buffer_size()

    @property
    def waiting(self) -> bool:
        """Whether a request has not arrived in full, so that nothing is lost by closing."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    @property
    def serving(self) -> bool:
        """Whether the peer waits for the server, not the server for the peer."""
        answered = self.cycle is None or self.cycle.response_complete
        return not (answered or self.waiting or self.unread)

    def drop(self) -> None:
        """Close at once; uvicorn forgets the connection when the loop reports that it is lost."""
        self.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._wire.abort()

    def _begin(self) -> None:
        """From now on the server waits for the peer: for a request, or until it takes more of the answer."""
        self._since, self._received, self._unread = time.monotonic(), 0, self.unread
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(self.write if self.unread else self.read, self._check)

    def _check(self) -> None:
        if self.unread:
            before, self._unread = self._unread, self.unread
            if self._unread < before:
                self._timer = self.loop.call_later(self.write, self._check)
            else:
                self.drop()
        elif self.transport.is_closing():
            self.drop()  # TLS would wait for the peer to close the connection too
        elif self.waiting and self.timeout_keep_alive_task is None:
            # between two requests uvicorn has its own, shorter limit
            left = self._since + self.read + self._received / self.rate - time.monotonic()
            if left > 0 and self.conn.their_state is h11.SEND_BODY:
                self._timer = self.loop.call_later(left, self._check)
            else:
                self.drop()


class RateLimitFilter(logging.Filter):
    """Passes the same message only once in a while, so that requests cannot fill the disk with warnings."""

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
