"""Objects of kconsumer beside those of confluent_kafka: real bases, the same comparison, either order of import."""

import copy
import operator
import pickle
import subprocess
import sys

import confluent_kafka
import confluent_kafka.error
import pytest

import kconsumer
from kconsumer.errors import error_for, exception_for

PAIRS = [
    (kconsumer.KafkaError(3, "a"), confluent_kafka.KafkaError(3, "b"), confluent_kafka.KafkaError(4)),
    (kconsumer.TopicPartition("t", 1, 5), confluent_kafka.TopicPartition("t", 1, 9),
     confluent_kafka.TopicPartition("t", 2)),
]
EXCEPTIONS = sorted(name for name in kconsumer.__all__ if isinstance(getattr(kconsumer, name), type)
                    and issubclass(getattr(kconsumer, name), kconsumer.KafkaException))


class OwnError(kconsumer.KafkaError):
    pass


class OwnPartition(kconsumer.TopicPartition):
    """A subclass with another signature and an attribute."""

    def __init__(self, name: str = "t") -> None:
        super().__init__(name, 1)
        self.seen = 1

    def __reduce__(self) -> object:
        return OwnPartition, (self.topic,)


class SlottedPartition(kconsumer.TopicPartition):
    __slots__ = ("seen",)


class OwnException(kconsumer.TimeoutError):
    pass


class TheirError(confluent_kafka.KafkaError):
    """A subclass of confluent_kafka's: its C code compares, without a look at our methods."""


class Both(kconsumer.KafkaException, confluent_kafka.KafkaException):
    pass


@pytest.mark.parametrize(("ours", "same", "other"), PAIRS, ids=["error", "partition"])
def test_compare_by_value_in_both_directions(ours, same, other):
    assert ours == same and same == ours and hash(ours) == hash(same)
    assert ours != other and other != ours and not ours == other and not other == ours
    for one, two in ((ours, other), (same, ours)):
        assert [compare(one, two) for compare in (operator.lt, operator.le, operator.gt, operator.ge)] == [
            one is ours, True, False, one is not ours]
    assert len({ours, same, other}) == 2 and {same: 1}[ours] == 1 and {ours: 1}[same] == 1
    assert sorted([other, ours]) == [ours, other] and same in [ours] and ours in [same]
    assert ours not in ["t", None, object()]


def test_a_subclass_of_theirs_compares_in_c():
    assert kconsumer.KafkaError(3) == TheirError(3) and kconsumer.KafkaError(3) != TheirError(4)
    partition = kconsumer.TopicPartition("t", 5, 7)
    partition.partition, partition.offset = 3, 8
    assert repr(confluent_kafka.TopicPartition.__repr__(partition)).startswith("'TopicPartition{topic=t,partition=3,")


def test_objects_are_instances_of_their_classes():
    assert isinstance(kconsumer.KafkaError(3), confluent_kafka.KafkaError)
    assert isinstance(kconsumer.TopicPartition("t"), confluent_kafka.TopicPartition)
    assert isinstance(kconsumer.TopicPartition("t"), kconsumer.TopicPartition)
    assert type(kconsumer.TopicPartition("t")).__name__ == "TopicPartition"


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_except_catches_ours_by_their_class(name):
    cls = getattr(kconsumer, name)
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        raise cls(kconsumer.KafkaError(3))
    assert isinstance(caught.value, cls)
    counterpart = getattr(confluent_kafka.error, name, None)
    assert counterpart is None or isinstance(caught.value, counterpart)


def test_each_code_raises_a_class_of_theirs():
    for name, code in vars(kconsumer.errors.codes.Codes).items():
        if isinstance(code, int) and not name.startswith("__"):
            assert isinstance(exception_for(code), confluent_kafka.KafkaException)


LOCAL = sorted(code for name, code in vars(kconsumer.errors.codes.Codes).items()
               if isinstance(code, int) and not name.startswith("__") and code < -1)


@pytest.mark.parametrize("code", LOCAL)
def test_texts_of_local_codes_have_librdkafkas_phrase_after_ours(code):
    phrase = confluent_kafka.KafkaError(code).str()
    for text in (kconsumer.KafkaError(code).str(), error_for(code).str(), str(exception_for(code))):
        assert phrase.partition(": ")[2] in text and not text.startswith(phrase)


