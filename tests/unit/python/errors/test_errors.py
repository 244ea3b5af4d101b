"""kconsumer.errors against confluent_kafka's KafkaError, and the edge from codes to exceptions."""

from __future__ import annotations

import builtins
import copy
import pickle
import re
from pathlib import Path

import confluent_kafka
import confluent_kafka.error
import pytest

import kconsumer
import kconsumer.error
from kconsumer import errors
from kconsumer.errors import (
    KafkaError,
    KafkaException,
    codes,
    error_for,
    exception_for,
    exception_from,
    topic_exception,
)

Theirs = confluent_kafka.KafkaError


def constants(cls: type) -> dict[str, int]:
    names = [name for name in dir(cls) if not name.startswith("__")]
    return {name: value for name in names if isinstance(value := getattr(cls, name), int)}


def test_names_hold_the_constants_and_nothing_else() -> None:
    assert {name: code for code, name in codes._NAMES.items()} == constants(KafkaError)


def test_has_every_code_of_confluent_kafka_under_the_same_name() -> None:
    ours = constants(KafkaError)
    theirs = constants(Theirs)
    assert {name: ours.get(name) for name in theirs} == theirs
    assert all(KafkaError(code).name() == Theirs(code).name() for code in theirs.values())


def test_has_the_codes_that_only_kafka_has() -> None:
    assert {name: code for name, code in constants(KafkaError).items() if name not in constants(Theirs)} == {
        "SNAPSHOT_NOT_FOUND": 98,
        "POSITION_OUT_OF_RANGE": 99,
        "DUPLICATE_BROKER_REGISTRATION": 101,
        "BROKER_ID_NOT_REGISTERED": 102,
        "INCONSISTENT_CLUSTER_ID": 104,
        "TRANSACTIONAL_ID_NOT_FOUND": 105,
        "FETCH_SESSION_TOPIC_ID_ERROR": 106,
        "INELIGIBLE_REPLICA": 107,
        "NEW_LEADER_ELECTED": 108,
        "OFFSET_MOVED_TO_TIERED_STORAGE": 109,
    }
    assert {code for code in constants(KafkaError).values() if code >= -1} == set(range(-1, 134))


def test_the_core_has_the_same_numbers() -> None:
    header = Path(__file__).resolve().parents[4] / "src" / "_core" / "base" / "status.hpp"
    codes = re.findall(r"ERR_([A-Z_]+) = (-?\d+),", header.read_text(encoding="utf-8"))
    assert len(codes) > 25
    assert {name: constants(KafkaError).get(f"_{name}") for name, _ in codes} == {
        name: int(number) for name, number in codes
    }


def test_has_every_method_of_confluent_kafka() -> None:
    assert {name for name in dir(Theirs) if not name.startswith("__")} <= set(dir(KafkaError))


def test_each_code_has_its_own_text() -> None:
    texts = [codes.text(code) for code in constants(KafkaError).values()]
    assert all(texts) and len(set(texts)) == len(texts)


@pytest.mark.parametrize("code", [99999, -99999, -136])
def test_an_unknown_code_is_shown_as_confluent_kafka_shows_it(code: int) -> None:
    assert repr(KafkaError(code)) == repr(Theirs(code))


@pytest.mark.parametrize("cls", [KafkaError, Theirs])
@pytest.mark.parametrize(
    ("args", "kwargs", "fields"),
    [
        ((3, "x"), {}, (3, "x", False, False, False)),
        ((3,), {"reason": "x"}, (3, "x", False, False, False)),
        ((), {"error": 3, "reason": "x"}, (3, "x", False, False, False)),
        ((3, ""), {}, (3, "", False, False, False)),
        ((3, "x", True, True, True), {}, (3, "x", True, True, True)),
        ((3, "x", 1, 0, 1), {}, (3, "x", True, False, True)),
        ((3, "x"), {"retriable": True}, (3, "x", False, True, False)),
        ((3, "x"), {"txn_requires_abort": True}, (3, "x", False, False, True)),
        ((True, "x"), {}, (1, "x", False, False, False)),
    ],
)
def test_is_made_as_confluent_kafka_makes_it(cls, args, kwargs, fields) -> None:  # type: ignore[no-untyped-def]
    error = cls(*args, **kwargs)
    assert (error.code(), error.str(), error.fatal(), error.retriable(), error.txn_requires_abort()) == fields
    assert repr(error) == str(error)


