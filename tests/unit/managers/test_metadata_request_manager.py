"""MetadataRequestManager, through the loop."""

import pytest
from stepped_loop import (
    BACKOFF,
    CONTROL_CHANNEL,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    NO_ID,
    OFFSET_FOR_LEADER_EPOCH,
    REFRESH_MS,
    T1,
    T2,
    Topic,
    inside,
    records,
)

TIMED_OUT, ALL_BROKERS_DOWN, DESTROY, UNSUPPORTED = -185, -187, -197, -165
UNKNOWN_TOPIC, NOT_LEADER, REBOOTSTRAP_REQUIRED, NOT_AUTHORIZED = 3, 6, 129, 29
INVALID_TOPIC, UNKNOWN_TOPIC_ID, AUTO_OFFSET_RESET = 17, 100, -140


def topics_of(request):
    return None if request["body"]["topics"] is None else sorted(t["name"] for t in request["body"]["topics"])


# -- what is asked, and when


def test_brokers_are_asked_for_before_anything_is_assigned(loop):
    loop.turn()
    request = loop.one(METADATA)
    assert topics_of(request) == []
    assert request["node"] == -2
    loop.answer_metadata()
    assert loop.network.node_list == {1: "one:9092", 2: "two:9092"}


def test_one_request_for_all_topics_of_the_assignment(loop):
    loop.topics["u"] = Topic({0: (2, 1)})
    loop.turn()
    loop.answer_metadata()
    loop.consumer._assign([("t", 0, 0, -1), ("u", 0, 0, -1), ("t", 1, 0, -1)], True)
    loop.turn(3)
    assert topics_of(loop.one(METADATA)) == ["t", "u"]


def test_a_topic_assigned_while_a_request_is_in_flight_is_asked_for_next(loop):
    loop.turn()
    loop.consumer._assign([("t", 0, 0, -1)], True)
    loop.turn()
    assert topics_of(loop.one(METADATA)) == []
    loop.answer_metadata()
    loop.turn()
    assert topics_of(loop.one(METADATA)) == ["t"]


def test_no_request_while_nothing_has_changed(loop):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 3)}})
    loop.advance(1000)
    assert loop.requests(METADATA) == []


@pytest.mark.parametrize("age_ms", [60_000, 900_000])
def test_metadata_is_refreshed_at_its_maximum_age(loops, age_ms):
    loop = loops(topic_metadata_refresh_interval_ms=age_ms)
    loop.turn()
    loop.answer_metadata()
    loop.advance(age_ms - 1)
    assert loop.requests(METADATA) == []
    assert loop.network.timeout_ms <= 1
    loop.advance(1)
    assert topics_of(loop.one(METADATA)) == []


def test_a_negative_age_never_refreshes(loops):
    loop = loops(topic_metadata_refresh_interval_ms=-1)
    loop.turn()
    loop.answer_metadata()
    loop.advance(10 * 24 * 3600 * 1000)
    assert loop.requests(METADATA) == []


def test_an_unassigned_topic_is_not_asked_for_again(loop):
    loop.assign(("t", 0, 0))
    loop.consumer._assign([], True)
    loop.advance(REFRESH_MS)
    assert topics_of(loop.one(METADATA)) == []
    assert inside.sizes(loop.consumer)["interest"] == 0


def test_a_failed_request_is_repeated_with_growing_backoff(loop):
    loop.turn()
    waits = []
    for _ in range(7):
        loop.network.set_readiness(-2, CONTROL_CHANNEL, 0)
        loop.fail(loop.one(METADATA))
        waited = 0
        loop.turn()
        while not loop.requests(METADATA):
            assert loop.network.timeout_ms > 0
            waited += loop.network.timeout_ms
            loop.advance(loop.network.timeout_ms)
        waits.append(waited)
    for wait, base in zip(waits, [100, 200, 400, 800, 1000, 1000, 1000], strict=True):
        assert 0.8 * base <= wait <= 1.2 * base


