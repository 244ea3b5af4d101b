"""ConsumerHeartbeatManager, through the loop."""

import base64

import pytest
from consumer_group_loop import (
    ALL_FIELDS,
    COORDINATOR_CHANNEL,
    FIND_COORDINATOR,
    HEARTBEAT,
    INTERVAL_MS,
    SUBSCRIPTION,
    Member,
    T,
    U,
    V,
    carried,
    lookups,
    owned,
    unresolved,
)
from stepped_loop import METADATA, Topic

from kconsumer import KafkaError, KafkaException

NOT_COORDINATOR, NOT_AVAILABLE, LOADING = 16, 15, 14
UNKNOWN_MEMBER, FENCED_EPOCH, FENCED_INSTANCE, UNRELEASED = 25, 110, 82, 111
TOPIC_REFUSED, GROUP_REFUSED, INVALID_REQUEST, UNSUPPORTED_VERSION = 29, 30, 42, 35
GROUP_FULL, UNSUPPORTED_ASSIGNOR, INVALID_REGEX, GROUP_GONE = 81, 112, 128, 69
UNSUPPORTED_FEATURE, MAX_POLL_EXCEEDED = -165, -147
FATAL = [GROUP_REFUSED, INVALID_REQUEST, GROUP_FULL, UNSUPPORTED_ASSIGNOR, UNRELEASED, INVALID_REGEX, GROUP_GONE,
         UNSUPPORTED_VERSION, FENCED_INSTANCE, 9999]
LEFT, LEFT_FOR_A_WHILE = -1, -2


@pytest.fixture
def member():
    return Member()


# -- joining


def test_the_join_carries_every_field(member):
    member.subscribe("u", "t")
    member.settle()
    request = member.beat()
    assert (request["node"], request["channel"], request["version"]) == (1, COORDINATOR_CHANNEL, 1)
    assert carried(request) == ALL_FIELDS
    body = request["body"]
    assert (body["group_id"], body["member_epoch"], body["instance_id"]) == ("g", 0, None)
    assert body["subscribed_topic_names"] == ["t", "u"]
    assert body["rebalance_timeout_ms"] == 300_000
    assert body["topic_partitions"] == []


def test_the_configured_properties_are_sent():
    member = Member(group_remote_assignor="range", client_rack="here", group_instance_id="me",
                    max_poll_interval_ms=7000)
    member.subscribe("t")
    member.settle()
    body = member.beat()["body"]
    assert (body["server_assignor"], body["rack_id"], body["instance_id"]) == ("range", "here", "me")
    assert body["rebalance_timeout_ms"] == 7000


def test_the_member_id_is_the_clients_own_and_stays(member):
    member.subscribe("t")
    member.settle()
    first = member.beat()["body"]["member_id"]
    assert len(first) == 22
    raw = base64.urlsafe_b64decode(first + "==")
    assert (raw[6] >> 4, raw[8] >> 6) == (4, 2)
    member.reply(member.beat(), assignment={})
    assert member.consumer.memberid() == first
    member.acknowledge()
    member.advance(INTERVAL_MS)
    member.refuse(member.beat(), FENCED_EPOCH)
    assert member.beat()["body"]["member_id"] == first
    assert member.beat()["body"]["member_epoch"] == 0
    assert len({fresh_id() for _ in range(20)}) == 20


def fresh_id():
    member = Member()
    member.subscribe("t")
    member.settle()
    return member.beat()["body"]["member_id"]


def test_an_id_that_the_coordinator_gives_is_taken(member):
    member.subscribe("t")
    member.settle()
    member.reply(member.beat(), assignment={}, member_id="given")
    assert member.consumer.memberid() == "given"
    member.acknowledge()
    member.advance(INTERVAL_MS)
    assert member.beat()["body"]["member_id"] == "given"


def test_nothing_is_sent_before_a_subscription(member):
    member.settle()
    member.advance(20_000)
    assert member.beats() == []
    assert member.requests(FIND_COORDINATOR) == []


# -- heartbeats in a stable group


def test_a_heartbeat_with_no_news_carries_nothing(member):
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS - 1)
    assert member.beats() == []
    member.advance(1)
    assert carried(member.beat()) == set()
    assert member.beat()["body"]["member_epoch"] == 1


def test_the_interval_is_the_coordinators(member):
    member.join()
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), heartbeat_interval_ms=700)
    member.advance(699)
    assert member.beats() == []
    member.advance(1)
    assert carried(member.beat()) == set()


