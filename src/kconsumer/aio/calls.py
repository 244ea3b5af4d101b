"""LoopCalls: the calls of a consumer wait on an event loop, without a thread; a cancelled call takes no record.

Owns: the order of exclusive calls, the futures that the descriptor completes, the task in which coroutines of the
application's callbacks run. Threads: the loop's. Never: takes a record before the task that returns it has been
resumed, cancels a callback because the call in which it began has been cancelled.

A poll() sleeps on one future. 1. The network thread writes to the descriptor. 2. The loop calls _on_readable, which
completes the future. 3. The task is resumed, and only then looks for records. A task that is cancelled between 2 and 3
has taken no record, and the next task in line looks before it sleeps.
"""

from __future__ import annotations

import asyncio
import collections
import contextvars
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from kconsumer._core.consumer.call import Question
from kconsumer._core.consumer.loop_core import LoopCore, share_anext
from kconsumer.aio.inner import Inner
from kconsumer.aio.loop import TURN, LoopWatch
from kconsumer.data.call import Call
from kconsumer.errors import KafkaError, exception_for

__all__ = ["LoopCalls"]

R = TypeVar("R")

# The consumer whose callback this task runs, or a task that this one has made.
_serving: contextvars.ContextVar[Any] = contextvars.ContextVar("kconsumer_serving", default=None)
_CLOSED = "Consumer closed"


