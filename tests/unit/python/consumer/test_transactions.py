"""kconsumer.transactions with a scripted producer: the transaction and the positions after every error."""

from __future__ import annotations

import os
import signal

import confluent_kafka
import pytest

from kconsumer import ConfigurationError, Consumer, IllegalStateError, KafkaException, Message, TopicPartition
from kconsumer.errors import KafkaError, error_for
from kconsumer.transactions import ExactlyOnce, TransactionAbortedError

CONFIG = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "enable.auto.commit": False}
COMMITTED = ["begin", "send 2", "commit"]


def refusal(code=KafkaError._FAIL, **kind):
    return confluent_kafka.KafkaException(confluent_kafka.KafkaError(code, "as scripted", **kind))


ABORTABLE = refusal(KafkaError.ILLEGAL_GENERATION, txn_requires_abort=True)
RETRIABLE = refusal(KafkaError._TIMED_OUT, retriable=True)
FENCED = refusal(KafkaError._FENCED, fatal=True)
OTHER = refusal(KafkaError.TOPIC_AUTHORIZATION_FAILED)


class Producer:
    """Raises the errors of `script`, a list per call; only its poll() moves the clock."""

    def __init__(self, **script):
        self.script = script
        self.calls = []
        self.results = []
        self.now = 0.0

    def _do(self, name, text=None):
        self.calls.append(text or name)
        errors = self.script.get(name, [])
        error = errors.pop(0) if errors else None
        if error is not None:
            raise error

    def init_transactions(self, limit):
        self._do("init")

    def begin_transaction(self):
        self._do("begin")

    def produce(self, topic, value=None, key=None, **more):
        errors = self.script.get("produce", [])
        if errors and (error := errors.pop(0)) is not None:
            raise error
        self.results.append(value)

    def send_offsets_to_transaction(self, offsets, metadata, limit):
        assert metadata == b"metadata" and limit > 0
        assert all(type(p) is confluent_kafka.TopicPartition for p in offsets)
        self._do("send", "send " + " ".join(str(p.offset) for p in offsets))

    def commit_transaction(self, limit):
        self._do("commit")

    def abort_transaction(self, limit):
        self._do("abort")

    def poll(self, seconds):
        self.now += seconds
        return 0


class Scripted(Consumer):
    """Records of one partition that seek() rewinds; it has two unless `count` says otherwise."""

    def __init__(self, count=2, extra=(), **config):
        super().__init__({**CONFIG, **config})
        self.count, self.extra = count, list(extra)
        self.at = 0
        self.member = ("member", 1)
        self.lost = False

    def consume(self, num_messages=1, timeout=-1):
        last = min(self.count, self.at + num_messages)
        found = [Message(topic="in", partition=0, offset=n, value=b"%d" % n) for n in range(self.at, last)]
        self.at = last
        found += self.extra
        self.extra = []
        return found

    def position(self, partitions):
        return [TopicPartition(p.topic, p.partition, self.at) for p in partitions]

    def assignment(self):
        return [] if self.lost else [TopicPartition("in", 0)]

    def seek(self, partition):
        if self.lost:
            raise KafkaException(error_for(KafkaError._STATE))
        self.at = partition.offset

    def consumer_group_metadata(self):
        return b"metadata"

    def _memberid(self):
        return self.member


@pytest.fixture
def loop_of():
    consumers = []

    def make(consumer=None, *, producer, **limits):
        consumer = consumer or Scripted()
        consumers.append(consumer)
        loop = ExactlyOnce(consumer, producer, ["in"], **limits)
        loop._clock = lambda: producer.now
        return loop

    yield make
    for consumer in consumers:
        consumer.close()


def copy_records(transaction):
    for message in transaction:
        transaction.produce("out", message.value())


def one(loop):
    with loop.transaction() as transaction:
        copy_records(transaction)


def handled(loop, wanted):
    """A handler that stops the run after so many records."""
    seen = []

    def handle(message, transaction):
        seen.append(message.offset())
        transaction.produce("out", message.value())
        if len(seen) == wanted:
            loop.stop()

    return seen, handle


def test_results_and_offsets_are_committed_together(loop_of):
    producer = Producer()
    with loop_of(producer=producer) as loop:
        one(loop)
        one(loop)  # without records nothing is begun
    assert producer.calls == ["init", *COMMITTED]
    assert producer.results == [b"0", b"1"]


@pytest.mark.parametrize("step", ["init", "begin", "send", "commit"])
def test_a_retriable_error_repeats_the_call(loop_of, step):
    producer = Producer(**{step: [RETRIABLE, RETRIABLE]})
    with loop_of(producer=producer) as loop:
        one(loop)
    expected = ["init", *COMMITTED]
    place = [call.split()[0] for call in expected].index(step)
    assert producer.calls == expected[:place] + [expected[place]] * 3 + expected[place + 1:]