@pytest.mark.parametrize("flags", [{}, {"fatal": True}, {"retriable": True}, {"fatal": True, "retriable": True}])
def test_repr_is_confluent_kafkas(flags: dict[str, bool]) -> None:
    assert repr(KafkaError(3, "no such", **flags)) == repr(Theirs(3, "no such", **flags))
    assert repr(KafkaException(KafkaError(3, "x", **flags))) == repr(
        confluent_kafka.KafkaException(Theirs(3, "x", **flags))
    )


@pytest.mark.parametrize(("exception", "text"), [
    (KafkaException(KafkaError(3, "flights: no such topic")), "flights: no such topic (UNKNOWN_TOPIC_OR_PART)"),
    (KafkaException(KafkaError(3, "UNKNOWN_TOPIC_OR_PART: gone")), "UNKNOWN_TOPIC_OR_PART: gone"),
    (KafkaException("a text"), "a text"), (KafkaException(), ""), (KafkaException(1, 2), "(1, 2)")])
def test_the_text_of_an_exception_begins_with_the_sentence(exception: KafkaException, text: str) -> None:
    assert str(exception) == text


@pytest.mark.parametrize("cls", [KafkaError, Theirs])
@pytest.mark.parametrize("args", [(), ("a",), (3, 5), (3, b"x"), (3.0,), (None,)])
def test_refuses_arguments_that_confluent_kafka_refuses(cls: type, args: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        cls(*args)


@pytest.mark.parametrize("cls", [KafkaError, Theirs])
def test_compares_and_hashes_by_code(cls: type) -> None:
    three, four = cls(3, "a"), cls(4)
    assert three == cls(3, "b", True) and three == 3 and three != 4
    assert three != four
    assert three < four and three <= cls(3) and four > three and four >= 4 and three < 4 and not three > 4
    assert hash(three) == hash(3) and hash(cls(-185)) == -185
    assert sorted([four, three]) == [three, four]
    assert len({three, cls(3), four}) == 2
    assert bool(cls(0)) is True


def test_differs_from_other_types_without_an_exception() -> None:
    with pytest.raises(TypeError):
        KafkaError(3) < "a"  # type: ignore[operator]  # noqa: B015
    assert KafkaError(3) != "3" and KafkaError(3) != None and KafkaError(0) is not None  # noqa: E711


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_keep_everything(duplicate) -> None:  # type: ignore[no-untyped-def]
    error = KafkaError(1, "x", True, True, True, topic="t", partition=2, offset=3)
    again = duplicate(error)
    assert repr(again) == repr(error)
    assert (again.retriable(), again.txn_requires_abort()) == (True, True)
    assert (again.topic, again.partition, again.offset) == ("t", 2, 3)
    bare = duplicate(KafkaError(5))
    assert bare.str() == KafkaError(5).str() and bare.topic is None


def test_where_an_error_belongs_is_read_only() -> None:
    with pytest.raises(AttributeError):
        KafkaError(1, topic="t").topic = "u"  # type: ignore[misc]


# RetriableException and its subclasses in Kafka 4.3, by librdkafka's names where it has one.
RETRIABLE = """
    INVALID_MSG UNKNOWN_TOPIC_OR_PART LEADER_NOT_AVAILABLE NOT_LEADER_FOR_PARTITION REQUEST_TIMED_OUT
    REPLICA_NOT_AVAILABLE NETWORK_EXCEPTION COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR
    NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND NOT_CONTROLLER CONCURRENT_TRANSACTIONS KAFKA_STORAGE_ERROR
    FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH LISTENER_NOT_FOUND FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH
    OFFSET_NOT_AVAILABLE PREFERRED_LEADER_NOT_AVAILABLE ELIGIBLE_LEADERS_NOT_AVAILABLE ELECTION_NOT_NEEDED
    UNSTABLE_OFFSET_COMMIT THROTTLING_QUOTA_EXCEEDED UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID
    FETCH_SESSION_TOPIC_ID_ERROR SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH SHARE_SESSION_LIMIT_REACHED
    _TRANSPORT _RESOLVE _ALL_BROKERS_DOWN _TIMED_OUT _NODE_UPDATE _WAIT_COORD _TIMED_OUT_QUEUE _WAIT_CACHE _RETRY
    _DESTROY_BROKER
""".split()


def test_retriability_is_kafkas_and_librdkafkas() -> None:
    names = [name for name, code in constants(KafkaError).items() if error_for(code).retriable()]
    assert sorted(names) == sorted(RETRIABLE)


def test_error_for_lets_the_caller_decide() -> None:
    assert error_for(KafkaError._TRANSPORT).retriable()
    assert not error_for(KafkaError._TRANSPORT, retriable=False).retriable()
    assert error_for(KafkaError.INVALID_CONFIG, retriable=True).retriable()
    fatal = error_for(KafkaError._TRANSPORT, "gone", fatal=True)
    assert fatal.fatal() and not fatal.retriable()
    assert (fatal.code(), fatal.cause) == (KafkaError._FATAL, KafkaError._TRANSPORT)
    assert fatal.str() == "_TRANSPORT: gone (Local: Fatal error)"
    again = error_for(fatal.cause, f"place: {fatal.str()}", fatal=True)
    assert again.str() == "place: _TRANSPORT: gone (Local: Fatal error)"
    assert type(errors.exception_from(pickle.loads(pickle.dumps(fatal)))) is errors.NetworkError
    assert error_for(KafkaError._FATAL, "gone").fatal()
    assert error_for(KafkaError._TRANSPORT).cause == KafkaError._TRANSPORT
    assert error_for(KafkaError._STATE).str() == KafkaError(KafkaError._STATE).str()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (KafkaError._AUTHENTICATION, errors.AuthenticationError),
        (KafkaError.SASL_AUTHENTICATION_FAILED, errors.AuthenticationError),
        (KafkaError._SSL, errors.AuthenticationError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, errors.AuthorizationError),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, errors.AuthorizationError),
        (KafkaError._INVALID_ARG, errors.InvalidArgumentError),
        (KafkaError.INVALID_GROUP_ID, errors.ConfigurationError),
        (KafkaError.FENCED_INSTANCE_ID, errors.FencedError),
        (KafkaError.FENCED_MEMBER_EPOCH, errors.FencedError),
        (KafkaError.ILLEGAL_GENERATION, errors.CommitFailedError),
        (KafkaError.STALE_MEMBER_EPOCH, errors.CommitFailedError),
        (KafkaError.OFFSET_OUT_OF_RANGE, errors.OffsetOutOfRangeError),
        (KafkaError._AUTO_OFFSET_RESET, errors.OffsetOutOfRangeError),
        (KafkaError._LOG_TRUNCATION, errors.LogTruncationError),
        (KafkaError._NO_OFFSET, errors.NoOffsetError),
        (KafkaError._BAD_MSG, errors.CorruptRecordError),
        (KafkaError._BAD_COMPRESSION, errors.CorruptRecordError),
        (KafkaError.INVALID_MSG, errors.CorruptRecordError),
        (KafkaError.MSG_SIZE_TOO_LARGE, errors.RecordTooLargeError),
        (KafkaError._TIMED_OUT, errors.TimeoutError),
        (KafkaError.REQUEST_TIMED_OUT, errors.TimeoutError),
        (KafkaError._INTR, errors.WakeupError),
        (KafkaError._STATE, errors.IllegalStateError),
        (KafkaError._CONFLICT, errors.IllegalStateError),
        (KafkaError._TRANSPORT, errors.NetworkError),
        (KafkaError._ALL_BROKERS_DOWN, errors.NetworkError),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, errors.UnknownTopicOrPartitionError),
        (KafkaError._UNKNOWN_PARTITION, errors.UnknownTopicOrPartitionError),
        (KafkaError.UNSUPPORTED_VERSION, errors.UnsupportedVersionError),
        (KafkaError.UNKNOWN, KafkaException),
        (4711, KafkaException),
    ],
)
def test_a_code_becomes_the_exception_of_its_cause(code: int, expected: type[KafkaException]) -> None:
    exception = exception_for(code, "what and where", topic="t", partition=1, offset=2)
    assert type(exception) is expected
    assert exception.args[0].code() == code
    assert exception.args[0].str().removesuffix(" (Local: No offset stored)") == "what and where"
    assert (exception.topic, exception.partition, exception.offset) == ("t", 1, 2)