def test_backoff_is_reset_by_a_success(loop):
    loop.turn()
    for _ in range(5):
        loop.fail(loop.one(METADATA))
        loop.advance(1200)
    loop.answer_metadata()
    loop.consumer._assign([("t", 0, 0, -1)], True)
    loop.turn()
    loop.fail(loop.one(METADATA))
    loop.advance(120)
    assert loop.requests(METADATA)


def test_many_callers_do_not_make_a_storm_of_requests(loop):
    """Partitions that fail one after the other ask for news at most once in a retry backoff."""
    loop.topics["t"] = Topic({n: (1, 5) for n in range(40)})
    loop.assign(*[("t", n, 0) for n in range(40)])
    loop.advance(1000)
    sent = 0
    for n in range(40):
        fetch = loop.one(FETCH)
        loop.fetched(fetch, {n: {"error_code": NOT_LEADER}})
        while loop.requests(METADATA):
            sent += 1
            loop.answer_metadata()
    assert 1 <= sent <= 2


# -- answers


def test_an_answer_without_brokers_changes_nothing_and_is_asked_again(loop):
    loop.assign(("t", 0, 0))
    loop.advance(REFRESH_MS)
    loop.answer_metadata(brokers=[])
    assert loop.network.node_list == {1: "one:9092", 2: "two:9092"}
    assert loop.requests(METADATA) == []
    loop.advance(120)
    assert loop.one(METADATA)


@pytest.mark.parametrize("node_id", [-1, -2, -(2**31)])
def test_an_answer_with_a_negative_broker_id_changes_nothing_and_is_asked_again(loop, node_id):
    """They mean "no broker" and the addresses of bootstrap.servers: without others, no request found a broker."""
    loop.assign(("t", 0, 0))
    loop.advance(REFRESH_MS)
    loop.answer_metadata(brokers=[{"node_id": node_id, "host": "one", "port": 9092}])
    assert loop.network.node_list == {1: "one:9092", 2: "two:9092"}
    loop.serve()
    assert [error.str() for error in loop.errors] == [f"MetadataResponse: field brokers: node_id {node_id} is negative"]
    loop.advance(120)
    loop.answer_metadata()
    assert loop.requests(METADATA) == []


def test_an_answer_with_a_nul_in_a_topics_name_is_asked_again(loop):
    """Under the consumer protocol it names what is assigned; a TopicPartition with such a name cannot be made."""
    loop.turn()
    loop.answer_metadata(topics=[{"error_code": 0, "name": "t\0", "topic_id": T1, "partitions": []}])
    loop.serve()
    assert [error.str() for error in loop.errors] == [
        "MetadataResponse: field topics: a name contains a NUL character"]
    loop.advance(120)
    loop.answer_metadata()
    assert loop.network.node_list == {1: "one:9092", 2: "two:9092"}


def test_an_answer_that_cannot_be_read_ends_the_connection_and_is_asked_again(loop):
    loop.turn()
    loop.network.answer(loop.one(METADATA)["id"], b"\xff" * 3)
    loop.turn()
    assert loop.requests(METADATA) == []
    loop.advance(120)
    loop.answer_metadata()
    assert loop.network.node_list == {1: "one:9092", 2: "two:9092"}


def test_an_older_leader_epoch_is_ignored(loop):
    loop.assign(("t", 0, 0))
    assert loop.inside()["leader"] == 1
    loop.topics["t"].leaders[0] = (2, 4)
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    assert (loop.inside()["leader"], loop.inside()["leader_epoch"]) == (1, 5)
    assert inside.leader(loop.consumer, "t", 0) == (1, 5)


def test_an_older_leader_epoch_counts_if_the_newer_leader_is_no_broker(loop):
    """It could not be asked: the partition would wait for an epoch above that one."""
    loop.assign(("t", 0, 0))
    loop.topics["t"].leaders[0] = (2**31 - 1, 2**30)
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    assert loop.inside()["leader"] == 2**31 - 1
    loop.topics["t"].leaders[0] = (2, 6)
    loop.refresh_metadata()
    assert (loop.inside()["leader"], loop.inside()["leader_epoch"]) == (2, 6)
    assert inside.leader(loop.consumer, "t", 0) == (2, 6)
    loop.turn()
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 0): 0}


