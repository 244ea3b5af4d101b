"""Groups without Java: members in this process on the embedded cluster, both protocols.

Groups of several members are of the consumer protocol: the mock cluster refuses the SyncGroup of a member that comes
after the leader's (INVALID_REQUEST), where Kafka gives it its assignment. tests/groups has them on a real broker.
"""

import ctypes
import itertools
import time

import pytest
from api_helpers import PATIENCE, settings, until

from kconsumer import Assignor, Consumer, KafkaError, KafkaException, TopicPartition
from kconsumer.testing import EmbeddedCluster

CLASSIC, CONSUMER = "classic", "consumer"
HEARTBEAT_MS = 200
HEARTBEAT_KEYS = {CLASSIC: 12, CONSUMER: 68}
OFFSET_FETCH, JOIN_GROUP, LEAVE_GROUP = 9, 11, 13
UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS, FENCED_MEMBER_EPOCH = 25, 27, 110
_groups = itertools.count(1)

both = pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])


@pytest.fixture(scope="module")
def cluster():
    with EmbeddedCluster(2) as made:
        made.set_group_timing(initial_rebalance_delay_ms=0, session_timeout_ms=30_000,
                              heartbeat_interval_ms=HEARTBEAT_MS)
        yield made


class Member:
    """A consumer with a diary of its callbacks and records."""

    def __init__(self, cluster, protocol, group, topics, on_commit=None, **more):
        config = {"group_id": group, "group_protocol": protocol, "auto_commit_interval_ms": 100}
        if protocol == CLASSIC:
            # A mock that stands still may drop a JoinGroup that it holds back, and never answer it: the member asks
            # again after max.poll.interval.ms and five seconds.
            config |= {"session_timeout_ms": 6000, "heartbeat_interval_ms": HEARTBEAT_MS,
                       "max_poll_interval_ms": 8000, "socket_timeout_ms": 8000,
                       "partition_assignment_strategy": "cooperative-sticky"}
        config = settings(cluster, **{**config, **more})
        if on_commit is not None:
            config["on_commit"] = on_commit
        self.consumer = Consumer(config)
        self.diary = []
        self.records = []
        self.errors = []
        self.owned = set()
        self.consumer.subscribe(topics, on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lost)

    def _assign(self, consumer, partitions):
        self._note("assign", partitions)
        self.owned |= {(p.topic, p.partition) for p in partitions}

    def _revoke(self, consumer, partitions):
        self._note("revoke", partitions)
        self.owned -= {(p.topic, p.partition) for p in partitions}

    def _lost(self, consumer, partitions):
        self._note("lost", partitions)
        self.owned -= {(p.topic, p.partition) for p in partitions}

    def _note(self, what, partitions):
        if partitions:
            self.diary.append((what, sorted((p.topic, p.partition) for p in partitions)))

    def turn(self):
        message = self.consumer.poll(0.01)
        if message is None:
            return
        if message.error() is not None:
            self.errors.append(message.error())
            return
        assert (message.topic(), message.partition()) in self.owned
        self.records.append((message.topic(), message.partition(), message.offset()))

    def said(self, what):
        return [partitions for kind, partitions in self.diary if kind == what]

    def close(self):
        self.consumer.close()


class Party:
    """Members of one group, polled in turn."""

    def __init__(self, cluster, protocol, topic_name, partitions=4, records=40):
        self.cluster = cluster
        self.protocol = protocol
        self.topic = topic_name()
        self.group = f"group-{next(_groups)}"
        self.members = []
        self.partitions = partitions
        cluster.create_topic(self.topic, partitions)
        self.write(records)

    def write(self, records):
        """So many to each partition."""
        self.cluster.produce(self.topic, [{"value": b"v", "partition": p} for _ in range(records)
                                          for p in range(self.partitions)])

    def join(self, topics=None, **more):
        self.members.append(Member(self.cluster, self.protocol, self.group, topics or [self.topic], **more))
        return self.members[-1]

    def leave(self, member):
        self.members.remove(member)
        member.close()

    def until(self, condition, what):
        deadline = time.monotonic() + 3 * PATIENCE
        while not condition():
            for member in self.members:
                member.turn()
            shown = [(m.diary, m.errors, len(m.records)) for m in self.members]
            assert time.monotonic() < deadline, f"{what}: {shown}"

    def settle(self):
        """Waits until each partition has one owner, and the members' counts differ by at most one."""
        wanted = sorted((self.topic, p) for p in range(self.partitions))

        def shared():
            counts = [len(m.owned) for m in self.members]
            return sorted(o for m in self.members for o in m.owned) == wanted and max(counts) - min(counts) <= 1

        self.until(shared, "an assignment")

    def close(self):
        for member in self.members:
            member.close()


