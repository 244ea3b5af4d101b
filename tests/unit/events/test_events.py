"""ApplicationEventQueue, BackgroundEventQueue, the log queue: order, bounds, wakeups, ends."""

import pytest
from stepped_loop import FETCH, inside, records

TRANSPORT, DESTROY = -195, -197


def test_the_network_is_woken_once_per_idle_edge(loop):
    loop.turn()
    before = loop.network.calls["wakeup"]
    first = inside.ask_topics(loop.consumer)
    second = inside.ask_topics(loop.consumer)
    assert loop.network.calls["wakeup"] == before + 1
    loop.turn()
    inside.ask_topics(loop.consumer)
    assert loop.network.calls["wakeup"] == before + 2
    assert not first.done and not second.done


def test_a_change_wakes_the_network(loop):
    loop.assign(("t", 0, 0))
    for call in (lambda: loop.consumer._seek("t", 0, 5, -1), lambda: loop.consumer._set_paused("t", 0, True),
                 lambda: loop.consumer._assign([], True),
                 lambda: loop.consumer.set_config({"fetch.min.bytes": 5})):
        before = loop.network.calls["wakeup"]
        call()
        assert loop.network.calls["wakeup"] > before


def test_buffered_records_do_not_wake_the_application(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 100)}})
    before = loop.network.calls["wakeup"]
    for n in range(100):
        assert loop.poll().offset() == n
    assert loop.network.calls["wakeup"] == before


def test_errors_come_in_order(loop):
    codes = [TRANSPORT, -185, -187, -193]
    for code in codes:
        inside.add_error(loop.consumer, code)
    assert loop.serve() == codes
    assert loop.serve() == codes


def test_errors_come_before_records(loop):
    """Callbacks run even when records are always at hand."""
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 10)}})
    assert loop.poll().offset() == 0
    inside.add_error(loop.consumer, TRANSPORT)
    assert loop.poll().offset() == 1
    assert [e.code() for e in loop.errors] == [TRANSPORT]


def test_a_callback_that_raises_leaves_the_rest_for_the_next_call(loop):
    seen = []

    def error_cb(error):
        seen.append(error.code())
        if error.code() == TRANSPORT:
            raise KeyError("mine")

    object.__setattr__(loop.consumer._settings, "error_cb", error_cb)
    for code in (-185, TRANSPORT, -187):
        inside.add_error(loop.consumer, code)
    with pytest.raises(KeyError, match="mine"):
        loop.poll()
    assert seen == [-185, TRANSPORT]
    loop.poll()
    assert seen == [-185, TRANSPORT, -187]


def test_a_callback_may_not_call_poll(loop):
    def error_cb(error):
        loop.poll()

    object.__setattr__(loop.consumer._settings, "error_cb", error_cb)
    inside.add_error(loop.consumer, TRANSPORT)
    with pytest.raises(Exception, match="another call of this consumer is running"):
        loop.poll()
    assert loop.poll() is None


def test_events_not_taken_by_the_application_are_bounded(loop):
    for _ in range(10_050):
        inside.add_error(loop.consumer, TRANSPORT)
    assert len(loop.serve()) == 10_000
    inside.add_error(loop.consumer, -187)
    assert loop.serve()[-1] == -187


def test_log_lines_not_taken_are_bounded_and_counted(loops):
    lines = []
    loop = loops(debug="all")
    object.__setattr__(loop.consumer._settings, "logger", type("L", (), {
        "log": lambda self, level, text, *args: lines.append(text % args)})())
    loop.assign(("t", 0, 0))
    for n in range(1100):
        loop.consumer._seek("t", 0, -1 - n % 2, -1)
        loop.turn()
        for request in loop.requests(2):
            loop.answer_offsets(request, lambda *_: {"offset": 1})
        for request in loop.requests(FETCH):
            loop.fetched(request, {})
    loop.serve()
    assert len(lines) == 1001
    assert "dropped" in lines[-1]


def test_statistics_come_at_their_interval_and_once_after_a_pause(loops):
    documents = []
    loop = loops(statistics_interval_ms=1000, stats_cb=documents.append)
    loop.turn()
    loop.serve()
    assert documents == []
    loop.advance(1000)
    loop.serve()
    assert len(documents) == 1
    loop.advance(1000 * 3600)
    loop.turn(3)
    loop.serve()
    assert len(documents) == 2
    assert loop.network.timeout_ms <= 1000


def test_wakeup_is_sticky_and_raised_once(loop):
    loop.consumer.wakeup()
    loop.consumer.wakeup()
    with pytest.raises(Exception, match="wakeup"):
        loop.poll()
    assert loop.poll() is None


def test_wakeup_comes_before_records(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 10)}})
    assert loop.poll().offset() == 0
    loop.consumer.wakeup()
    for take in (loop.poll, lambda: loop.consumer.consume(5, 0), lambda: loop.consumer.consume_batch(5, 0)):
        with pytest.raises(Exception, match="wakeup"):
            take()
        loop.consumer.wakeup()
    with pytest.raises(Exception, match="wakeup"):
        loop.poll()
    assert loop.offsets() == list(range(1, 10))


def test_a_question_after_the_end_fails_at_once(loop):
    loop.turn()
    inside.end_loop(loop.consumer)
    assert inside.ask_offsets(loop.consumer, [("t", 0, -1)]).code == DESTROY
    loop.consumer.close()
    loop.consumer.close()
    with pytest.raises(RuntimeError):
        loop.consumer.list_topics(timeout=1)