def test_an_interval_of_zero_is_ignored(member):
    member.join()
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), heartbeat_interval_ms=0)
    member.advance(100)
    assert member.beats() == []


def test_one_heartbeat_at_a_time(member):
    member.join()
    member.advance(INTERVAL_MS)
    member.advance(INTERVAL_MS)
    assert len(member.beats()) == 1


def test_the_loop_wakes_for_the_next_heartbeat(member):
    member.join()
    member.advance(1000)
    assert member.network.timeout_ms <= INTERVAL_MS - 1000


def test_a_new_epoch_is_used_from_the_next_heartbeat_on(member):
    member.join()
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=7)
    member.advance(INTERVAL_MS)
    assert member.beat()["body"]["member_epoch"] == 7


# -- subscription


def test_a_changed_subscription_is_sent_at_once_and_alone(member):
    member.join("t")
    member.subscribe("t", "u")
    member.settle()
    request = member.beat()
    assert carried(request) == SUBSCRIPTION
    assert request["body"]["subscribed_topic_names"] == ["t", "u"]
    assert request["body"]["member_epoch"] == 1


def test_the_same_subscription_is_not_sent_again(member):
    member.join("t")
    member.subscribe("t")
    member.settle()
    assert member.beats() == []


def test_a_change_while_the_join_is_out_follows_it(member):
    member.subscribe("t")
    member.settle()
    join = member.beat()
    member.subscribe("u")
    member.settle()
    assert [r["id"] for r in member.beats()] == [join["id"]]
    member.reply(join, assignment={})
    assert member.beat()["body"]["subscribed_topic_names"] == ["u"]


def test_a_single_pattern_is_sent_unchanged(member):
    member.subscribe("^t.*", "u")
    member.settle()
    body = member.beat()["body"]
    assert (body["subscribed_topic_regex"], body["subscribed_topic_names"]) == ("^t.*", ["u"])


def test_patterns_become_one_expression(member):
    member.subscribe("^b|c$", "^a")
    member.settle()
    assert member.beat()["body"]["subscribed_topic_regex"] == "(^a)|(^b|c$)"
    assert member.beat()["body"]["subscribed_topic_names"] == []


def test_a_pattern_that_re2_lacks_is_refused_at_subscribe(member):
    with pytest.raises(KafkaException, match="back-reference") as caught:
        member.subscribe(r"^(a)\1")
    assert caught.value.args[0].code() == KafkaError._INVALID_ARG
    member.settle()
    assert member.beats() == []


def test_only_an_empty_pattern_takes_one_back(member):
    member.join("^t.*")
    member.subscribe("t")
    member.settle()
    request = member.beat()
    assert carried(request) == SUBSCRIPTION
    assert request["body"]["subscribed_topic_regex"] == ""
    member.fail(request)
    member.advance(200)
    member.settle()
    # The answer that was lost may have been an error.
    assert member.beat()["body"]["subscribed_topic_regex"] == ""


def test_a_coordinator_of_v0_gets_the_names_that_match(member):
    member.network.set_version(HEARTBEAT, 0, 0)
    member.topics["tt"] = Topic({0: (1, 1)}, V)
    member.subscribe("^t", "u")
    member.settle(12)
    request = member.beat()
    assert request["version"] == 0
    assert request["body"]["subscribed_topic_names"] == ["t", "tt", "u"]
    assert request["body"]["member_epoch"] == 0
    member.reply(request, assignment={})
    member.reconcile()
    member.acknowledge()
    member.topics["t3"] = Topic({0: (1, 1)}, bytes(15) + b"\x77")
    for _ in range(5):
        member.advance(INTERVAL_MS)
        member.settle()
        news = [r["body"]["subscribed_topic_names"] for r in member.beats() if r["body"]["subscribed_topic_names"]]
        member.acknowledge()
        if news:
            break
    assert news == [["t", "t3", "tt", "u"]]


def test_topics_that_may_not_be_seen_are_left_out(member):
    member.topics["u"].error = TOPIC_REFUSED
    member.subscribe("t", "u")
    member.settle()
    assert member.beat()["body"]["subscribed_topic_names"] == ["t"]
    assert member.errors_reported() == [TOPIC_REFUSED]
    member.reply(member.beat(), assignment={})
    member.acknowledge()
    member.topics["u"].error = 0
    for _ in range(30):
        member.advance(100)
        member.settle()
        if member.beats():
            break
    assert member.beat()["body"]["subscribed_topic_names"] == ["t", "u"]