def test_a_newer_leader_epoch_moves_the_partition(loop):
    loop.assign(("t", 0, 0))
    loop.topics["t"].leaders[0] = (2, 6)
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.turn()
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 0): 0}


def test_partitions_that_are_added_later_are_found(loop):
    loop.topics["t"] = Topic({0: (1, 5)})
    loop.assign(("t", 0, 0), ("t", 7, 3))
    assert loop.offsets() == [("error", UNKNOWN_TOPIC)]
    loop.topics["t"].leaders[7] = (2, 0)
    loop.refresh_metadata()
    loop.turn()
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 7): 3}


# -- topics that are not there


def test_a_missing_topic_is_reported_once_per_partition_and_asked_again(loop):
    loop.assign(("nope", 0, 0), ("nope", 1, 0))
    assert loop.offsets() == [("error", UNKNOWN_TOPIC)] * 2
    for _ in range(4):
        loop.refresh_metadata()
        loop.turn()
    assert loop.offsets() == []
    loop.topics["nope"] = Topic({0: (1, 0), 1: (1, 0)}, topic_id=T2)
    loop.refresh_metadata()
    loop.turn()
    assert loop.asked(loop.one(FETCH)) == {("nope", 0): 0, ("nope", 1): 0}


@pytest.mark.parametrize(("partition", "error", "text"), [
    (("nope", 0, 0), 0, "partition nope [0] does not exist: check the topic's name, or create the topic"),
    (("t", 99, 0), 0, "partition t [99] does not exist"),
    (("t", 0, 0), NOT_AUTHORIZED, "t [0]: not authorized for the topic: grant READ (or DESCRIBE) on topic t"),
    (("t", 0, 0), INVALID_TOPIC, "t [0]: the topic name is invalid"),
])
def test_a_missing_partition_is_reported_with_the_remedy(loop, partition, error, text):
    loop.topics["t"].error = error
    loop.assign(partition)
    loop.turn()
    assert loop.consumer.poll(0).error().str() == text


def test_a_missing_topic_is_reported_again_after_it_was_there(loop):
    loop.assign(("t", 0, 0))
    for _ in range(2):
        known = loop.topics.pop("t")
        loop.advance(REFRESH_MS)
        loop.answer_metadata()
        loop.turn()
        assert loop.offsets() == [("error", UNKNOWN_TOPIC)]
        loop.topics["t"] = known
        loop.refresh_metadata()
        loop.turn()
        loop.advance(REFRESH_MS)


@pytest.mark.parametrize("code", [NOT_AUTHORIZED, INVALID_TOPIC])
def test_other_topic_errors_are_reported_once(loop, code):
    loop.topics["t"].error = code
    loop.assign(("t", 0, 0))
    assert loop.offsets() == [("error", code)]
    loop.refresh_metadata()
    loop.turn()
    assert loop.offsets() == []


def test_a_topic_whose_leader_is_being_elected_is_asked_again_in_silence(loop):
    loop.topics["t"].leaders[0] = (-1, 5)
    loop.consumer._assign([("t", 0, 0, -1)], True)
    loop.turn()
    loop.answer_metadata()
    loop.turn(2)
    assert loop.offsets() == []
    assert loop.requests(METADATA) == []
    loop.topics["t"].leaders[0] = (2, 6)
    loop.refresh_metadata()
    loop.turn()
    assert loop.asked(loop.one(FETCH, 2)) == {("t", 0): 0}


# -- topics created again


def read_some(loop, policy_end=3):
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, policy_end, epoch=5)}})
    loop.turn()
    assert loop.offsets() == list(range(policy_end))


