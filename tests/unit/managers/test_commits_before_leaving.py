"""Every commit that was accepted before a revocation is acknowledged, a rejoin or a leave is stored before the
coordinator hears of it; what cannot be stored in time is reported and logged."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from consumer_group_loop import INTERVAL_MS, Member, T, owned
from group_loop import HEARTBEAT, JOIN, LEAVE, OFFSET_COMMIT, GroupLoop, text

from kconsumer import KafkaError, TopicPartition

ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCE, STALE_EPOCH, NOT_COORDINATOR = 22, 25, 27, 113, 16
SESSION_MS = 45_000
ALL = [("t", 0), ("t", 1), ("t", 2)]
LEFT = -1


def offsets_of(request: dict[str, Any]) -> dict[int, int]:
    """Partition → offset of an OffsetCommit of topic t."""
    (topic,) = request["body"]["topics"]
    return {p["partition_index"]: p["committed_offset"] for p in topic["partitions"]}


def answer_commit(loop: Any, error: int = 0) -> dict[int, int]:
    request = next(r for r in loop.requests(OFFSET_COMMIT))
    body = text(request["body"])
    loop.answer(request, {"throttle_time_ms": 0, "topics": [
        {"name": t.get("name", ""), "topic_id": t.get("topic_id", bytes(16)), "partitions": [
            {"partition_index": p["partition_index"], "error_code": error} for p in t["partitions"]]}
        for t in body["topics"]]}, 2)
    return offsets_of(request)


def commit(consumer: Any, *offsets: tuple[int, int]) -> None:
    consumer.commit(offsets=[TopicPartition("t", partition, offset) for partition, offset in offsets])


@pytest.fixture
def reported() -> list[Any]:
    return []


@pytest.fixture
def settings(reported: list[Any]) -> dict[str, Any]:
    def on_commit(error: Any, partitions: list[TopicPartition]) -> None:
        reported.append((error and error.code(), [(p.partition, p.offset) for p in partitions]))

    return {"enable_auto_commit": False, "on_commit": on_commit}


@pytest.fixture
def stable(settings: dict[str, Any]) -> GroupLoop:
    loop = GroupLoop(**settings)
    loop.stable()
    return loop


# -- classic


def test_a_leave_waits_for_every_commit_made_before(stable, reported):
    commit(stable.consumer, (0, 5))
    stable.turn()
    commit(stable.consumer, (1, 6))
    stable.consumer.unsubscribe()
    stable.turn(2)
    assert stable.sent(LEAVE) == []
    assert answer_commit(stable) == {0: 5}
    assert stable.sent(LEAVE) == []
    assert answer_commit(stable) == {1: 6}
    stable.the(LEAVE)
    stable.serve()
    assert reported == [(None, [(0, 5)]), (None, [(1, 6)])]


def test_a_commit_that_must_be_retried_holds_up_the_leave(stable):
    commit(stable.consumer, (0, 5))
    stable.consumer.unsubscribe()
    stable.turn()
    answer_commit(stable, 14)  # COORDINATOR_LOAD_IN_PROGRESS
    assert stable.sent(LEAVE) == []
    stable.advance(1500)
    assert answer_commit(stable) == {0: 5}
    stable.the(LEAVE)


@pytest.mark.parametrize("leaves", [False, True])
def test_the_automatic_commit_of_a_member_that_is_fenced_in_on_revoke_is_reported(settings, reported, leaves):
    settings["enable_auto_commit"] = True
    loop = GroupLoop(**settings)
    loop.stable(None, "t", revoke=lambda *_: loop.heartbeat(UNKNOWN_MEMBER))
    loop.read(0, 2)
    if leaves:
        loop.consumer.unsubscribe()
    else:
        loop.heartbeat(REBALANCE)
    loop.serve()
    loop.serve()
    assert reported == [(UNKNOWN_MEMBER, [(0, 2)])]
    assert loop.sent(OFFSET_COMMIT) == []


def test_a_join_waits_for_commits_made_in_on_revoke(settings, reported):
    loop = GroupLoop(**settings)
    loop.stable(None, "t", revoke=lambda consumer, _: commit(consumer, (0, 5), (1, 6)))
    loop.heartbeat(REBALANCE)
    loop.serve()
    assert loop.state == "PARTITION_REVOKED"
    assert loop.sent(JOIN) == []
    assert answer_commit(loop) == {0: 5, 1: 6}
    loop.the(JOIN)
    loop.serve()
    assert reported == [(None, [(0, 5), (1, 6)])]


def test_a_join_that_revokes_nothing_waits_too(settings):
    loop = GroupLoop(partition_assignment_strategy="cooperative-sticky", **settings)
    loop.stable()
    commit(loop.consumer, (0, 5))
    loop.turn()
    loop.heartbeat(REBALANCE)
    assert loop.state == "JOINING"
    assert loop.sent(JOIN) == []
    answer_commit(loop)
    loop.the(JOIN)


def test_a_commit_made_while_leaving_from_a_parked_join_is_stored_in_the_new_generation(settings, reported):
    loop = GroupLoop(partition_assignment_strategy="cooperative-sticky", **settings)
    loop.stable()
    loop.heartbeat(REBALANCE)
    loop.the(JOIN)
    commit(loop.consumer, (0, 5))
    loop.consumer.unsubscribe()
    loop.turn(2)
    answer_commit(loop, ILLEGAL_GENERATION)  # the coordinator has completed the join already
    loop.joined()
    loop.advance(1500)
    request = next(r for r in loop.sent(OFFSET_COMMIT))
    assert request["body"]["generation_id_or_member_epoch"] == loop.generation
    assert answer_commit(loop) == {0: 5}
    loop.the(LEAVE)
    loop.serve()
    assert reported == [(None, [(0, 5)])]


def test_the_time_of_a_leave_counts_from_the_end_of_on_revoke(settings, reported):
    loop = GroupLoop(**settings)

    def linger(consumer: Any, _: Any) -> None:
        commit(consumer, (0, 5))
        loop.clock.advance(20_000)

    loop.stable(None, "t", revoke=linger)
    loop.consumer.unsubscribe()
    loop.advance(5000)
    assert answer_commit(loop) == {0: 5}
    loop.the(LEAVE)
    loop.serve()
    assert reported == [(None, [(0, 5)])]


def test_commits_that_a_leave_had_no_time_for_are_reported_and_logged(settings, reported, caplog):
    loop = GroupLoop(**settings)
    loop.stable()
    commit(loop.consumer, (0, 5))
    loop.consumer.unsubscribe()
    loop.turn()
    answer_commit(loop, 14)
    with caplog.at_level(logging.INFO):
        while not loop.sent(LEAVE):
            loop.advance(1000)
            if loop.requests(OFFSET_COMMIT):
                answer_commit(loop, 14)
            for request in loop.sent(HEARTBEAT):
                loop.network.answer(request["id"], bytes(7))
        loop.serve()
    assert reported == [(KafkaError._TIMED_OUT, [(0, 5)])]
    assert "asynchronous commit failed" in caplog.text
    assert "not committed before the deadline: the coordinator is loading the group's offsets" in caplog.text


def test_a_commit_that_was_answered_while_the_process_stood_still_is_stored(stable, reported):
    """The response lies in the socket when the process goes on, after the deadline of the leave."""
    commit(stable.consumer, (0, 5))
    stable.consumer.unsubscribe()
    stable.turn()
    stable.clock.advance(SESSION_MS)
    assert answer_commit(stable) == {0: 5}
    stable.serve()
    assert reported == [(None, [(0, 5)])]


def test_a_leave_without_an_answer_is_logged(stable, caplog):
    stable.consumer.unsubscribe()
    stable.turn()
    stable.the(LEAVE)
    with caplog.at_level(logging.INFO):
        stable.advance(SESSION_MS)
        stable.serve()
    assert (
        "group not left in time: the coordinator of group g has not answered: check the connection to broker 2"
        in caplog.text)


def test_a_static_member_that_missed_a_generation_loses_its_partitions(settings):
    """A leader may have given its partitions to others meanwhile, and the coordinator would take its commits."""
    loop = GroupLoop(partition_assignment_strategy="cooperative-sticky", group_instance_id="i", **settings)
    loop.stable()
    loop.heartbeat(REBALANCE)
    commit(loop.consumer, (0, 5))
    loop.turn()
    loop.generation += 1
    loop.joined()
    assert loop.state == "FENCED"
    loop.serve()
    assert loop.calls[-1] == ("lost", ALL)
    join = loop.the(JOIN)
    assert join["body"]["member_id"] == "m1"


def test_a_static_member_that_missed_a_generation_commits_nothing_it_has_revoked_since(settings, reported):
    """The commits of what unsubscribe() revoked are open when the JoinGroup is answered: others may own that by now."""
    loop = GroupLoop(partition_assignment_strategy="cooperative-sticky", group_instance_id="i", **settings)
    loop.stable()
    loop.heartbeat(REBALANCE)
    commit(loop.consumer, (0, 5))
    loop.turn()
    loop.consumer.unsubscribe()
    loop.turn()
    assert answer_commit(loop, ILLEGAL_GENERATION) == {0: 5}
    before = loop.generation
    loop.generation += 1
    loop.joined(leader="other")
    loop.advance(1000)
    generations = [request["body"]["generation_id_or_member_epoch"] for request in loop.requests(OFFSET_COMMIT)]
    assert all(generation == before for generation in generations)
    while loop.requests(OFFSET_COMMIT):
        answer_commit(loop, ILLEGAL_GENERATION)
        loop.advance(1000)
    loop.serve()
    assert reported == [(ILLEGAL_GENERATION, [(0, 5)])]


def test_a_static_member_that_missed_no_generation_keeps_its_partitions(settings):
    loop = GroupLoop(partition_assignment_strategy="cooperative-sticky", group_instance_id="i", **settings)
    loop.stable()
    loop.heartbeat(REBALANCE)
    loop.joined()
    assert loop.state == "JOINING"
    assert loop.assigned == ALL


# -- KIP-848


@pytest.fixture
def member(settings: dict[str, Any]) -> Member:
    return Member(**settings)


def test_a_leave_of_the_consumer_protocol_waits_for_every_commit(member, reported):
    member.join(assignment={T: [0, 1]})
    commit(member.consumer, (0, 5))
    member.consumer.unsubscribe()
    member.settle()
    assert member.beats() == []
    assert answer_commit(member) == {0: 5}
    assert member.beat()["body"]["member_epoch"] == LEFT
    member.poll()
    assert reported == [(None, [(0, 5)])]


@pytest.mark.parametrize("error", [0, STALE_EPOCH])
def test_a_revocation_is_acknowledged_after_commits_made_in_on_revoke(member, reported, error):
    member.join(assignment={T: [0, 1]})
    member.consumer.subscribe(["t"], on_revoke=lambda consumer, _: commit(consumer, (1, 6)))
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=1, assignment={T: [0]})
    member.reconcile()
    assert member.beats() == []
    answer_commit(member, error)
    if error:
        assert member.beats() and "topic_partitions" not in {
            k for k, v in member.beat()["body"].items() if v is not None}
        member.reply(member.beat(), epoch=2)
        member.advance(1500)
        assert answer_commit(member) == {1: 6}
    assert owned(member.beat()) == {T: [0]}
    member.poll()
    assert reported == [(None, [(1, 6)])]


def test_a_commit_made_before_its_partition_is_revoked_survives_a_newer_epoch(member, reported):
    """Until the revocation is acknowledged the partition belongs to this member, also inside of on_revoke."""
    member.join(assignment={T: [0, 1]})
    commit(member.consumer, (1, 6))
    member.turn()
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=2, assignment={T: [0]})
    answer_commit(member, STALE_EPOCH)
    member.advance(1500)
    assert answer_commit(member) == {1: 6}
    member.reconcile()
    assert reported == [(None, [(1, 6)])]


def test_close_gives_the_leave_of_an_unsubscribe_its_own_time_only(settings, reported):
    """The leave waits for a commit that the coordinator does not answer, and unsubscribe() allows it a session."""
    loop = GroupLoop(**settings)
    loop.stable()
    commit(loop.consumer, (0, 5))
    loop.consumer.unsubscribe()
    loop.turn()
    loop.consumer.close(2)
    assert reported == [(KafkaError._TIMED_OUT, [(0, 5)])]
