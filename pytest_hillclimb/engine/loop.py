"""Event loops on daemon threads, on which the coroutines of user code run.

A coroutine may block its loop. From outside that shows as a beat that does not come back; which task is running then,
and for which call, is read from another thread. Nothing can stop a blocked thread, so a loop can be left behind whole.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

LATE_S = 0.25  # a beat that is out for longer means that the loop is blocked, not just busy

_CALL: ContextVar[AsyncCall | None] = ContextVar("hillclimb_call", default=None)


class AsyncCall:
    """One awaitable of a trial on a loop. It is settled once: with a value, an error, or as lost with its loop."""

    def __init__(self, awaitable: Awaitable[Any], label: str, extend: Callable[[float], None]) -> None:
        self.label = label
        self.extend = extend  # gives its trial more time
        self.submitted = 0.0
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None
        self.lost = False
        self.over = False  # the coroutine itself has ended, in time or late
        self.given_up = False  # its trial has ended without it
        self.loop: LoopThread | None = None
        self.task: asyncio.Task[None] | None = None
        self.context = copy_context()  # of the lane: what the call prints is its trial's, wherever it is started
        self._awaitable = awaitable
        self._settling = threading.Lock()

    async def run(self) -> None:
        """Await the awaitable and keep what came of it; control-flow exceptions must not reach the loop."""
        try:
            self.value = await self._awaitable
        except BaseException as error:
            self.error = error
        finally:
            self.end()

    def end(self) -> None:
        """Settle the call: the coroutine has ended."""
        with self._settling:
            self.over = True
        self.done.set()

    def lose(self) -> bool:
        """Settle the call as lost, because its loop is left behind; return False if it has ended after all."""
        with self._settling:
            if self.over:
                return False
            self.lost = True
        self.done.set()
        return True

    def discard(self) -> None:
        """Close an awaitable that will never be awaited, so that Python does not warn of it."""
        close = getattr(self._awaitable, "close", None)
        if close is not None:
            close()


class LoopThread:
    """An event loop on a daemon thread of its own."""

    def __init__(self, name: str) -> None:
        self.calls: set[AsyncCall] = set()
        self.abandoned = False
        self.seen_at = 0.0
        self._ending = False
        self.loop = asyncio.new_event_loop()
        self._owners: WeakKeyDictionary[asyncio.Task[Any], AsyncCall] = WeakKeyDictionary()
        self._beat_sent: float | None = None
        self._blocker: AsyncCall | None = None
        self.loop.set_task_factory(self._new_task)
        self.loop.set_default_executor(_DaemonExecutor())
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, call: AsyncCall) -> None:
        """Start *call* on this loop."""
        call.loop, call.submitted = self, monotonic()
        self.calls.add(call)
        self.loop.call_soon_threadsafe(self._start, call, context=call.context.copy())

    def cancel(self, call: AsyncCall) -> None:
        """Ask the task of *call* to end; whether it does is its own affair."""
        if call.task is not None:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                self.loop.call_soon_threadsafe(call.task.cancel)

    def lateness(self, now: float) -> float:
        """Return for how long the loop has not answered, in seconds; send a beat if none is out."""
        sent = self._beat_sent
        if sent is None:
            self._beat_sent = now
            with suppress(RuntimeError):  # the loop was closed meanwhile
                self.loop.call_soon_threadsafe(self._beat, now)
            return 0.0
        return now - sent

    def blocker(self) -> AsyncCall | None:
        """Return the call whose task is running right now, None when no call's is."""
        task = asyncio.current_task(self.loop)
        self._blocker = self._owners.get(task) if task is not None else None
        return self._blocker

    def abandon(self) -> list[AsyncCall]:
        """Leave the loop behind and return the calls that were on it."""
        self.abandoned = True
        self.loop.set_exception_handler(lambda *_: None)
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self.loop.call_soon_threadsafe(self.loop.stop)
        calls, self.calls = list(self.calls), set()
        return calls

    def wind_up(self) -> None:
        """Cancel what still runs, and stop the loop when all of it has ended."""
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self.loop.call_soon_threadsafe(self._wind_up)

    def end(self, patience: float) -> None:
        """Wait *patience* seconds for the loop to stop, else leave it behind."""
        self._thread.join(patience)
        if self._thread.is_alive():
            self.abandon()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self.abandoned and not self._ending:
            # User code may stop the loop, or end it by SystemExit in a task: that must not touch the calls of others.
            with suppress(BaseException):
                self.loop.run_forever()
        if not self.abandoned:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def _start(self, call: AsyncCall) -> None:
        if call.loop is not self or self.abandoned:
            return
        if call.given_up:
            self.calls.discard(call)
            call.discard()
            return
        _CALL.set(call)
        call.task = self.loop.create_task(call.run())
        call.task.add_done_callback(lambda _: self._settle(call))

    def _settle(self, call: AsyncCall) -> None:
        self.calls.discard(call)
        if not call.over:  # cancelled by other user code before it began
            call.discard()
            call.error = asyncio.CancelledError()
            call.end()

    def _new_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coro: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        context: Context | None = None,
        **more: Any,
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, context=context, **more)
        call = context.get(_CALL) if context is not None else _CALL.get()
        if call is not None:
            self._owners[task] = call
        return task

    def _beat(self, sent: float) -> None:
        self._beat_sent = None
        self.seen_at = monotonic()
        late = self.seen_at - sent
        if late > LATE_S:
            blocker, self._blocker = self._blocker, None
            for call in list(self.calls):
                if call is not blocker:
                    call.extend(late)

    def _wind_up(self) -> None:
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self._ending = True
        if not tasks:
            self.loop.stop()
            return
        asyncio.gather(*tasks, return_exceptions=True).add_done_callback(lambda _: self.loop.stop())


class _DaemonExecutor(ThreadPoolExecutor):
    """An executor whose threads never hold the exit of the process; one thread a call."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=work, name="hillclimb-executor", daemon=True).start()
        return future
