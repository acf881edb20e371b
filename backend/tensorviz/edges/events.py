"""The WebSocket: the state first, then every change. A client that does not keep up is dropped, not buffered for."""

import asyncio
import contextlib

from fastapi import WebSocket

from tensorviz.contracts.base import encode
from tensorviz.contracts.messages import HostEvent, StateEvent
from tensorviz.edges.guard import PROTOCOL
from tensorviz.service import Service

MAX_WAITING = 256
_TRY_AGAIN = 1013
_GOODBYE = 1.0


class _Mailbox:
    """Events from other threads on their way to one client."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[HostEvent] = asyncio.Queue(MAX_WAITING)
        self.full = asyncio.Event()

    def put(self, event: HostEvent) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it the client
            self._loop.call_soon_threadsafe(self._put, event)

    async def get(self) -> HostEvent:
        return await self._events.get()

    def _put(self, event: HostEvent) -> None:
        try:
            self._events.put_nowait(event)
        except asyncio.QueueFull:
            self.full.set()


async def stream_events(websocket: WebSocket, service: Service) -> None:
    await websocket.accept(subprotocol=PROTOCOL)
    mailbox = _Mailbox()
    state, unsubscribe = service.subscribe(mailbox.put)
    tasks = [
        asyncio.ensure_future(_send(websocket, mailbox, state)),
        asyncio.ensure_future(_until_closed(websocket)),
        asyncio.ensure_future(mailbox.full.wait()),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if mailbox.full.is_set():
            await _drop(websocket, tasks[0])
    finally:
        unsubscribe()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _send(websocket: WebSocket, mailbox: _Mailbox, state: StateEvent) -> None:
    await websocket.send_text(encode(state).decode())
    while True:
        await websocket.send_text(encode(await mailbox.get()).decode())


async def _until_closed(websocket: WebSocket) -> None:
    """Clients have nothing to say here; whatever they send is not read as anything."""
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass


async def _drop(websocket: WebSocket, sending: "asyncio.Future[None]") -> None:
    """It may be stuck in a send: that ends first, and the farewell is not waited for."""
    sending.cancel()
    with contextlib.suppress(Exception):
        await asyncio.wait_for(websocket.close(_TRY_AGAIN, "too slow"), _GOODBYE)