def test_no_code_belongs_to_two_exceptions() -> None:
    listed = [code for codes in errors._BY_CLASS.values() for code in codes]
    assert len(listed) == len(set(listed))


def test_exceptions_are_also_the_builtin_ones() -> None:
    assert issubclass(errors.TimeoutError, builtins.TimeoutError)
    assert issubclass(errors.ConfigurationError, ValueError)
    assert issubclass(errors.IllegalStateError, RuntimeError)
    assert issubclass(errors.LogTruncationError, errors.OffsetOutOfRangeError)
    exported = [getattr(errors, name) for name in errors.__all__]
    exceptions = [item for item in exported if isinstance(item, type) and issubclass(item, Exception)]
    assert len(exceptions) > 20 and all(issubclass(item, KafkaException) for item in exceptions)


@pytest.mark.parametrize("code", sorted({*codes._NAMES, 4711}))
def test_every_exception_can_be_pickled(code: int) -> None:
    exception = exception_for(code, "x", topic="t", partition=1, offset=2)
    again = pickle.loads(pickle.dumps(exception))
    assert type(again) is type(exception) and repr(again) == repr(exception) and str(again) == str(exception)
    assert (again.topic, again.partition, again.offset) == ("t", 1, 2)


def test_an_exception_without_a_kafka_error_has_no_place() -> None:
    assert KafkaException().topic is None and KafkaException("text").offset is None
    assert exception_from(KafkaError(1)).partition is None