def test_a_recreated_topic_is_read_by_the_reset_policy(loop):
    read_some(loop)
    loop.topics["t"] = Topic({0: (1, 0)}, topic_id=T2)
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.turn()
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"offset": 0})
    loop.turn()
    for request in loop.requests(FETCH):
        if ("t", 0) not in loop.asked(request):
            loop.fetched(request, {})  # the long poll for the old topic
    fetch = loop.one(FETCH)
    assert loop.asked(fetch) == {("t", 0): 0}
    assert [t["topic_id"] for t in fetch["body"]["topics"]] == [T2]
    assert [t["topic_id"] for t in fetch["body"]["forgotten_topics_data"]] == [T1]
    assert loop.inside()["leader_epoch"] == 0


def test_a_deleted_and_recreated_topic_is_read_by_the_reset_policy(loop):
    """Between the two it is missing, and its leader epoch starts again below the old one."""
    read_some(loop)
    del loop.topics["t"]
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.turn()
    assert loop.offsets() == [("error", UNKNOWN_TOPIC)]
    loop.topics["t"] = Topic({0: (1, 0)}, topic_id=T2)
    loop.refresh_metadata()
    loop.turn()
    assert loop.inside()["leader_epoch"] == 0
    loop.answer_offsets(loop.one(LIST_OFFSETS), lambda *_: {"offset": 0})
    loop.turn()
    for request in loop.requests(FETCH):
        if ("t", 0) not in loop.asked(request):
            loop.fetched(request, {})
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 0}


def test_a_recreated_topic_stops_without_a_reset_policy(loops):
    loop = loops(auto_offset_reset="error")
    read_some(loop)
    loop.topics["t"] = Topic({0: (1, 0)}, topic_id=T2)
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.turn(2)
    message = loop.poll()
    assert message.error().code() == AUTO_OFFSET_RESET
    assert "recreated" in message.error().str()
    loop.consumer._seek("t", 0, 0, -1)
    loop.turn()
    for request in loop.requests(FETCH):
        if ("t", 0) not in loop.asked(request):
            loop.fetched(request, {})
    assert loop.asked(loop.one(FETCH)) == {("t", 0): 0}


def test_an_answer_without_topic_ids_does_not_mean_a_new_topic(loop):
    """A broker of an older version, in a cluster that is being upgraded, does not tell ids."""
    read_some(loop)
    loop.topics["t"].topic_id = NO_ID
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.turn()
    assert loop.requests(LIST_OFFSETS) == []
    assert loop.inside()["state"] == "ACTIVE"
    loop.topics["t"].topic_id = T1
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.turn()
    assert loop.inside()["state"] == "ACTIVE"


@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_the_old_id_of_a_recreated_topic_is_ignored(loops, policy):
    """A broker whose metadata are older names it once more: reading goes on after the records that were read."""
    loop = loops(auto_offset_reset=policy)
    end = 0

    def read():
        """Offsets that arrive in two seconds. The broker knows the new topic, whose log ends at `end`."""
        found = []
        for _ in range(20):
            loop.advance(100)
            for request in loop.requests(LIST_OFFSETS):
                loop.answer_offsets(request, lambda _topic, _partition, time: {"offset": 0 if time == -2 else end})
            for request in loop.requests(FETCH):
                if T1 in [t["topic_id"] for t in request["body"]["topics"]]:
                    loop.answer(request, unknown_id(request))
                else:
                    at.update(loop.asked(request))
                    loop.fetched(request, {0: {"records": records(at["t", 0], end)}} if at["t", 0] < end else {})
            while loop.requests(METADATA):
                loop.answer_metadata()
            found += loop.offsets()
        return found

    def unknown_id(request):
        return {"error_code": 0, "session_id": request["body"]["session_id"], "responses": [
            {"topic": "", "topic_id": T1, "partitions": [{
                "partition_index": 0, "error_code": UNKNOWN_TOPIC_ID, "high_watermark": -1, "last_stable_offset": -1,
                "log_start_offset": -1, "aborted_transactions": None, "records": b""}]}]}

    read_some(loop)
    old, new = loop.topics["t"], Topic({0: (1, 0)}, topic_id=T2)
    at = {("t", 0): 0}
    loop.topics["t"] = new
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    assert read() == []
    end = 4
    assert read() == [0, 1, 2, 3]
    end = 8
    loop.topics["t"] = old
    loop.advance(REFRESH_MS)
    loop.answer_metadata()
    loop.topics["t"] = new
    assert read() == [4, 5, 6, 7]