class LoopCalls(LoopCore):
    """The building blocks of AIOConsumer's methods."""

    _inner: Inner
    _lets_go: ClassVar[bool] = True  # a list that is collected does not keep the fetched memory that it is made from
    _watch: LoopWatch | None = None
    _closing: asyncio.Task[None] | None = None
    _callbacks_task: asyncio.Task[Any] | None = None  # coroutines of callbacks, of which a call may have been cancelled
    _sleeper: asyncio.Future[bool] | None = None
    _finishes = False  # whether _finish() does anything

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        share_anext(cls)

    def __init__(self, inner: Inner) -> None:
        self._inner = inner
        self._line: collections.deque[asyncio.Future[bool | None]] = collections.deque()
        self._asking: dict[Question, asyncio.Future[None]] = {}
        self._attach(inner)

    # ---- entering

    def _enter(self) -> None:
        """Check, at the start of every call, that the running loop is this consumer's loop.

        Raises:
            RuntimeError: the running loop is another one, or no loop runs.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._inner._check_open()  # the child of a fork has none either
            raise
        if self._bound() is not loop:
            if self._bound() is not None:
                self._inner._check_open()
                raise RuntimeError("this AIOConsumer belongs to another event loop: make one in each loop")
            self._inner._check_open()
            self._watch = LoopWatch(loop, self._descriptor(), self, "_on_readable")
            self._bind(loop)
            unfinished, self._inner._unfinished = self._inner._unfinished, None
            if unfinished is not None:
                self._begin_serving(*unfinished)

    def _enter_exclusive(self, timeout: float | None) -> int | None:
        """As _enter(); returns when the call ends."""
        self._enter()
        self._refuse_in_callback()
        return self._begin(timeout)

    def _in_callback(self) -> bool:
        return _serving.get() is self and self._callbacks_task is not None and not self._callbacks_task.done()

    def _refuse_in_callback(self) -> None:
        if self._in_callback():
            raise exception_for(KafkaError._STATE, "poll, consume, consume_batch, getone, getmany and close cannot be "
                                "awaited in a callback of the same consumer: the call that runs the callback waits for "
                                "its end")

    def _check_not_closing(self) -> None:
        if self._closing is not None:
            raise RuntimeError(_CLOSED)

    # ---- one exclusive call after another

    async def _take_turn(self, deadline: int | None) -> bool:
        """Wait for the exclusive calls before this one; _end_turn() must follow. False: the deadline has passed."""
        self._check_not_closing()
        if not self._taken and not self._line:
            self._taken = True
            return True
        loop = self._bound()
        mine: asyncio.Future[bool | None] = loop.create_future()  # True: the turn is ours; None: there is none any more
        self._line.append(mine)
        timer = None
        if deadline is not None:
            timer = loop.call_later(self._seconds_until(deadline), _complete, mine, False)
        try:
            await mine
            self._check_not_closing()
        except BaseException:
            if mine.done() and not mine.cancelled() and mine.result():
                self._end_turn()
            raise
        finally:
            if mine in self._line:
                self._line.remove(mine)
            if timer is not None:
                timer.cancel()
        return bool(mine.result())

    def _end_turn(self) -> None:
        while self._line:
            following = self._line.popleft()
            if not following.done():
                following.set_result(True)
                return
        self._taken = False

    # ---- waiting

    async def _let_others_run(self) -> None:
        await TURN
        self._turn_done()

    async def _wait(self, deadline: int | None) -> bool:
        """Wait for records, callbacks, a wakeup or the deadline. False: the deadline passed earlier."""
        if deadline is not None and self._seconds_until(deadline) <= 0:
            return False
        timer = None
        woken = True
        asleep = self._begin_wait()
        try:
            if asleep:
                loop = self._bound()
                self._sleeper = sleeper = loop.create_future()
                assert self._watch is not None
                self._watch.hold(self)
                if deadline is not None:
                    timer = loop.call_later(self._seconds_until(deadline), _complete, sleeper, False)
                woken = await sleeper
        finally:
            if timer is not None:
                timer.cancel()
            self._sleeper = None
            self._end_wait(woken)
            if asleep:
                self._turn_done()
            if self._asking:
                self._wake_asking()
            elif self._watch is not None:
                self._watch.hold(None)
        self._check_not_closing()
        return True

    def _on_readable(self) -> None:
        """The loop calls this when the descriptor is readable."""
        self._drain()
        if self._sleeper is not None:
            _complete(self._sleeper, True)
        if self._asking:
            self._wake_asking()

    def _wake_asking(self) -> None:
        """Wake the calls whose response has arrived; or one call, if callbacks wait and no other call would run
        them."""
        serve = self._sleeper is None and self._watch_events()
        for question, future in self._asking.items():
            if question.done or serve:
                serve = serve and question.done
                _complete(future, None)

    async def _answered(self, question: Question) -> Any:
        """Wait for the response and run callbacks meanwhile."""
        loop = self._bound()
        until = question.until_us
        watch = self._watch
        assert watch is not None
        watch.hold(self)
        try:
            while not question.done:
                left = None if until is None else self._seconds_until(until)
                if left is not None and left <= 0:
                    break
                if self._sleeper is None and self._watch_events() and await self._served_events():
                    continue
                future = self._asking[question] = loop.create_future()
                if question.done:
                    break
                timer = None if left is None else loop.call_later(min(left, _LONGEST_S), _complete, future, None)
                try:
                    await future
                finally:
                    if timer is not None:
                        timer.cancel()
        finally:
            self._asking.pop(question, None)
            if not self._asking and self._sleeper is None:
                watch.hold(None)
        return question.take()

    async def _served_events(self) -> bool:
        """Run the callbacks that any call may run. False: other callbacks run, and this call is woken after them."""
        if self._in_callback():
            await self._run_call(self._event_callbacks())
        elif self._callbacks_task is None:
            await self._serve(self._event_callbacks())
        else:
            return False
        return True

    # ---- calls, which are generators

    async def _run_call(self, call: Call[R], step: Any = None) -> R:
        """Drive a call on the loop; `step`: the value that it has already yielded."""
        answer: Any = None
        failure: BaseException | None = None
        try:
            while True:
                if step is None:
                    try:
                        step = call.send(answer) if failure is None else call.throw(failure)
                    except StopIteration as end:
                        result: R = end.value
                        return result
                answer = failure = None
                try:
                    answer = await (self._answered(step) if isinstance(step, Question) else step)
                except BaseException as raised:
                    failure = raised
                step = None
        finally:
            failure = None  # no cycle through its traceback

    async def _call(self, call: Call[R]) -> R:
        """Run a method that sends requests to brokers."""
        self._enter()
        return await self._run_call(call)

    async def _attend(self) -> None:
        """Do the work that must precede records, such as callbacks."""
        while self._callbacks_task is not None:
            await self._settled()
        bits = self._attention()
        if bits:
            await self._run_callbacks(bits)
            self._settle(bits)

    async def _run_callbacks(self, bits: int) -> None:
        call = self._callbacks(bits)
        if call is not None:
            await self._serve(call)

    async def _serve(self, call: Call[Any]) -> Any:
        """Drive a call that runs callbacks: functions here; from the first coroutine on in a separate task. If this
        call is cancelled, that task continues, and the next call waits for it."""
        while self._callbacks_task is not None:
            await self._settled()
        try:
            step = call.send(None)
        except StopIteration as end:
            return end.value
        made = self._begin_serving(call, step)
        await asyncio.wait([made])
        if self._callbacks_task is made:
            self._callbacks_task = None
        return made.result()

    def _begin_serving(self, call: Call[Any], step: Any) -> asyncio.Task[Any]:
        context = contextvars.copy_context()
        context.run(_serving.set, self)
        made: asyncio.Task[Any] = context.run(self._bound().create_task, self._run_call(call, step))
        made.add_done_callback(self._callbacks_ended)
        self._callbacks_task = made
        return made

    def _callbacks_ended(self, _: asyncio.Task[Any]) -> None:
        if self._asking:
            self._wake_asking()

    async def _settled(self) -> None:
        """Wait for the running callbacks. Their exceptions are raised here if the call that started them was
        cancelled."""
        task = self._callbacks_task
        assert task is not None
        await asyncio.wait([task])
        if self._callbacks_task is task:
            self._callbacks_task = None
            task.result()

    # ---- records

    async def _poll(self, timeout: float | None) -> Any:
        deadline = self._enter_exclusive(timeout)
        if not await self._take_turn(deadline):
            return None
        try:
            self._begin_poll()
            while True:
                if self._turn_due():
                    await self._let_others_run()
                await self._attend()
                fatal = self._fatal()
                if fatal is not None:
                    return await self._told_fatal(fatal, deadline, self._fatal_message)
                message = self._take_message()
                if message is not None or not await self._wait(deadline):
                    return message
        finally:
            self._end_turn()

    async def _consume(self, num_messages: int, timeout: float | None, at_hand: bool = False) -> list[Any]:
        """Implement consume(); `at_hand`: wait for the first record only."""
        most = self._checked_count(num_messages)
        deadline = self._enter_exclusive(timeout)
        out: list[Any] = []
        if not await self._take_turn(deadline):
            return out
        taken = False
        self._begin_taking(self._lets_go)
        try:
            while len(out) < most:
                if self._turn_due():
                    await self._let_others_run()
                if out and self._rebalance_waits():
                    break
                await self._attend()
                fatal = self._fatal()
                if fatal is not None:
                    out.append(await self._told_fatal(fatal, deadline, self._fatal_message))
                    break
                if not self._collect(out, most) and ((at_hand and out) or not await self._wait(deadline)):
                    break
            taken = await self._finish(out) if self._finishes else True
        finally:
            self._end_taking(taken)
            self._end_turn()
        return out

    async def _finish(self, out: list[Any]) -> bool:
        """Hook of DeserializingAIOConsumer: process records before they are taken. False: they are put back."""
        return True

    async def _told_fatal(self, fatal: tuple[KafkaError, bool], deadline: int | None, made: Callable[[], R]) -> R:
        """Return the fatal error on every call, with a delay, so that no loop spins."""
        if fatal[1]:
            left = 0.1 if deadline is None else min(0.1, self._seconds_until(deadline))
            await asyncio.sleep(max(left, 0))
        return made()

    # ---- the end

    async def _close(self, ending: Callable[[], Call[None]]) -> None:
        """End the waiting calls, then the consumer. If this call is cancelled, the end continues."""
        if self._closing is None:
            if not self._inner._is_open():
                return
            self._rebind()
            self._refuse_in_callback()
            self._closing = self._bound().create_task(self._end(ending))
            if self._sleeper is not None:
                _complete(self._sleeper, True)
            for waiting in self._line:
                _complete(waiting, None)
        task = self._closing
        await asyncio.wait([task])
        task.result()

    def _rebind(self) -> None:
        """Allow close() on another loop after this consumer's loop was closed."""
        bound = self._bound()
        if bound is not None and bound.is_closed() and self._watch is not None:
            self._watch.end()
            self._watch = self._callbacks_task = self._sleeper = None
            self._taken = False
            self._line.clear()
            self._asking.clear()
            self._bind(None)
        self._enter()

    async def _end(self, ending: Callable[[], Call[None]]) -> None:
        failure: BaseException | None = None
        try:
            while self._callbacks_task is not None:
                try:
                    await self._settled()
                except Exception as raised:
                    failure = raised
            if self._taken:
                # The waiting tasks are resumed, and leave.
                last: asyncio.Future[bool | None] = self._bound().create_future()
                self._line.appendleft(last)
                await last
            self._taken = True
            await self._run_call(ending())
        finally:
            if not self._inner._is_open() and self._watch is not None:
                self._watch.end()
        if failure is not None:
            raise failure

    def __del__(self) -> None:
        watch = self.__dict__.get("_watch")
        inner = self.__dict__.get("_inner")
        if watch is not None:
            watch.end(now=False)
        if inner is not None and inner._is_open():
            warnings.warn(f"{type(self).__name__} was not closed: await its close(), or use `async with`",
                          ResourceWarning, stacklevel=2, source=self)


_LONGEST_S = 86400.0


def _complete(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)