def test_a_subscribed_topic_that_does_not_exist_yet_is_not_an_error(member):
    member.subscribe("t", "later")
    member.settle()
    assert member.beat()["body"]["subscribed_topic_names"] == ["later", "t"]
    member.reply(member.beat(), assignment={})
    assert member.errors_reported() == []


def test_a_refused_topic_is_reported_once_and_the_member_stays(member):
    member.join("t", assignment={T: [0]})
    for _ in range(3):
        for _ in range(60):
            if member.beats():
                break
            member.advance(100)
            member.settle()
        member.refuse(member.beat(), TOPIC_REFUSED)
    assert member.errors_reported() == [TOPIC_REFUSED]
    assert member.assigned == [("t", 0)]
    member.advance(1300)
    member.settle()
    assert carried(member.beat()) == ALL_FIELDS
    assert owned(member.beat()) == {T: [0]}


# -- assignments


def test_an_assignment_reaches_the_application_and_is_acknowledged(member):
    member.subscribe("t")
    member.settle()
    member.reply(member.beat(), epoch=3, assignment={T: [1, 0]})
    assert member.beats() == []
    member.reconcile()
    assert member.calls == [("assign", [("t", 0), ("t", 1)])]
    assert member.assigned == [("t", 0), ("t", 1)]
    request = member.beat()
    assert carried(request) == {"topic_partitions"}
    assert owned(request) == {T: [0, 1]}
    assert request["body"]["member_epoch"] == 3


def test_a_revocation_is_acknowledged_after_its_commit_and_before_the_rest(member):
    member.join("t", "u", assignment={T: [0, 1]})
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=2, assignment={T: [0], U: [1]})
    member.poll()
    member.settle()
    assert member.calls[1] == ("revoke", [("t", 1)])
    request = member.beat()
    assert carried(request) == {"topic_partitions"}
    # What is being assigned counts as owned: its on_assign may have begun.
    assert owned(request) == {T: [0], U: [1]}
    member.reply(request, epoch=2)
    member.reconcile()
    assert member.calls[2] == ("assign", [("u", 1)])
    assert owned(member.beat()) == {T: [0], U: [1]}


def test_partitions_that_are_being_revoked_are_still_owned_in_a_full_heartbeat(member):
    member.join(assignment={T: [0, 1]})
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=2, assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.fail(member.beat())
    member.advance(200)
    member.settle()
    assert carried(member.beat()) == ALL_FIELDS
    assert owned(member.beat()) == {T: [0, 1]}


def test_partitions_that_are_being_assigned_are_owned_in_a_full_heartbeat(member):
    """Else the coordinator gives them to another member at once, while the application is about to get them too."""
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=2, assignment={T: [0, 1]})
    member.advance(INTERVAL_MS)
    member.fail(member.beat())
    member.advance(200)
    member.settle()
    assert carried(member.beat()) == ALL_FIELDS
    assert owned(member.beat()) == {T: [0, 1]}


def test_an_epoch_of_zero_carries_every_field_again(member):
    """A coordinator that has nothing for a member yet may answer its join so (librdkafka's mock cluster does)."""
    member.join(epoch=0, assignment={})
    member.advance(INTERVAL_MS)
    assert member.beat()["body"]["member_epoch"] == 0
    assert carried(member.beat()) == ALL_FIELDS


def test_heartbeats_continue_while_a_callback_is_awaited(member):
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=2, assignment={})
    for _ in range(4):
        member.advance(INTERVAL_MS)
        assert carried(member.beat()) == set()
        member.reply(member.beat(), epoch=2)
    assert member.calls[1:] == []
    member.poll()
    member.settle()
    assert owned(member.beat()) == {}


def test_the_same_assignment_again_changes_nothing(member):
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.fail(member.beat())
    member.advance(200)
    member.settle()
    member.reply(member.beat(), epoch=1, assignment={T: [0]})
    assert member.beats() == []
    member.poll()
    assert len(member.calls) == 1


