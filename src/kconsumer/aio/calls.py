"""LoopCalls: the calls of a consumer wait on an event loop, without a thread; a cancelled call takes no record.

Owns: the order of exclusive calls, the futures that the descriptor completes, the task in which coroutines of the
application's callbacks run, the task in which the consumer ends. Threads: the loop's. Never: takes a record before the
task that returns it has been resumed, cancels a callback because the call in which it began has been cancelled (only
close() does).

A poll() sleeps on one future. 1. The network thread writes to the descriptor. 2. The loop calls _on_readable, which
completes the future. 3. The task is resumed, and only then looks for records. A task that is cancelled between 2 and 3
has taken no record, and the next task in line looks before it sleeps.
"""

from __future__ import annotations

import asyncio
import collections
import contextvars
import logging
import warnings
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, TypeVar

from kconsumer._core.consumer.consumer import LoopCore, Question
from kconsumer.aio.inner import Inner
from kconsumer.aio.loop import TURN, LoopWatch
from kconsumer.data.call import Call
from kconsumer.errors import KafkaError, exception_for

__all__ = ["CLOSED", "LoopCalls"]

R = TypeVar("R")

CLOSED = "Consumer closed"
_GRACE_S = 1.0  # what close() allows a coroutine that it has cancelled
_SHARE_S = 0.1  # turn of a call that reads some of the partitions only


class _Run:
    """One run of a consumer's callbacks."""

    __slots__ = ("consumer", "live")

    def __init__(self, consumer: object) -> None:
        self.consumer = consumer
        self.live = True


class _Begins(asyncio.Task[R]):
    """A task that runs to its first wait, also if it is cancelled before: at the end of a loop all tasks are."""

    call: Call[Any]  # that runs callbacks in it; close()'s own task has none
    _begun = False
    _cancelled_before = False

    def cancel(self, msg: Any = None) -> bool:
        if self._begun:
            return super().cancel(msg)
        self._cancelled_before = True
        return True

    def begin(self) -> None:
        """The first step of its coroutine calls this."""
        self._begun = True
        if self._cancelled_before:
            self.cancel()


# The runs of callbacks in which this task works: its own, and those of the tasks that made it.
_running: contextvars.ContextVar[tuple[_Run, ...]] = contextvars.ContextVar("kconsumer_running", default=())