def test_a_former_id_that_all_brokers_name_counts(loop):
    """The id that came after it was the wrong one: it was of a broker that lags."""
    read_some(loop)
    right, wrong = loop.topics["t"], Topic({0: (1, 5)}, topic_id=T2)
    for topic in (wrong, right):
        answers = []
        loop.topics["t"] = topic
        loop.advance(REFRESH_MS)
        for _ in range(100):
            answers += [topic.topic_id for _ in loop.requests(METADATA)]
            while loop.requests(METADATA):
                loop.answer_metadata()
            for request in loop.requests(LIST_OFFSETS):
                loop.answer_offsets(request, lambda *_: {"offset": 3})
            loop.advance(100)
            if [t["topic_id"] for r in loop.requests(FETCH) for t in r["body"]["topics"]] == [topic.topic_id]:
                break
            for request in loop.requests(FETCH):
                loop.fetched(request, {})
        else:
            raise AssertionError(f"no Fetch names {topic.topic_id!r}")
    assert 5 <= answers.count(T1) == len(answers) <= 6  # one may be due to a partition without new records


# -- brokers that are gone


def test_rebootstrap_when_a_broker_asks_for_it(loop):
    loop.assign(("t", 0, 0))
    loop.advance(REFRESH_MS)
    loop.answer_metadata(error_code=REBOOTSTRAP_REQUIRED)
    assert loop.network.node_list == {-2: "bootstrap:9092"}
    assert loop.network.calls["rebootstrap"] == 1
    loop.advance(120)
    assert loop.one(METADATA)["node"] == -2
    loop.brokers = {7: ("seven", 9092)}
    loop.topics["t"].leaders[0] = (7, 9)
    loop.answer_metadata()
    loop.turn()
    assert loop.one(FETCH)["node"] == 7


def test_rebootstrap_if_a_broker_is_not_the_one_that_is_meant(loop):
    loop.assign(("t", 0, 0))
    loop.network.lose(1, REBOOTSTRAP_REQUIRED, "the broker at this address is not broker 1 of cluster c")
    loop.turn()
    assert loop.network.node_list == {-2: "bootstrap:9092"}
    loop.advance(120)
    assert loop.one(METADATA)["node"] == -2
    loop.answer_metadata()


def test_wrong_advertised_addresses_make_rarer_and_rarer_rebootstraps(loop):
    loop.assign(("t", 0, 0))
    for pause_s in (1, 2, 4, 8, 16, 32, 60, 60):
        before = loop.network.calls["rebootstrap"]
        for early in (True, False):
            loop.network.lose(1, REBOOTSTRAP_REQUIRED)
            loop.turn()
            assert loop.network.calls["rebootstrap"] == before + 1
            loop.clock.advance(pause_s * 1000 - 1 if early else 1)


def all_brokers_down(loop):
    for node in loop.network.node_list:
        loop.network.set_readiness(node, CONTROL_CHANNEL, BACKOFF)
        loop.network.set_readiness(node, 1, BACKOFF)
        for channel in (CONTROL_CHANNEL, 1):
            loop.network.fail_connection(node, channel)


def test_rebootstrap_if_no_known_broker_answers(loop):
    loop.assign(("t", 0, 0))
    all_brokers_down(loop)
    for _ in range(400):
        loop.advance(1000)
        if loop.network.calls["rebootstrap"]:
            break
    assert loop.network.calls["rebootstrap"] == 1
    assert ALL_BROKERS_DOWN in loop.serve()
    assert loop.network.node_list == {-2: "bootstrap:9092"}
    loop.advance(1000)
    loop.brokers = {1: ("elsewhere", 9092)}
    loop.network.set_readiness(1, CONTROL_CHANNEL, 0)
    loop.network.set_readiness(1, 1, 0)
    loop.refresh_metadata()
    loop.advance(1200)
    loop.advance(1200)
    assert loop.network.node_list == {1: "elsewhere:9092"}
    assert loop.asked(loop.one(FETCH, 1)) == {("t", 0): 0}


