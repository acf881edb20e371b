"""Lines on standard error that never make the host wait: when nobody reads them, they are dropped."""

import contextlib
import os
import queue
import threading

_WAITING = 256
_LAST_WORDS = 1.0


class Lines:
    """One thread writes, straight to the descriptor, so that a full pipe holds no lock that anybody else needs."""

    def __init__(self, descriptor: int = 2) -> None:
        self._descriptor = descriptor
        self._queue: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._write, name="tensorviz-lines", daemon=True)
        self._thread.start()

    def say(self, text: str) -> None:
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(text)

    def close(self) -> None:
        """Waits a moment for what is still to be written."""
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(None)
            self._thread.join(_LAST_WORDS)

    def _write(self) -> None:
        while (text := self._queue.get()) is not None:
            with contextlib.suppress(OSError):
                os.write(self._descriptor, text.encode("utf-8", "replace"))