def test_a_newer_assignment_does_not_wait_for_an_on_assign_that_has_not_begun(member):
    member.join("t", assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=2, assignment={T: [0, 1]})
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=3, assignment={T: [2]})
    member.acknowledge(3)
    assert member.calls == [("assign", [("t", 0)])]
    member.poll()
    member.settle()
    assert member.calls == [("assign", [("t", 0)]), ("revoke", [("t", 0)])]
    assert owned(member.beat()) == {T: [2]}
    member.acknowledge(3)
    member.reconcile()
    assert owned(member.beat()) == {T: [2]}
    assert member.calls[2:] == [("assign", [("t", 2)])]


def test_a_topic_id_that_is_not_known_is_looked_up_and_the_target_held(member):
    member.topics["v"] = Topic({0: (1, 1)}, V)
    member.subscribe("^.*")
    member.settle()
    member.reply(member.beat(), assignment={T: [0], V: [0]})
    (request,) = lookups(member.requests(METADATA))
    assert sorted(t["topic_id"] for t in request["body"]["topics"]) == [T, V]
    assert request["version"] >= 12
    assert not request["body"]["allow_auto_topic_creation"]
    assert member.poll() is None
    assert member.calls == []
    member.answer(request, member.metadata_body(["t", "v"]))
    member.reconcile()
    assert member.calls == [("assign", [("t", 0), ("v", 0)])]
    assert owned(member.beat()) == {T: [0], V: [0]}


def test_partitions_with_a_known_name_continue_and_the_rest_is_asked_again(member):
    member.subscribe("t")
    member.settle()
    member.reply(member.beat(), assignment={T: [0], V: [0]})
    (request,) = lookups(member.requests(METADATA))
    assert [t["topic_id"] for t in request["body"]["topics"]] == [V]
    member.answer(request, unresolved(member, [V]))
    member.reconcile()
    assert member.calls == [("assign", [("t", 0)])]
    assert owned(member.beat()) == {T: [0]}
    member.acknowledge()
    member.topics["v"] = Topic({0: (1, 1)}, V)
    member.advance(130)
    (request,) = lookups(member.requests(METADATA))
    member.answer(request, member.metadata_body(["v"]))
    member.reconcile()
    assert member.calls[1] == ("assign", [("v", 0)])
    assert owned(member.beat()) == {T: [0], V: [0]}


def test_a_topic_that_stays_unknown_is_asked_for_less_and_less_often(member):
    member.subscribe("t")
    member.settle()
    member.reply(member.beat(), assignment={V: [0]})
    asked = 0
    for _ in range(600):
        for request in lookups(member.requests(METADATA)):
            asked += 1
            member.answer(request, unresolved(member, [V]), 0)
        for request in member.beats():
            member.reply(request)
        member.poll()
        member.advance(100)
    assert 8 <= asked <= 16
    assert member.calls == []


def test_a_deleted_topic_leaves_the_target_by_itself(member):
    member.subscribe("t")
    member.settle()
    member.reply(member.beat(), assignment={T: [0], V: [0]})
    member.answer(lookups(member.requests(METADATA))[0], unresolved(member, [V]))
    member.reconcile()
    member.reply(member.beat(), epoch=2, assignment={T: [0]})
    member.acknowledge(2)
    member.advance(INTERVAL_MS - 1)
    assert lookups(member.requests(METADATA)) == []
    assert member.assigned == [("t", 0)]


def test_a_target_equal_to_the_owned_partitions_is_acknowledged(member):
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=2, assignment={T: [0], V: [0]})
    member.answer(lookups(member.requests(METADATA))[0], unresolved(member, [V]))
    member.settle()
    assert owned(member.beat()) == {T: [0]}
    member.acknowledge(2)
    assert member.errors_reported() == []
    assert member.serve() == []
    member.advance(INTERVAL_MS)
    assert member.beat()["body"]["member_epoch"] == 2


def test_a_partition_comes_back_whose_on_assign_had_not_begun(member):
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=2, assignment={T: [0, 1]})
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=3, assignment={T: [0]})
    member.acknowledge(3)
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=4, assignment={T: [0, 1]})
    member.reconcile()
    assert owned(member.beat()) == {T: [0, 1]}
    assert member.calls == [("assign", [("t", 0)]), ("assign", [("t", 1)])]
    member.acknowledge(4)
    assert member.serve() == []
    assert member.assigned == [("t", 0), ("t", 1)]


def test_a_recreated_topic_keeps_its_partitions_under_its_new_id(member):
    member.join(assignment={T: [0]})
    member.topics["t"].topic_id = V
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=2, assignment={V: [0]})
    for request in lookups(member.requests(METADATA)):
        member.answer(request, member.metadata_body(["t"]))
    member.settle()
    assert owned(member.beat()) == {V: [0]}
    assert member.calls == [("assign", [("t", 0)])]
    assert member.serve() == []