@pytest.fixture
def party(cluster, topic_name):
    made = []

    def make(protocol, **more):
        made.append(Party(cluster, protocol, topic_name, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


@both
def test_a_group_of_one_reads_all_and_the_next_continues(party, protocol):
    group = party(protocol)
    first = group.join()
    group.until(lambda: len(first.records) == 160, "all records")
    assert first.diary == [("assign", [(group.topic, p) for p in range(4)])]
    assert sorted(first.consumer.assignment()) == sorted(TopicPartition(group.topic, p) for p in range(4))
    assert first.consumer.memberid()
    group.leave(first)
    assert [kind for kind, _ in first.diary] == ["assign", "revoke"]
    group.write(10)
    second = group.join()
    group.until(lambda: len(second.records) == 40, "the new records")
    assert {offset for _, _, offset in second.records} == set(range(40, 50))


def test_members_share_and_hand_over(party):
    """Nothing comes twice and nothing is left out; what a member keeps it reads on."""
    group = party(CONSUMER, partitions=6)
    first = group.join()
    group.settle()
    second = group.join()
    group.settle()
    kept = set(first.owned)
    third = group.join()
    group.settle()
    group.write(30)
    group.leave(second)
    group.settle()
    assert first.owned & kept, "moved what could have stayed"
    group.write(30)
    everybody = [first, second, third]
    group.until(lambda: sum(len(m.records) for m in everybody) >= 600, "all records")
    found = [record for m in everybody for record in m.records]
    assert len(found) == len(set(found)) == 600
    assert not first.said("lost") + second.said("lost") + third.said("lost")


def test_an_eager_rebalance_revokes_and_assigns_all_partitions(party, cluster):
    group = party(CLASSIC)
    everything = [(group.topic, p) for p in range(4)]
    member = group.join(partition_assignment_strategy="range")
    group.settle()
    cluster.push_request_errors(HEARTBEAT_KEYS[CLASSIC], [REBALANCE_IN_PROGRESS])
    group.until(lambda: len(member.diary) == 3, "another assignment")
    assert member.diary == [("assign", everything), ("revoke", everything), ("assign", everything)]


def test_an_assignor_written_in_python_assigns(party):
    class Even(Assignor):
        """The partitions with an even number, to the member that calls itself a reader."""

        name = "even"
        calls = 0

        def subscription_user_data(self, topics):
            return b"reader"

        def assign(self, topics, group):
            Even.calls += 1
            if Even.calls == 1:
                raise LookupError("not yet")
            (member,) = [m for m in group.members.values() if m.user_data == b"reader"]
            return {member.member_id: [TopicPartition(name, n) for name, topic in topics.items()
                                       for n in range(0, topic.partition_count, 2)]}

    group = party(CLASSIC)
    member = group.join(partition_assignment_strategy=Even)
    raised = []

    def assigned():
        try:
            member.turn()
        except KafkaException as failure:
            raised.append(failure.args[0])
        return member.diary

    until(assigned)
    assert member.diary == [("assign", [(group.topic, 0), (group.topic, 2)])]
    assert [(e.code(), e.str()) for e in raised] == [(KafkaError._APPLICATION, "assignor even: LookupError: not yet")]


def test_unsubscribe_leaves_and_subscribe_comes_back(party):
    group = party(CONSUMER)
    first, second = group.join(), group.join()
    group.settle()
    first.consumer.unsubscribe()
    group.until(lambda: len(second.owned) == 4 and not first.owned, "all partitions for the other")
    assert first.consumer.assignment() == []
    first.consumer.subscribe([group.topic], on_assign=first._assign, on_revoke=first._revoke, on_lost=first._lost)
    group.settle()


@both
def test_another_topic(party, cluster, topic_name, protocol):
    group = party(protocol)
    other = topic_name()
    cluster.create_topic(other, 2)
    cluster.produce(other, [{"value": b"o", "partition": p} for p in range(2)])
    member = group.join()
    group.settle()
    member.consumer.subscribe([other], on_assign=member._assign, on_revoke=member._revoke, on_lost=member._lost)
    group.until(lambda: member.owned == {(other, 0), (other, 1)}, "the other topic")
    group.until(lambda: {r[0] for r in member.records} >= {other}, "its records")


@both
def test_commit_and_committed(party, protocol):
    told = []
    group = party(protocol)
    member = group.join(enable_auto_commit=False, on_commit=lambda error, where: told.append((error, where)))
    group.until(lambda: len(member.records) == 160, "all records")
    place = TopicPartition(group.topic, 0, 7)
    (answer,) = member.consumer.commit(offsets=[place], asynchronous=False)
    assert (answer.offset, answer.error) == (7, None)
    found = member.consumer.committed([TopicPartition(group.topic, 0), TopicPartition(group.topic, 1)], PATIENCE)
    assert [p.offset for p in found] == [7, -1001]
    assert member.consumer.commit(asynchronous=True) is None
    group.until(lambda: any(len(where) == 4 for _, where in told), "on_commit")
    error, where = next(t for t in told if len(t[1]) == 4)
    assert error is None
    assert {p.offset for p in where} == {40}
    found = member.consumer.committed([TopicPartition(group.topic, p) for p in range(4)], PATIENCE)
    assert [p.offset for p in found] == [40] * 4


@both
def test_a_fenced_member_loses_all_and_comes_back(party, cluster, protocol):
    group = party(protocol)
    member = group.join()
    group.settle()
    group.until(lambda: len(member.records) == 160, "all records")
    cluster.push_request_errors(HEARTBEAT_KEYS[protocol],
                                [UNKNOWN_MEMBER_ID if protocol == CLASSIC else FENCED_MEMBER_EPOCH])
    group.until(lambda: len(member.said("assign")) == 2, "to be assigned again")
    everything = [(group.topic, p) for p in range(4)]
    assert member.diary == [("assign", everything), ("lost", everything), ("assign", everything)]
    group.write(5)
    group.until(lambda: {r for r in member.records if r[2] >= 40} ==
                {(group.topic, p, 40 + n) for p in range(4) for n in range(5)}, "the new records")


def test_a_rebalance_begun_by_the_broker_keeps_unmoved_partitions(party, cluster):
    group = party(CLASSIC)
    member = group.join()
    group.settle()
    cluster.track_requests()
    joins = len(requests(cluster, JOIN_GROUP))
    cluster.push_request_errors(HEARTBEAT_KEYS[CLASSIC], [REBALANCE_IN_PROGRESS])
    group.until(lambda: len(requests(cluster, JOIN_GROUP)) > joins, "another JoinGroup")
    group.write(5)
    group.until(lambda: len(member.records) == 180, "the new records")
    assert [kind for kind, _ in member.diary] == ["assign"]


@both
def test_the_coordinator_moves(party, cluster, protocol):
    group = party(protocol)
    member = group.join(enable_auto_commit=False)
    group.settle()
    for broker in (1, 2, 1):
        cluster.set_coordinator(group.group, broker)
        group.until(lambda: len(member.owned) == 4, "the assignment to be there")
        place = TopicPartition(group.topic, 0, broker)
        deadline = time.monotonic() + PATIENCE
        while True:  # the group begins again on the mock's new coordinator: a member may have to join first
            try:
                member.consumer.commit(offsets=[place], asynchronous=False)
                break
            except KafkaException as error:
                assert time.monotonic() < deadline, error
                member.turn()
        assert member.consumer.committed([place], PATIENCE)[0].offset == broker


def test_a_committed_offset_that_cannot_be_read_does_not_reset_the_position(party, cluster):
    """OffsetFetch fails for a while: the reader waits for it, and begins neither at the start nor at the end."""
    group = party(CLASSIC)
    first = group.join(enable_auto_commit=False)
    group.until(lambda: len(first.records) == 160, "all records")
    first.consumer.commit(offsets=[TopicPartition(group.topic, p, 33) for p in range(4)], asynchronous=False)
    group.leave(first)
    cluster.push_request_errors(OFFSET_FETCH, [14, 14, 16, 14])  # COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR
    second = group.join(enable_auto_commit=False)
    group.until(lambda: len(second.records) == 28, "what was not committed")
    assert {offset for _, _, offset in second.records} == set(range(33, 40))
    cluster.clear_request_errors(OFFSET_FETCH)


@both
def test_a_callback_that_raises(party, protocol):
    """The exception leaves poll() as it is, the rebalance is done, and no record is missing."""
    group = party(protocol)
    member = group.join(topics=["^there-is-no-such-topic$"])

    def fail(consumer, partitions):
        member._assign(consumer, partitions)
        raise LookupError("from on_assign")

    member.consumer.subscribe([group.topic], on_assign=fail, on_revoke=member._revoke, on_lost=member._lost)
    with pytest.raises(LookupError, match="from on_assign"):
        group.until(lambda: len(member.records) == 160, "an exception")
    group.until(lambda: len(member.records) == 160, "all records")
    assert len(set(member.records)) == 160


@both
def test_offsets_given_in_on_assign(party, protocol):
    group = party(protocol)
    member = group.join(topics=["^there-is-no-such-topic$"])

    def from_thirty(consumer, partitions):
        member._assign(consumer, partitions)
        for p in partitions:
            p.offset = 30
        consumer.incremental_assign(partitions)

    member.consumer.subscribe([group.topic], on_assign=from_thirty, on_revoke=member._revoke, on_lost=member._lost)
    group.until(lambda: len(member.records) == 40, "the last ten of each")
    assert {offset for _, _, offset in member.records} == set(range(30, 40))


def requests(cluster, key):
    return [r for r in cluster.requests() if r.api_key == key]


@both
def test_heartbeats_continue_while_the_gil_is_held(party, cluster, protocol):
    """In time, but for ten times the 50 ms that an idle machine keeps to. One that stands still gets another chance."""
    group = party(protocol)
    group.join()
    group.settle()
    for _ in range(4):
        cluster.track_requests()
        ctypes.PyDLL(None).usleep(3_000_000)
        stamps = [r.timestamp_us / 1000 for r in requests(cluster, HEARTBEAT_KEYS[protocol])]
        cluster.track_requests(False)
        gaps = [b - a for a, b in itertools.pairwise(stamps)]
        if len(gaps) >= 3000 / (HEARTBEAT_MS + 500) - 1 and max(gaps) <= HEARTBEAT_MS + 500:
            break
        group.settle()
    else:
        raise AssertionError(gaps)


@both
@pytest.mark.parametrize("last", ["unsubscribe", "unassign", "nothing"])
def test_close_with_nothing_left_to_do_does_not_wait(cluster, topic_name, protocol, last):
    """No broker has a request whose response would wake the network thread."""
    topic = topic_name()
    cluster.create_topic(topic, 1)
    consumer = Consumer(settings(cluster, group_id=topic, group_protocol=protocol))
    if last == "unsubscribe":
        consumer.subscribe([topic])
        until(lambda: consumer.poll(0.05) or consumer.assignment())
        consumer.unsubscribe()
    elif last == "unassign":
        consumer.assign([TopicPartition(topic, 0)])
        consumer.poll(0.5)
        consumer.unassign()
    time.sleep(1)  # the last responses arrive
    began = time.monotonic()
    consumer.close()
    assert time.monotonic() - began < 3  # with the wait it took five seconds


def test_a_member_sends_its_leave_but_a_static_member_does_not(party, cluster):
    group = party(CLASSIC)
    dynamic = group.join()
    group.settle()
    cluster.track_requests()
    group.leave(dynamic)
    assert len(requests(cluster, LEAVE_GROUP)) == 1
    static = group.join(group_instance_id="always-the-same")
    group.settle()
    cluster.track_requests()
    group.leave(static)
    assert requests(cluster, LEAVE_GROUP) == []
    cluster.track_requests(False)


def test_subscribe_without_group_id_names_the_property(cluster):
    with pytest.raises(KafkaException) as caught, Consumer(settings(cluster)) as consumer:
        consumer.subscribe(["anything"])
    assert caught.value.args[0].code() == KafkaError._STATE
    assert "group.id" in caught.value.args[0].str()


def test_close_in_a_with_block_hands_over(party):
    group = party(CONSUMER)
    first, second = group.join(), group.join()
    group.settle()
    group.members.remove(first)
    with first.consumer as consumer:
        assert consumer.assignment()
    group.until(lambda: len(second.owned) == 4, "all partitions for the other")
    until(lambda: not first.owned)


@pytest.mark.parametrize("how", ["unsubscribe", "raising"])
def test_close_waits_for_the_leave(cluster, topic_name, how):
    """A leave that no call has waited for yet: of an unsubscribe(), or of a close() whose on_revoke raised. Were it not
    sent, the coordinator would keep the partitions for the session timeout."""
    topic = topic_name()
    cluster.create_topic(topic, 2)
    config = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic, "group.protocol": "consumer"}

    def fail(consumer, partitions):
        raise LookupError("from on_revoke")

    def taken(consumer, within_s, on_revoke=None):
        got = []
        consumer.subscribe([topic], on_assign=lambda _, partitions: got.extend(partitions), on_revoke=on_revoke)
        end = time.monotonic() + within_s
        while len(got) < 2 and time.monotonic() < end:
            consumer.poll(0.1)
        return len(got)

    first = Consumer(config)
    assert taken(first, 30, fail if how == "raising" else None) == 2
    if how == "raising":
        with pytest.raises(LookupError, match="from on_revoke"):
            first.close()
    else:
        first.unsubscribe()
        first.close()
    with Consumer(config) as second:
        assert taken(second, 10) == 2