@pytest.mark.parametrize("step", ["send", "commit"])
def test_an_abortable_error_aborts_rewinds_and_reads_again(loop_of, step):
    producer = Producer(**{step: [ABORTABLE]})
    with loop_of(producer=producer) as loop:
        with pytest.raises(TransactionAbortedError) as raised:
            one(loop)
        assert raised.value.args[0].code() == KafkaError.ILLEGAL_GENERATION
        assert producer.calls[-1] == "abort" and loop.consumer.at == 0
        one(loop)
    assert producer.calls[-3:] == COMMITTED


def test_an_abort_is_repeated_too(loop_of):
    producer = Producer(send=[ABORTABLE], abort=[RETRIABLE])
    with loop_of(producer=producer) as loop, pytest.raises(TransactionAbortedError):
        one(loop)
    assert producer.calls[-2:] == ["abort", "abort"]


@pytest.mark.parametrize("step", ["begin", "send", "commit", "produce"])
def test_a_fenced_producer_ends_the_loop_without_an_abort(loop_of, step):
    producer = Producer(**{step: [FENCED]})
    with loop_of(producer=producer) as loop:
        with pytest.raises(confluent_kafka.KafkaException) as raised:
            loop.run(lambda message, transaction: transaction.produce("out", message.value()))
        assert raised.value is FENCED
        with pytest.raises(IllegalStateError, match="start another"):
            one(loop)
    assert "abort" not in producer.calls


def test_a_fenced_producer_does_not_subscribe(loop_of):
    loop = loop_of(producer=Producer(init=[FENCED]))
    with pytest.raises(confluent_kafka.KafkaException), loop:
        pytest.fail("the block ran")
    assert loop.consumer.subscription() == []


def test_offsets_that_are_not_sent_in_time_abort_the_transaction(loop_of):
    producer = Producer(send=[RETRIABLE] * 100)
    with loop_of(producer=producer, timeout=1.0) as loop, pytest.raises(TransactionAbortedError):
        one(loop)
    assert producer.calls[-1] == "abort" and 1.0 <= producer.now < 1.5


@pytest.mark.parametrize("error", [RETRIABLE, OTHER])
def test_a_commit_in_doubt_ends_the_loop(loop_of, error):
    producer = Producer(commit=[error] * 100)
    with loop_of(producer=producer, timeout=1.0) as loop:
        with pytest.raises(confluent_kafka.KafkaException) as raised:
            one(loop)
        assert raised.value is error
        with pytest.raises(IllegalStateError):
            one(loop)
    assert "abort" not in producer.calls


def test_an_abort_that_fails_ends_the_loop(loop_of):
    producer = Producer(send=[ABORTABLE], abort=[OTHER])
    with loop_of(producer=producer) as loop:
        with pytest.raises(confluent_kafka.KafkaException) as raised:
            one(loop)
        assert raised.value is OTHER
        with pytest.raises(IllegalStateError):
            one(loop)


def test_an_error_of_another_kind_aborts_and_is_raised(loop_of):
    producer = Producer(send=[OTHER])
    with loop_of(producer=producer) as loop:
        with pytest.raises(confluent_kafka.KafkaException) as raised:
            one(loop)
        assert raised.value is OTHER and producer.calls[-1] == "abort" and loop.consumer.at == 0


@pytest.mark.parametrize("error", [refusal(KafkaError._STATE), ABORTABLE, RETRIABLE])
def test_a_produce_that_a_failed_transaction_refuses_is_read_again(loop_of, error):
    producer = Producer(produce=[None, error])
    with loop_of(producer=producer) as loop:
        seen, handle = handled(loop, 4)
        loop.run(handle)
    assert seen == [0, 1, 0, 1] and producer.calls == ["init", "begin", "abort", *COMMITTED]


def test_a_full_queue_is_waited_for(loop_of):
    producer = Producer(produce=[BufferError(), BufferError()])
    with loop_of(producer=producer) as loop:
        one(loop)
    assert producer.calls[-3:] == COMMITTED and producer.now == pytest.approx(0.2)


def test_a_queue_that_stays_full_aborts(loop_of):
    producer = Producer(produce=[BufferError()] * 100)
    with loop_of(producer=producer, timeout=1.0) as loop, pytest.raises(TransactionAbortedError) as raised:
        one(loop)
    assert raised.value.args[0].code() == KafkaError._QUEUE_FULL and producer.calls[-1] == "abort"


def test_a_bad_record_aborts_rewinds_and_leaves_the_run_which_can_begin_again(loop_of):
    producer = Producer()

    def handle(message, transaction):
        if message.offset() == 1:
            raise ValueError("poison")

    with loop_of(producer=producer) as loop:
        with pytest.raises(ValueError, match="poison"):
            loop.run(handle)
        assert producer.calls[-1] == "abort" and loop.consumer.at == 0
        seen, handle = handled(loop, 2)
        loop.run(handle)
    assert seen == [0, 1] and producer.calls[-3:] == COMMITTED


def test_an_interrupt_in_the_handler_aborts(loop_of):
    def handle(message, transaction):
        raise KeyboardInterrupt

    producer = Producer()
    with loop_of(producer=producer) as loop:
        with pytest.raises(KeyboardInterrupt):
            loop.run(handle)
        assert producer.calls[-1] == "abort" and loop.consumer.at == 0