def test_a_commit_without_offsets_has_librdkafkas_phrase_after_our_sentence():
    assert error_for(kconsumer.KafkaError._NO_OFFSET, "no offset to commit").str() == (
        "no offset to commit (Local: No offset stored)")


@pytest.mark.parametrize("made", [
    kconsumer.KafkaError(3, "a", True), kconsumer.TopicPartition("t", 1, 2, "m", 3, error=kconsumer.KafkaError(1)),
    OwnError(3, "x"), OwnPartition("u"), kconsumer.TimeoutError(kconsumer.KafkaError(-185)), OwnException("x"),
    kconsumer.ConsumeError(kconsumer.KafkaError(3), ValueError("x"), None),
    kconsumer.KeyDeserializationError(ValueError("x")), Both("x"),
], ids=lambda made: type(made).__name__)
@pytest.mark.parametrize("duplicate", [
    copy.copy, copy.deepcopy, *(lambda o, p=p: pickle.loads(pickle.dumps(o, p)) for p in range(6)),
], ids=["copy", "deepcopy", *map(str, range(6))])
def test_copies_keep_class_and_value(made, duplicate):
    again = duplicate(made)
    assert type(again) is type(made) and repr(again) == repr(made)
    assert str(getattr(again, "args", None)) == str(getattr(made, "args", None))
    assert getattr(again, "seen", None) == getattr(made, "seen", None)


def test_a_subclass_with_slots_stays_without_their_base():
    partition = SlottedPartition("t", 1)
    assert partition == kconsumer.TopicPartition("t", 1) and not isinstance(partition, confluent_kafka.TopicPartition)


def test_text_that_is_not_utf_8_is_kept():
    partition = kconsumer.TopicPartition("caf\udce9", 1)
    assert partition.topic == "caf\udce9" and isinstance(partition, confluent_kafka.TopicPartition)


CHECK = """
error, partition = kconsumer.KafkaError(3), kconsumer.TopicPartition("t", 1)
assert confluent_kafka.KafkaError(3) == error and confluent_kafka.TopicPartition("t", 1) == partition
try:
    raise kconsumer.TimeoutError(error)
except confluent_kafka.KafkaException as caught:
    raised = caught
assert type(pickle.loads(pickle.dumps(raised))) is type(raised) is kconsumer.TimeoutError
sys.stdout.write(pickle.dumps([raised, error, partition], 0).decode("latin-1"))
"""
BEFORE = """
class Own(kconsumer.TopicPartition): pass
early = kconsumer.TopicPartition("t", 1), kconsumer.TimeoutError(kconsumer.KafkaError(3))
assert type(early[0]) is kconsumer.TopicPartition and type(early[1]) is kconsumer.TimeoutError
import confluent_kafka

assert early[0] == confluent_kafka.TopicPartition("t", 1) and early[0] == kconsumer.TopicPartition("t", 1)
assert kconsumer.TopicPartition("t", 1) == early[0] and hash(early[0]) == hash(kconsumer.TopicPartition("t", 1))
assert isinstance(Own("t"), confluent_kafka.TopicPartition) and isinstance(Own("t"), Own)
"""


@pytest.mark.parametrize("order", [
    "import confluent_kafka, kconsumer", "import kconsumer, confluent_kafka", "import kconsumer" + BEFORE,
], ids=["theirs first", "ours first", "objects first"])
def test_either_order_of_import_and_pickles_between_processes(order):
    done = subprocess.run([sys.executable, "-c", f"import pickle, sys\n{order}\n{CHECK}"], capture_output=True,
                          text=True, check=True)
    plain = subprocess.run([sys.executable, "-c", "import pickle, sys; found = pickle.loads(sys.stdin.buffer.read());"
                            "import kconsumer; assert 'confluent_kafka' not in sys.modules;"
                            "assert [type(o) for o in found] == [kconsumer.TimeoutError, kconsumer.KafkaError,"
                            " kconsumer.TopicPartition]; assert found[1].code() == 3 and found[2].partition == 1"],
                           input=done.stdout, text=True, capture_output=True, check=False)
    assert plain.returncode == 0, plain.stderr