class LoopCalls(LoopCore):
    """The building blocks of AIOConsumer's methods."""

    _inner: Inner
    _lets_go: ClassVar[bool] = True  # a list that is collected does not keep the fetched memory that it is made from
    _watch: LoopWatch | None = None
    _closing: asyncio.Task[None] | None = None
    _sleeper: asyncio.Future[bool] | None = None
    _leaving: asyncio.Task[Any] | None = None  # unsubscribe(), while it waits for other callbacks
    _finishes = False  # whether _finish() does anything
    _finishing: asyncio.Task[Any] | None = None  # the task that is in _finish()
    _given_up = False  # close() has cancelled _finish()
    _unsubscribed = 0  # calls of unsubscribe()

    def __init__(self, inner: Inner) -> None:
        self._inner = inner
        self._identity = object()
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
        return any(run.live and run.consumer is self._identity for run in _running.get())

    def _refuse_in_callback(self) -> None:
        if self._in_callback():
            raise exception_for(KafkaError._STATE, "a callback cannot await poll, consume, consume_batch, getone, "
                                "getmany or close of its consumer: that call would wait for the callback itself")

    def _check_not_closing(self) -> None:
        if self._closing is not None:
            raise RuntimeError(CLOSED)

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

    def _narrow(self, only: frozenset[tuple[str, int]], deadline: int | None) -> int:
        """Let this turn return records of these partitions only. Returns when the turn ends."""
        self._inner._narrow(only)
        return self._sooner(deadline, _SHARE_S)

    def _end_turn(self) -> None:
        if self._inner._only is not None:
            self._inner._widen()
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
        self._check_not_closing()  # close() wakes only a call that sleeps already
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
        self._wake_sleeper()
        if self._asking:
            self._wake_asking()

    def _wake_sleeper(self) -> None:
        if self._sleeper is not None:
            _complete(self._sleeper, True)

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
        elif self._closing is None and (self._callbacks_task is None or self._callbacks_task.done()):
            await self._serve(self._event_callbacks())
        else:
            return False
        return True

    # ---- calls, which are generators

    async def _run_call(self, call: Call[R], step: Any = None, ends: bool = False) -> R:
        """Drive a call on the loop; `step`: the value that it has already yielded; `ends`: it is close()'s, and waits
        for brokers also when it is cancelled."""
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
                except GeneratorExit:
                    call.close()
                    raise
                except BaseException as raised:
                    if ends and isinstance(step, Question) and isinstance(raised, asyncio.CancelledError):
                        continue
                    failure = raised
                step = None
        finally:
            failure = None  # no cycle through its traceback

    async def _call(self, call: Call[R]) -> R:
        """Run a method that sends requests to brokers."""
        self._enter()
        return await self._run_call(call)

    async def _attend(self, in_hand: bool = False) -> bool:
        """Do the work that must precede records, such as callbacks.

        Args:
            in_hand: the call has records, which it must return before a rebalance callback runs.

        Returns:
            False if a rebalance waits and there are records in hand; nothing was done then.
        """
        while self._callbacks_task is not None:
            await self._wait_for_callbacks()
            self._check_not_closing()
        bits = self._attention()
        # After the bits were read: the callbacks of a rebalance that is not in them do not run below.
        if in_hand and self._rebalance_waits():
            return False
        if bits:
            await self._run_callbacks(bits)
            self._check_not_closing()
            self._settle(bits)
            if self._inner._only is not None:
                self._inner._narrow_again()
        return True

    async def _run_callbacks(self, bits: int) -> None:
        call = self._callbacks(bits)
        if call is not None:
            await self._serve(call)

    async def _serve(self, call: Call[Any]) -> Any:
        """Drive a call that runs callbacks: functions here; from the first coroutine on in a separate task. If this
        call is cancelled, that task continues, and the next call waits for it."""
        while self._callbacks_task is not None:
            await self._wait_for_callbacks()
        self._check_not_closing()
        try:
            step = call.send(None)
        except StopIteration as end:
            return end.value
        made = self._begin_serving(call, step)
        await asyncio.wait([made])
        if self._callbacks_task is made:
            self._callbacks_task = None
        return self._outcome(made)

    async def _serve_last(self, call: Call[Any]) -> None:
        """As _serve(), for unsubscribe(): neither its cancellation nor what earlier callbacks raised keeps it from
        leaving."""
        while self._leaving is not None:
            await asyncio.wait([self._leaving])
        if self._callbacks_task is None:
            await self._serve(call)
            return
        self._leaving = leaving = asyncio.Task(self._serve_after_others(call), loop=self._bound())
        leaving.add_done_callback(self._left)
        await asyncio.wait([leaving])
        leaving.result()

    async def _serve_after_others(self, call: Call[Any]) -> None:
        failure: BaseException | None = None
        while self._callbacks_task is not None:
            task = self._callbacks_task
            await asyncio.wait([task])
            if self._callbacks_task is task:
                self._callbacks_task = None
                if not task.cancelled():
                    failure = failure or task.exception()
        await self._serve(call)
        if failure is not None:
            raise failure

    def _left(self, leaving: asyncio.Task[Any]) -> None:
        self._leaving = None

    def _begin_serving(self, call: Call[Any], step: Any) -> asyncio.Task[Any]:
        run = _Run(self._identity)
        made = self._make_task(self._run_callbacks_call(call, step, run), run)
        made.add_done_callback(self._callbacks_ended)
        made.call = call
        self._callbacks_task = made
        return made

    async def _run_callbacks_call(self, call: Call[R], step: Any, run: _Run) -> R:
        _begin()
        try:
            return await self._run_call(call, step)
        finally:
            run.live = False

    def _make_task(self, coroutine: Coroutine[Any, Any, R], run: _Run) -> _Begins[R]:
        """Make a task for a run of callbacks. The loop's task factory might begin it before the caller knows it."""
        context = contextvars.copy_context()
        context.run(_running.set, (*(other for other in _running.get() if other.live), run))
        return context.run(lambda: _Begins(coroutine, loop=self._bound()))

    def _callbacks_ended(self, _: asyncio.Task[Any]) -> None:
        if self._asking:
            self._wake_asking()

    async def _wait_for_callbacks(self) -> None:
        """Wait for the running callbacks. Their exceptions are raised here if the call that started them was
        cancelled."""
        task = self._callbacks_task
        assert task is not None
        await asyncio.wait([task])
        if self._callbacks_task is task:
            self._callbacks_task = None
            self._outcome(task)

    def _outcome(self, callbacks: asyncio.Task[R]) -> R:
        if callbacks.cancelled():
            self._check_not_closing()  # which has cancelled them
        return callbacks.result()

    # ---- records

    async def _poll(self, timeout: float | None, only: frozenset[tuple[str, int]] | None = None) -> Any:
        deadline = self._enter_exclusive(timeout)
        if not await self._take_turn(deadline):
            return None
        try:
            if only is not None:
                deadline = self._narrow(only, deadline)
            self._begin_poll()
            while True:
                if self._turn_due():
                    await self._let_others_run()
                await self._attend()
                fatal = self._fatal()
                if fatal is not None:
                    return await self._repeated_fatal(fatal, deadline, self._fatal_message)
                message = self._take_message()
                if message is not None or not await self._wait(deadline):
                    return message
        finally:
            self._end_turn()

    async def _consume(
        self, num_messages: int, timeout: float | None, at_hand: bool = False,
        only: frozenset[tuple[str, int]] | None = None,
    ) -> list[Any]:
        """Implement consume(); `at_hand`: wait for the first record only; `only`: of these partitions."""
        most = self._checked_count(num_messages)
        deadline = self._enter_exclusive(timeout)
        out: list[Any] = []
        if not await self._take_turn(deadline):
            return out
        taken = False
        unsubscribed = self._unsubscribed
        try:
            if only is not None:
                deadline = self._narrow(only, deadline)
            self._begin_taking(self._lets_go)
            while True:
                while len(out) < most:
                    if self._turn_due():
                        await self._let_others_run()
                    if out and self._unsubscribed != unsubscribed:
                        break
                    unsubscribed = self._unsubscribed
                    if not await self._attend(bool(out)):
                        break
                    fatal = self._fatal()
                    if fatal is not None:
                        out.append(await self._repeated_fatal(fatal, deadline, self._fatal_message))
                        break
                    if not self._collect(out, most) and ((at_hand and out) or not await self._wait(deadline)):
                        break
                if self._finishes and out and self._unsubscribed == unsubscribed:
                    await self._finish_or_end(out)
                taken = not out or self._unsubscribed == unsubscribed
                if taken:
                    return out
                # The partitions have been given back: their next owner returns the records.
                out.clear()
                if most > 1:
                    return out
                self._end_taking(False)
                self._begin_taking(self._lets_go)
        finally:
            self._end_taking(taken)
            self._end_turn()

    async def _finish_or_end(self, out: list[Any]) -> None:
        self._finishing = task = asyncio.current_task()
        try:
            await self._finish(out)
        except asyncio.CancelledError:
            # Python 3.10 does not count cancellations: then this one is close()'s.
            if not self._given_up or getattr(task, "uncancel", int)() > 0:
                raise
            raise RuntimeError(CLOSED) from None
        finally:
            self._finishing = None

    async def _finish(self, out: list[Any]) -> None:
        """Hook of DeserializingAIOConsumer: process records before they are taken."""

    async def _repeated_fatal(self, fatal: tuple[KafkaError, bool], deadline: int | None, made: Callable[[], R]) -> R:
        """Return the fatal error on every call, with a delay, so that no loop spins."""
        if fatal[1]:
            left = 0.1 if deadline is None else min(0.1, self._seconds_until(deadline))
            await asyncio.sleep(max(left, 0))
        return made()

    # ---- the end

    async def _close(self, timeout: float | None, operation: int) -> None:
        """End the waiting calls, then the consumer. If this call is cancelled, the end continues, without the
        coroutines of callbacks."""
        if self._in_child():
            return
        closing = self._closing
        if closing is not None and not closing.done() and closing.get_loop().is_closed():
            closing.get_coro().close()
            closing = None
        if closing is None or closing.done():
            if not self._inner._is_open():
                return
            self._rebind()
            self._refuse_in_callback()
            run = _Run(self._identity)
            end = self._end(timeout, operation, self._deadline(5.0 if timeout is None else timeout), run)
            closing = self._make_task(end, run)
            self._closing = closing
            self._wake_sleeper()
            for waiting in self._line:
                _complete(waiting, None)
        else:
            self._enter()
            self._refuse_in_callback()
        try:
            await asyncio.wait([closing])
        except asyncio.CancelledError:
            closing.cancel()
            raise
        closing.result()

    def _rebind(self) -> None:
        """Allow close() on another loop after this consumer's loop was closed."""
        bound = self._bound()
        if bound is not None and bound.is_closed() and self._watch is not None:
            self._watch.end()
            if self._callbacks_task is not None:
                _abandon(self._callbacks_task)
            self._watch = self._callbacks_task = self._sleeper = self._finishing = self._leaving = None
            self._taken = False
            self._line.clear()
            self._asking.clear()
            self._bind(None)
        self._enter()

    async def _end(self, timeout: float | None, operation: int, deadline: int | None, run: _Run) -> None:
        """The end, in a task. A cancellation cancels what it waits for, but for the brokers' answers."""
        _begin()
        try:
            failure = await self._end_callbacks(deadline)
            await self._end_taking_calls(deadline)
            self._taken = True
            try:
                await self._run_call(self._inner._closing_call(timeout, operation), ends=deadline is not None)
            except asyncio.CancelledError:
                if self._inner._is_open():
                    raise
                self._warn("a callback, or the wait for brokers, was cancelled")
        finally:
            run.live = False
            if not self._inner._is_open():
                if self._watch is not None:
                    self._watch.end()
                self._wake_asking()  # the network thread has ended all questions, the latest ones after CLOSE
                await self._ended()
        if failure is not None:
            raise failure

    async def _end_callbacks(self, deadline: int | None) -> BaseException | None:
        """Wait until the running callbacks have ended. Returns what they raised, if no call raises it."""
        task = self._callbacks_task
        if task is None:
            return None
        if not await self._ends(task, deadline):
            self._warn("cancelling a callback that has not ended")
            task.cancel()
            await self._ends(task, self._deadline(_GRACE_S))
        if self._callbacks_task is not task:
            return None
        self._callbacks_task = None
        if not task.done():
            _abandon(task)
        return None if not task.done() or task.cancelled() else task.exception()

    async def _end_taking_calls(self, deadline: int | None) -> None:
        """Wait until the tasks in exclusive calls have been resumed, and have left."""
        if not self._taken:
            return
        last: asyncio.Future[bool | None] = self._bound().create_future()
        self._line.appendleft(last)
        if not await self._ends(last, deadline):
            if self._finishing is not None:
                self._warn("cancelling a deserializer that has not ended")
                self._given_up = True
                self._finishing.cancel()
            await self._ends(last, self._deadline(_GRACE_S))

    async def _ends(self, awaited: asyncio.Future[Any], deadline: int | None) -> bool:
        """Wait for it. False: the deadline passed earlier, or this task was cancelled."""
        try:
            left = None if deadline is None else max(self._seconds_until(deadline), 0)
            return bool((await asyncio.wait([awaited], timeout=left))[0])
        except asyncio.CancelledError:
            return False

    async def _ended(self) -> None:
        """Hook of DeserializingAIOConsumer: the consumer is closed."""

    def _warn(self, text: str) -> None:
        self._inner._settings.logger.log(logging.WARNING, "CLOSE: %s", text)

    def __del__(self) -> None:
        watch = self.__dict__.get("_watch")
        inner = self.__dict__.get("_inner")
        if watch is not None:
            watch.end(now=False)
        if inner is not None and inner._is_open():
            warnings.warn(f"{type(self).__name__} was not closed: await its close(), or use `async with`",
                          ResourceWarning, stacklevel=2, source=self)


_LONGEST_S = 86400.0


def _begin() -> None:
    task = asyncio.current_task()
    assert isinstance(task, _Begins)
    task.begin()


def _abandon(callbacks: asyncio.Task[Any]) -> None:
    """End the call whose callback does not end: it releases what it holds, and acknowledges its rebalance."""
    assert isinstance(callbacks, _Begins)
    callbacks.call.close()


def _complete(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)