def test_no_rebootstrap_when_it_is_switched_off(loops):
    loop = loops(metadata_recovery_strategy="none")
    loop.assign(("t", 0, 0))
    all_brokers_down(loop)
    for _ in range(400):
        loop.advance(1000)
    assert loop.network.calls["rebootstrap"] == 0


def test_unreachable_brokers_are_reported_once_and_soon(loop):
    loop.turn()
    all_brokers_down(loop)
    for _ in range(30):
        loop.advance(1000)
    assert loop.serve().count(ALL_BROKERS_DOWN) == 1
    for _ in range(300):
        loop.advance(1000)
    assert loop.serve().count(ALL_BROKERS_DOWN) == 1


def test_unreachable_brokers_are_reported_with_the_latest_cause(loop):
    loop.network.lose(1, -195, "127.0.0.1:46225: closed by the broker", repeated=True)
    loop.turn()
    all_brokers_down(loop)
    for _ in range(30):
        loop.advance(1000)
    loop.serve()
    (text,) = [error.str() for error in loop.errors if error.code() == ALL_BROKERS_DOWN]
    assert text == ("no broker can be reached (127.0.0.1:46225: closed by the broker): check bootstrap.servers, "
                    "and set security.protocol if the listener uses TLS or SASL")


def test_lost_connections_are_reported_unless_they_repeat(loop):
    loop.assign(("t", 0, 0))
    loop.advance(200)
    loop.network.lose(1, -195, "connection reset", was_ready=True)
    loop.network.lose(1, -195, "connection reset", was_ready=True, repeated=True)
    loop.turn(2)
    assert loop.serve() == [-195]
    assert loop.requests(METADATA)  # what the broker led may have moved
    assert loop.network.calls["rebootstrap"] == 0


def test_an_unanswered_cluster_is_left_after_a_while(loops):
    """KIP-1102: connected, but no Metadata response for the trigger's time."""
    loop = loops(metadata_recovery_rebootstrap_trigger_ms=30_000, socket_timeout_ms=5000, fetch_wait_max_ms=100)
    loop.assign(("t", 0, 0))
    loop.advance(REFRESH_MS)
    start = loop.clock.ms
    while not loop.network.calls["rebootstrap"]:
        loop.advance(500)
        assert loop.clock.ms - start < 40_000
    assert loop.clock.ms - start >= 30_000 - 500


def test_a_broker_too_old_for_metadata_is_reported(loop):
    loop.network.set_version(METADATA, 0, 0)
    question = inside.ask_topics(loop.consumer)
    loop.turn(3)
    assert question.code == UNSUPPORTED
    loop.advance(5000)
    assert UNSUPPORTED in loop.serve()


def test_metadata_that_the_fetcher_needs_is_requested_in_the_same_turn(loop):
    """A connection that fails is noticed by FetchSender; nothing else would wake the loop."""
    loop.assign(("t", 0, 0))
    loop.fetched(loop.one(FETCH), {0: {"records": records(0, 3)}})
    loop.advance(1000)
    loop.fetched(loop.one(FETCH), {0: {"records": records(3, 6)}}, turns=0)
    loop.network.set_readiness(1, 1, BACKOFF)
    loop.network.fail_connection(1, 1)
    loop.turn(2)
    assert loop.one(METADATA)


# -- list_topics


def test_list_topics_asks_for_all(loop):
    question = inside.ask_topics(loop.consumer)
    loop.turn()
    (update, listing) = sorted(loop.requests(METADATA), key=lambda r: topics_of(r) is None)
    assert topics_of(listing) is None
    assert listing["body"]["allow_auto_topic_creation"] is False
    loop.answer(listing, loop.metadata_body())
    assert question.code == 0
    assert question.result() == {"t": (0, {0: 1, 1: 1, 2: 2})}
    loop.answer(update, loop.metadata_body([]))


