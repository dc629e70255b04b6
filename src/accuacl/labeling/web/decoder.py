"""Images are made for the browser by few threads of their own, within a bounded memory, and kept for a while."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

import anyio

from accuacl.labeling.web.pictures import picture, pixels

AT_ONCE = 2
LARGE = 24_000_000  # pixels: of larger images one is decoded at a time
KEPT = 96 * 2**20  # bytes

Made = tuple[bytes, str]


class Decoder:
    """`await decoder.get(item, side)` is the image as `picture` makes it; the last ones stay in memory.

    Requests that wait hold no thread, so that labels are saved however many images are asked for.
    """

    def __init__(
        self,
        read: Callable[[int], bytes],
        stamp: Callable[[int], Hashable] = lambda item: None,
        kept: int = KEPT,
        large: int = LARGE,
    ) -> None:
        """read: the bytes of an item's image file; stamp: something that is another when the file has changed."""
        self._read, self._stamp, self._kept, self._large = read, stamp, kept, large
        self._made: OrderedDict[Hashable, Made] = OrderedDict()
        self._bytes = 0
        self._turn = threading.Lock()  # of the kept ones
        self._one_large = threading.Lock()
        self._threads: anyio.CapacityLimiter | None = None

    async def get(self, item: int, side: int) -> Made:
        """InputError: there is no such image, or it cannot be shown."""
        key = (item, side, self._stamp(item))
        kept = self._find(key)
        if kept is not None:
            return kept
        if self._threads is None:  # it belongs to the event loop that first uses it
            self._threads = anyio.CapacityLimiter(AT_ONCE)
        return await anyio.to_thread.run_sync(self._make, item, side, key, limiter=self._threads)

    def _make(self, item: int, side: int, key: Hashable) -> Made:
        kept = self._find(key)  # somebody else may have asked for it meanwhile
        if kept is not None:
            return kept
        data = self._read(item)
        if pixels(data) > self._large:
            with self._one_large:
                made = picture(data, side)
        else:
            made = picture(data, side)
        with self._turn:
            self._made[key] = made
            self._bytes += len(made[0])
            while self._bytes > self._kept and self._made:
                self._bytes -= len(self._made.popitem(last=False)[1][0])
        return made

    def _find(self, key: Hashable) -> Made | None:
        with self._turn:
            made = self._made.get(key)
            if made is not None:
                self._made.move_to_end(key)
            return made
