"""Groups on a real broker whose leader assigns with an assignor written in Python."""

import threading
import time

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from reading import PATIENCE, meanwhile

from kconsumer import Assignor, Consumer, KafkaError, KafkaException, RebalanceProtocol, TopicPartition

PARTITIONS = 8
SLOW_S = 2
CALLBACK_S = 15


class Weighted(Assignor):
    """As many partitions as a member's weight says; `meanwhile` is called in the middle of it."""

    name = "weighted"

    def __init__(self, weight, meanwhile=None):
        self.weight = weight
        self.meanwhile = meanwhile
        self.told = []

    def subscription_user_data(self, topics):
        return str(self.weight).encode()

    def assign(self, topics, group):
        if self.meanwhile is not None:
            self.meanwhile(group)
        given = {member_id: [] for member_id in group.members}
        weights = {m.member_id: int(m.user_data) for m in group.members.values()}
        for topic, known in topics.items():
            for partition in range(known.partition_count):
                best = min(weights, key=lambda m: ((len(given[m]) + 1) / weights[m], m))
                given[best].append(TopicPartition(topic, partition))
        return given

    def on_assignment(self, assignment, generation):
        self.told.append((len(assignment.partitions), generation))


class Keeping(Weighted):
    """Cooperative: a member above its share gives up the rest; free partitions go to the member with the fewest."""

    name = "keeping"
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def assign(self, topics, group):
        if self.meanwhile is not None:
            self.meanwhile(group)
        share = -(-sum(t.partition_count for t in topics.values()) // len(group.members))
        given = {m.member_id: list(m.owned)[:share] for m in group.members.values()}
        owned = {(p.topic, p.partition) for m in group.members.values() for p in m.owned}
        for topic, known in topics.items():
            for partition in range(known.partition_count):
                if (topic, partition) not in owned:
                    given[min(given, key=lambda m: (len(given[m]), m))].append(TopicPartition(topic, partition))
        return given


class Undemanding(Keeping):
    """Without user data: the network thread joins again without the application."""

    name = "undemanding"
    subscription_user_data = Assignor.subscription_user_data


@pytest.fixture
def topic(kafka, topic_name):
    name = topic_name()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})  # lives until the topic is there
    for done in admin.create_topics([NewTopic(name, PARTITIONS, 1)]).values():
        done.result()
    return name