def test_an_interrupt_while_records_are_received_ends_the_loop(loop_of, monkeypatch):
    with loop_of(producer=Producer()) as loop:
        monkeypatch.setattr(loop, "_receive", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            one(loop)
        with pytest.raises(IllegalStateError):
            one(loop)


@pytest.mark.parametrize("loss", ["assignment", "epoch", "member", "callback"])
def test_partitions_lost_during_a_transaction_abort_it(loop_of, loss):
    producer = Producer()
    with loop_of(producer=producer) as loop:
        with pytest.raises(TransactionAbortedError) as raised, loop.transaction() as transaction:
            copy_records(transaction)
            if loss == "assignment":
                loop.consumer.lost = True
            elif loss == "callback":
                loop._on_lost(loop.consumer, [])
            else:
                loop.consumer.member = ("member", -1) if loss == "epoch" else ("", 1)
        assert raised.value.args[0].code() == KafkaError._ASSIGNMENT_LOST
    assert producer.calls == ["init", "begin", "abort"]


def test_only_returned_records_belong_to_the_transaction(loop_of):
    producer = Producer()
    with loop_of(Scripted(5), producer=producer, max_time=3.0) as loop:
        with loop.transaction() as transaction:
            for _ in transaction:
                producer.now += 2.0
        assert loop.consumer.at == 2
        one(loop)
    assert producer.calls == ["init", "begin", "send 2", "commit", "begin", "send 5", "commit"]


def test_stop_ends_the_transaction_after_the_record_in_work(loop_of):
    producer = Producer()
    with loop_of(Scripted(5), producer=producer) as loop:
        _, handle = handled(loop, 3)
        loop.run(handle)
        assert loop.consumer.at == 3
    assert producer.calls[-2:] == ["send 3", "commit"]


def test_a_signal_stops_and_its_handler_comes_back(loop_of):
    before = signal.getsignal(signal.SIGUSR1)
    producer = Producer()
    with loop_of(Scripted(5), producer=producer) as loop:
        loop.run(lambda message, transaction: os.kill(os.getpid(), signal.SIGUSR1), signals=[signal.SIGUSR1])
    assert producer.calls[-2:] == ["send 1", "commit"]
    assert signal.getsignal(signal.SIGUSR1) == before


def test_a_signal_that_cannot_be_handled_leaves_the_handlers_as_they_were(loop_of):
    before = signal.getsignal(signal.SIGUSR1)
    with loop_of(producer=Producer()) as loop, pytest.raises(OSError):
        loop.run(lambda message, transaction: None, signals=[signal.SIGUSR1, signal.SIGKILL])
    assert signal.getsignal(signal.SIGUSR1) == before


def test_aborts_in_a_row_end_the_run(loop_of):
    producer = Producer(commit=[ABORTABLE] * 100)
    with loop_of(producer=producer, max_aborts=3) as loop, pytest.raises(TransactionAbortedError):
        loop.run(lambda message, transaction: None)
    assert producer.calls.count("abort") == 3


def test_an_error_of_the_consumer_ends_the_run_before_a_transaction(loop_of):
    gone = Message(error=error_for(KafkaError.TOPIC_AUTHORIZATION_FAILED, "not allowed"))
    producer = Producer()
    with loop_of(Scripted(extra=[gone]), producer=producer) as loop:
        with pytest.raises(KafkaException, match="not allowed"):
            loop.run(lambda message, transaction: None)
        assert loop.consumer.at == 0
    assert producer.calls == ["init"]


@pytest.mark.parametrize("code", [KafkaError._PARTITION_EOF, KafkaError._MAX_POLL_EXCEEDED,
                                  KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_errors_that_pass_do_not_end_the_run(loop_of, code):
    producer = Producer()
    with loop_of(Scripted(extra=[Message(error=error_for(code, "it passes"))]), producer=producer) as loop:
        one(loop)
    assert producer.calls[-3:] == COMMITTED


def test_produce_outside_a_transaction_is_refused(loop_of):
    with loop_of(producer=Producer()) as loop, loop.transaction() as transaction:
        copy_records(transaction)
    with pytest.raises(IllegalStateError, match="no transaction is open"):
        transaction.produce("out", b"late")


@pytest.mark.parametrize("changes", [{"enable.auto.commit": True}, {"isolation.level": "read_uncommitted"},
                                     {"group.id": None}])
def test_properties_that_contradict_exactly_once_are_refused(changes):
    config = {name: value for name, value in {**CONFIG, **changes}.items() if value is not None}
    with pytest.raises(ConfigurationError, match=next(iter(changes))):
        ExactlyOnce(config, Producer(), ["in"])


def test_a_producer_without_a_transactional_id_is_refused():
    with pytest.raises(ConfigurationError, match=r"transactional\.id"):
        ExactlyOnce(CONFIG, {"bootstrap.servers": "127.0.0.1:1"}, ["in"])