def test_a_failed_lookup_is_asked_again(member):
    member.subscribe("t")
    member.settle()
    member.reply(member.beat(), assignment={V: [0]})
    member.fail(lookups(member.requests(METADATA))[0])
    assert member.poll() is None
    assert lookups(member.requests(METADATA)) == []
    member.topics["v"] = Topic({0: (1, 1)}, V)
    member.advance(130)
    member.answer(lookups(member.requests(METADATA))[0], member.metadata_body(["v"]))
    member.reconcile()
    assert member.calls == [("assign", [("v", 0)])]


def test_the_answer_to_an_older_lookup_opens_no_newer_target(member):
    member.subscribe("t")
    member.settle()
    member.reply(member.beat(), assignment={V: [0]})
    old = lookups(member.requests(METADATA))[0]
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), epoch=2, assignment={T: [0], U: [0]})
    member.answer(old, unresolved(member, [V]))
    member.poll()
    assert member.calls == []


# -- what goes wrong


def test_after_a_lost_answer_everything_is_sent_again(member):
    member.join("t", assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.fail(member.beat())
    assert member.beats() == []
    member.advance(130)
    member.settle()
    request = member.beat()
    assert carried(request) == ALL_FIELDS
    assert owned(request) == {T: [0]}
    assert request["body"]["member_epoch"] == 1
    # It may have held an assignment.
    member.reply(request, epoch=2, assignment={T: [0, 1]})
    member.reconcile()
    assert member.assigned == [("t", 0), ("t", 1)]


def test_a_coordinator_that_hangs_is_noticed_before_the_session_ends(member):
    member.join()
    member.advance(INTERVAL_MS)
    request = member.beat()
    assert request["deadline_ms"] - request["sent_ms"] == 6 * INTERVAL_MS


def test_a_lost_connection_looks_for_the_coordinator_again(member):
    member.join()
    member.advance(INTERVAL_MS)
    member.coordinator = 2
    member.fail(member.beat())
    member.settle()
    member.advance(130)
    member.settle()
    assert member.beat()["node"] == 2
    assert carried(member.beat()) == ALL_FIELDS


def test_a_heartbeat_without_an_answer_is_given_up(member):
    member.join()
    member.advance(INTERVAL_MS)
    member.advance(60_000)
    member.advance(1)
    member.settle()
    member.advance(130)
    member.settle()
    assert carried(member.beat()) == ALL_FIELDS


@pytest.mark.parametrize("code", [NOT_COORDINATOR, NOT_AVAILABLE])
def test_another_coordinator_is_sent_everything_at_once(member, code):
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.coordinator = 2
    member.refuse(member.beat(), code)
    request = member.beat()
    assert request["node"] == 2
    assert carried(request) == ALL_FIELDS
    assert owned(request) == {T: [0]}
    assert member.calls == [("assign", [("t", 0)])]


def test_a_coordinator_that_denies_itself_is_asked_with_backoff(member):
    member.join()
    member.advance(INTERVAL_MS)
    member.refuse(member.beat(), NOT_COORDINATOR)
    member.refuse(member.beat(), NOT_COORDINATOR)
    assert member.beats() == []
    member.advance(250)
    member.settle()
    assert len(member.beats()) == 1


def test_a_coordinator_that_loads_is_asked_again_with_backoff(member):
    member.join()
    member.advance(INTERVAL_MS)
    member.refuse(member.beat(), LOADING)
    assert member.beats() == []
    assert member.requests(FIND_COORDINATOR) == []
    member.advance(130)
    assert carried(member.beat()) == ALL_FIELDS
    assert member.beat()["body"]["member_epoch"] == 1


@pytest.mark.parametrize("code", [FENCED_EPOCH, UNKNOWN_MEMBER])
def test_a_fenced_member_loses_its_partitions_and_joins_again(member, code):
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.refuse(member.beat(), code)
    member.advance(INTERVAL_MS)
    # Not before the application has released its partitions.
    assert member.beats() == []
    member.poll()
    assert member.calls[1:] == [("lost", [("t", 0)])]
    member.settle()
    request = member.beat()
    assert carried(request) == ALL_FIELDS
    assert (request["body"]["member_epoch"], request["body"]["topic_partitions"]) == (0, [])
    member.reply(request, epoch=9, assignment={T: [0]})
    member.reconcile()
    assert member.assigned == [("t", 0)]


def test_a_join_that_is_answered_as_fenced_backs_off(member):
    member.subscribe("t")
    member.settle()
    waits = []
    for _ in range(4):
        start = member.clock.ms
        member.refuse(member.beat(), UNKNOWN_MEMBER)
        while not member.beats():
            member.advance(10)
        waits.append(member.clock.ms - start)
    for wait, base in zip(waits, [100, 200, 400, 800], strict=True):
        assert 0.8 * base <= wait <= 1.2 * base + 10


@pytest.mark.parametrize("code", FATAL)
def test_permanent_group_errors_are_fatal(member, code):
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.refuse(member.beat(), code, "because")
    reported = member.errors_reported() + member.serve()
    assert code in reported
    assert member.calls[1:] == [("lost", [("t", 0)])]
    member.settle()
    member.advance(20_000)
    assert member.beats() == []
    assert member.assigned == []
    error = member.poll().error()
    assert (error.cause, error.fatal(), error.retriable()) == (code, True, False)  # as in librdkafka


@pytest.mark.parametrize("code", [LOADING, NOT_AVAILABLE, NOT_COORDINATOR, FENCED_EPOCH, UNKNOWN_MEMBER, TOPIC_REFUSED])
def test_temporary_group_errors_are_not_fatal(member, code):
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.refuse(member.beat(), code)
    for _ in range(3):
        message = member.poll()
        assert message is None or not message.error().fatal()
        member.turn()


def test_a_cluster_without_the_protocol_is_named_with_its_remedy(member):
    member.network.set_version(HEARTBEAT, 5, 5)
    member.subscribe("t")
    member.settle()
    message = member.poll()
    assert message.error().cause == UNSUPPORTED_FEATURE
    assert message.error().fatal()
    assert "group.protocol=classic" in message.error().str()
    assert member.beats() == []


def test_a_protocol_that_is_switched_off_is_named_with_its_remedy(member):
    member.subscribe("t")
    member.settle()
    member.refuse(member.beat(), UNSUPPORTED_VERSION, None)
    assert "group.protocol=classic" in member.poll().error().str()


def test_an_instance_id_in_use_is_named():
    member = Member(group_instance_id="me")
    member.subscribe("t")
    member.settle()
    member.refuse(member.beat(), UNRELEASED, "Static member me with member id x was fenced")
    error = member.poll().error()
    assert error.cause == UNRELEASED
    assert error.fatal()
    assert "group.instance.id me" in error.str()


def test_a_fatal_error_is_reported_forever(member):
    member.subscribe("^[z-a]")
    member.settle()
    member.refuse(member.beat(), INVALID_REGEX)
    assert [member.poll().error().cause for _ in range(3)] == [INVALID_REGEX] * 3
    with pytest.raises(KafkaException) as raised:
        member.consumer.consume_batch(timeout=0)
    assert raised.value.args[0].fatal()


def test_without_a_coordinator_for_good_the_group_ends(member):
    member.subscribe("t")
    for _ in range(4):
        member.turn()
        for request in member.requests(METADATA):
            member.answer(request, member.metadata_body([t["name"] for t in request["body"]["topics"]]))
    member.answer(member.one(FIND_COORDINATOR), member.found(error_code=GROUP_REFUSED, node_id=-1))
    member.turn(2)
    error = member.poll().error()
    assert (error.code(), error.fatal()) == (GROUP_REFUSED, False)
    assert member.poll() is None
    assert member.beats() == []
    member.subscribe("t")  # starts again
    member.turn()
    member.advance(1000)
    assert len(member.requests(FIND_COORDINATOR)) == 1


def test_an_answer_that_cannot_be_read_is_a_lost_one(member):
    member.join(assignment={T: [0]})
    member.advance(INTERVAL_MS)
    member.network.answer(member.beat()["id"], b"\0\0")
    member.turn()
    member.advance(130)
    member.settle()
    assert carried(member.beat()) == ALL_FIELDS
    assert member.assigned == [("t", 0)]


def test_throttling_mutes_the_connection(member):
    member.join()
    member.advance(INTERVAL_MS)
    member.reply(member.beat(), throttle_time_ms=9000)
    member.advance(INTERVAL_MS)
    assert member.beats() == []
    member.advance(4001)
    assert len(member.beats()) == 1