@pytest.fixture
def settings(kafka, topic_name):
    return {"bootstrap.servers": kafka.bootstrap_servers, "group.id": topic_name(), "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000, "heartbeat.interval.ms": 300}


def member(made, settings, topic, strategy):
    made.append(Consumer({**settings, "partition.assignment.strategy": strategy}))
    made[-1].subscribe([topic])
    return made[-1]


def counts(members):
    return [len(m.assignment()) for m in members]


def poll_until(members, wanted, timeout=60):
    """Polls all members until `wanted()`; what was raised meanwhile."""
    raised = []
    end = time.monotonic() + timeout
    while not wanted():
        assert time.monotonic() < end, (counts(members), raised)
        for m in members:
            try:
                m.poll(0.05)
            except KafkaException as failure:
                raised.append(failure)
    return raised


def test_members_get_the_partitions_that_their_user_data_requests(made, settings, topic):
    heavy, light = Weighted(3), Weighted(1)
    members = [member(made, settings, topic, [heavy, "range"]), member(made, settings, topic, light)]
    assert poll_until(members, lambda: counts(members) == [6, 2]) == []
    assert [(heavy.told[-1][0], light.told[-1][0])] == [(6, 2)]
    assert heavy.told[-1][1] == light.told[-1][1] >= 1
    heavy.weight, light.weight = 1, 1
    members.append(member(made, settings, topic, [Weighted(2)]))  # all join again and send new weights
    assert poll_until(members, lambda: counts(members) == [2, 2, 4]) == []


def test_a_group_whose_members_do_not_all_have_it_uses_another(made, settings, topic):
    own = Weighted(3)
    member(made, settings, topic, [own, "range"])
    poll_until(made, lambda: counts(made) == [PARTITIONS])
    made.append(confluent_kafka.Consumer({**settings, "partition.assignment.strategy": "range"}))
    made[1].subscribe([topic])
    poll_until(made, lambda: counts(made) == [4, 4])
    assert [count for count, _ in own.told] == [PARTITIONS]


def test_an_assignor_that_raises_is_reported_and_the_group_recovers(made, settings, topic):
    failures = iter(range(3))

    def broken(group):
        if len(group.members) == 2 and next(failures, None) is not None:
            raise LookupError("no scales")

    members = [member(made, settings, topic, Weighted(1, broken))]
    poll_until(members, lambda: counts(members) == [PARTITIONS])
    members.append(member(made, settings, topic, Weighted(1, broken)))
    raised = poll_until(members, lambda: counts(members) == [4, 4])
    assert len(raised) == 3
    for failure in raised:
        assert failure.args[0].code() == KafkaError._APPLICATION
        assert "assignor weighted: LookupError: no scales" in failure.args[0].str()
        assert isinstance(failure.__cause__, LookupError)


def test_an_assignment_that_is_refused_leaves_no_member_with_it(made, settings, topic):
    class Greedy(Weighted):
        name = "greedy"
        refused = 0

        def assign(self, topics, group):
            given = super().assign(topics, group)
            if len(given) == 2 and Greedy.refused < 2:
                Greedy.refused += 1
                for member_id in given:
                    given[member_id] = [TopicPartition(topic, 0)]
            return given

    members = [member(made, settings, topic, Greedy(1)), member(made, settings, topic, Greedy(1))]
    raised = poll_until(members, lambda: counts(members) == [4, 4])
    assert len(raised) == 2
    assert all("already given to member" in failure.args[0].str() for failure in raised)


def test_while_the_leader_thinks_heartbeats_go_out_and_others_read(kafka, made, settings, topic):
    """Three cooperative members; the third one's join finds the leader slow. The second keeps reading."""
    thinking, slow, beats, produced = threading.Event(), [False], [], []
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})

    def meanwhile(group):
        if len(group.members) == 3 and not slow[0]:
            slow[0] = True
            before = leader.metrics()["heartbeats_total"]
            thinking.set()
            end = time.monotonic() + SLOW_S
            latest = end + 3  # heartbeats may be late on a busy machine
            while time.monotonic() < end or (beats_since(before) < 3 and time.monotonic() < latest):
                produced.append(time.monotonic())
                producer.produce(topic, b"x", partition=kept)
                producer.flush()
                time.sleep(0.02)
            beats.append(beats_since(before))

    def beats_since(before):
        return leader.metrics()["heartbeats_total"] - before

    leader = member(made, settings, topic, Keeping(1, meanwhile))
    poll_until([leader], lambda: counts([leader]) == [PARTITIONS])
    reader = member(made, settings, topic, Keeping(1))
    poll_until(made, lambda: counts(made) == [4, 4])
    kept = reader.assignment()[0].partition  # a member keeps its first partitions
    read, done = [], threading.Event()

    def keep_reading():
        while not done.is_set():
            message = reader.poll(0.05)
            if message is not None and message.error() is None:
                read.append(time.monotonic())

    thread = threading.Thread(target=keep_reading)
    thread.start()
    try:
        member(made, settings, topic, Keeping(1))
        assert poll_until([made[0], made[2]], lambda: sorted(counts(made)) == [2, 3, 3]) == []
        end = time.monotonic() + 30
        while len(read) < len(produced):
            assert time.monotonic() < end
            leader.poll(0.05)
    finally:
        done.set()
        thread.join()
    assert thinking.is_set()
    (count,) = beats
    assert count >= 3  # of 300 ms each, in two seconds
    meanwhile_read = [at for at in read if produced[0] <= at <= produced[-1]]
    assert len(meanwhile_read) >= len(produced) // 2


def generation(consumer):
    """That of the last JoinGroup which the coordinator has answered."""
    return consumer._memberid()[1]


def await_generation(consumer, wanted):
    end = time.monotonic() + PATIENCE
    while generation(consumer) < wanted:
        assert time.monotonic() < end
        time.sleep(0.01)


def commit_one(consumer, topic):
    offset = TopicPartition(topic, consumer.assignment()[0].partition, 1)
    (stored,) = consumer.commit(offsets=[offset], asynchronous=False)
    assert stored.error is None


@pytest.mark.parametrize("leave", [Consumer.close, Consumer.unsubscribe])
@pytest.mark.parametrize("rebalance", ["before", "in"])
def test_commits_are_stored_while_the_callback_of_a_leaders_leave_runs(made, settings, topic, leave, rebalance):
    """A third member begins a rebalance `before` or `in` the on_revoke of the leader, whose assignor has not run."""
    leaving, began, committed, in_time = threading.Event(), threading.Event(), threading.Event(), []

    def on_revoke(*_):
        if not leaving.is_set():
            return
        began.set()
        in_time.append(committed.wait(CALLBACK_S))
        commit_one(leader, topic)

    settings = {**settings, "enable.auto.commit": False, "session.timeout.ms": 30_000, "default.api.timeout.ms": 20_000}
    leader = Consumer({**settings, "partition.assignment.strategy": Undemanding(1)})
    made.append(leader)
    leader.subscribe([topic], on_revoke=on_revoke)
    poll_until([leader], lambda: counts([leader]) == [PARTITIONS])
    follower = member(made, settings, topic, Undemanding(1))
    poll_until(made, lambda: counts(made) == [4, 4])
    following = generation(leader) + 1
    leaving.set()
    if rebalance == "before":
        member(made, settings, topic, Undemanding(1))
        await_generation(leader, following)
    with meanwhile(lambda: leave(leader)):
        assert began.wait(PATIENCE)
        if rebalance == "in":
            member(made, settings, topic, Undemanding(1))
            await_generation(follower, following)
        commit_one(follower, topic)
        committed.set()
    assert in_time == [True]
    poll_until(made[1:], lambda: counts(made[1:]) == [4, 4])