def test_list_topics_of_one_topic_contains_its_error(loop):
    question = inside.ask_topics(loop.consumer, ["nope"])
    loop.turn()
    (request,) = [r for r in loop.requests(METADATA) if topics_of(r) == ["nope"]]
    loop.answer(request, loop.metadata_body(["nope"]))
    assert question.result() == {"nope": (UNKNOWN_TOPIC, {})}


def test_list_topics_ends_at_its_deadline(loop):
    question = inside.ask_topics(loop.consumer, timeout_ms=500)
    loop.turn()
    assert loop.network.timeout_ms <= 500
    loop.advance(499)
    assert not question.done
    loop.advance(1)
    assert question.code == TIMED_OUT
    late = [r for r in loop.requests(METADATA) if topics_of(r) is None]
    assert late == []
    assert inside.sizes(loop.consumer)["asked"] == 0


def test_list_topics_ends_at_its_deadline_without_any_broker(loop):
    loop.network.set_readiness(-2, CONTROL_CHANNEL, BACKOFF)
    question = inside.ask_topics(loop.consumer, timeout_ms=500)
    loop.turn()
    loop.advance(500)
    assert question.code == TIMED_OUT


def test_list_topics_is_repeated_with_backoff_while_its_deadline_lasts(loop):
    loop.turn()
    loop.answer_metadata()
    question = inside.ask_topics(loop.consumer, timeout_ms=5000)
    loop.turn()
    for _ in range(3):
        loop.answer(loop.one(METADATA), loop.metadata_body(None, brokers=[]))
        loop.turn(3)
        assert [r for r in loop.requests(METADATA) if topics_of(r) is None] == []
        for _ in range(20):
            loop.advance(100)
            if any(topics_of(r) is None for r in loop.requests(METADATA)):
                break
        for request in loop.requests(METADATA):
            if topics_of(request) == []:
                loop.answer(request, loop.metadata_body([]))
    assert not question.done
    loop.answer(loop.one(METADATA), loop.metadata_body())
    assert question.code == 0


def test_list_topics_fails_when_the_consumer_closes(loop):
    sent = inside.ask_topics(loop.consumer)
    loop.turn()
    queued = inside.ask_topics(loop.consumer)
    inside.end_loop(loop.consumer)
    assert (sent.code, queued.code) == (DESTROY, DESTROY)
    after = inside.ask_topics(loop.consumer)
    assert after.code == DESTROY


def test_calls_end_when_memory_runs_out(loop):
    topics = inside.ask_topics(loop.consumer)
    offsets = inside.ask_offsets(loop.consumer, [("t", 0, -1)])
    loop.turn()
    queued = inside.ask_topics(loop.consumer)
    inside.run_out_of_memory(loop.consumer)
    assert [q.code for q in (topics, offsets, queued)] == [DESTROY] * 3
    assert loop.poll().error().fatal()


def test_a_throttled_answer_mutes_the_broker(loop):
    loop.turn()
    loop.answer_metadata(throttle_time_ms=300)
    question = inside.ask_topics(loop.consumer)
    loop.turn()
    assert [r["node"] for r in loop.requests(METADATA)] == [1]
    assert not question.done


def test_validation_waits_for_a_leader(loop):
    loop.topics["t"].leaders[0] = (-1, 5)
    loop.consumer._assign([("t", 0, 10, 3)], True)
    loop.turn()
    for _ in range(3):
        if loop.requests(METADATA):
            loop.answer_metadata()
    assert loop.requests(OFFSET_FOR_LEADER_EPOCH) == []
    loop.topics["t"].leaders[0] = (2, 6)
    loop.refresh_metadata()
    loop.turn()
    assert loop.one(OFFSET_FOR_LEADER_EPOCH)["node"] == 2