def test_consume_error_is_confluent_kafkas() -> None:
    cause = ValueError("bad")
    theirs = confluent_kafka.error.ConsumeError(Theirs(3, "x"), exception=cause, kafka_message=None)
    ours = kconsumer.error.ConsumeError(KafkaError(3, "x"), exception=cause, kafka_message=None)
    assert (ours.code, ours.name, ours.exception, ours.kafka_message) == (
        theirs.code, theirs.name, theirs.exception, theirs.kafka_message)


@pytest.mark.parametrize("name", ["KeyDeserializationError", "ValueDeserializationError"])
def test_deserialization_errors_are_confluent_kafkas(name: str) -> None:
    cause = ValueError("bad")
    theirs = getattr(confluent_kafka.error, name)(exception=cause, kafka_message="m")
    ours = getattr(kconsumer.error, name)(exception=cause, kafka_message="m")
    assert (ours.code, ours.name, ours.exception, ours.kafka_message) == (
        theirs.code, theirs.name, theirs.exception, theirs.kafka_message)
    assert repr(ours) == repr(theirs).replace("bad", "ValueError: bad")  # their text has no type and no place
    assert isinstance(ours, errors.ConsumeError) and isinstance(ours, errors.SerializationError)
    again = pickle.loads(pickle.dumps(ours))
    assert str(again) == str(ours) and again.kafka_message == "m" and str(again.exception) == "bad"


@pytest.mark.parametrize("kind", [errors.KeyDeserializationError, errors.ValueDeserializationError])
@pytest.mark.parametrize(("cause", "text"), [(ZeroDivisionError("by zero"), "ZeroDivisionError: by zero"),
                                             (KeyError(), "KeyError")], ids=["with text", "without text"])
def test_deserialization_errors_name_the_record_and_the_cause(
    kind: type[errors.ConsumeError], cause: Exception, text: str
) -> None:
    class Record:
        def topic(self) -> str:
            return "flights"

        def partition(self) -> int:
            return 2

        def offset(self) -> int:
            return 17

    raised = kind(exception=cause, kafka_message=Record())  # type: ignore[call-arg]
    assert raised.args[0].str() == f"flights [2] at offset 17: {text}"
    assert (raised.topic, raised.partition, raised.offset) == ("flights", 2, 17)
    assert kind().args[0].str() == KafkaError(raised.code).str()  # type: ignore[call-arg]


@pytest.mark.parametrize(("code", "kind", "remedy"), [
    (3, kconsumer.UnknownTopicOrPartitionError, ": check the name, or create the topic"),
    (29, kconsumer.AuthorizationError, ": grant READ (or DESCRIBE) on the topic"),
    (5, KafkaException, ""),
])
def test_the_exception_for_a_topic_states_what_to_do(code: int, kind: type[KafkaException], remedy: str) -> None:
    raised = topic_exception("flights", code)
    assert type(raised) is kind
    assert raised.args[0].str() == f"topic flights: {KafkaError(code).str()}{remedy}"
    assert (raised.args[0].code(), raised.topic) == (code, "flights")
