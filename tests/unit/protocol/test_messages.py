"""Guarantees of the generated messages beside their bytes: defaults, and fields that a version cannot carry."""

from __future__ import annotations

import pytest

from tests.core import protocol as codecs


@pytest.mark.parametrize(("name", "version"), [(n, v) for n, (lo, hi) in codecs.messages().items()
                                               for v in range(lo, hi + 1)])
def test_defaults_survive_every_version(name, version):
    defaults, left = codecs.decode(name, version, codecs.encode(name, version, {}))
    assert left == 0
    assert codecs.encode(name, version, defaults) == codecs.encode(name, version, {})


def test_defaults_are_the_schemas():
    request, _ = codecs.decode("FetchRequest", 4, codecs.encode("FetchRequest", 4, {}))
    assert request["session_epoch"] == -1
    assert request["max_bytes"] == 0x7FFFFFFF
    assert request["cluster_id"] is None
    assert request["rack_id"] == b""
    response, _ = codecs.decode("MetadataResponse", 0, codecs.encode("MetadataResponse", 0, {"topics": [{}]}))
    assert response["controller_id"] == -1
    assert response["topics"][0]["topic_authorized_operations"] == -(2**31)
    assert response["topics"][0]["name"] == b""


@pytest.mark.parametrize(("name", "version", "values", "field"), [
    ("MetadataRequest", 3, {"allow_auto_topic_creation": False}, "allow_auto_topic_creation"),
    ("MetadataRequest", 4, {"allow_auto_topic_creation": False}, None),
    ("MetadataRequest", 0, {"topics": None}, "topics"),
    ("MetadataRequest", 1, {"topics": None}, None),
    ("MetadataRequest", 9, {"topics": [{"name": None}]}, "MetadataRequestTopic.name"),
    ("MetadataRequest", 10, {"topics": [{"name": None}]}, None),
    ("MetadataRequest", 11, {"include_cluster_authorized_operations": True}, "include_cluster_authorized_operations"),
    ("FetchRequest", 11, {"topics": [{"partitions": [{"last_fetched_epoch": 3}]}]},
     "FetchPartition.last_fetched_epoch"),
    ("FetchRequest", 12, {"topics": [{"partitions": [{"last_fetched_epoch": 3}]}]}, None),
    ("FetchRequest", 12, {"topics": [{"topic_id": bytes(15) + b"x"}]}, None),  # ignorable
    ("FetchRequest", 14, {"replica_state": {"replica_id": 3}}, "replica_state"),
    ("FetchResponse", 6, {"session_id": 3}, "session_id"),
    ("JoinGroupRequest", 4, {"group_instance_id": b"me"}, "group_instance_id"),
    ("OffsetFetchRequest", 1, {"topics": None}, "topics"),
    ("OffsetFetchRequest", 7, {"groups": [{}]}, "groups"),
    ("ConsumerGroupHeartbeatRequest", 0, {"subscribed_topic_regex": b"a.*"}, "subscribed_topic_regex"),
    ("ConsumerProtocolSubscription", 0, {"owned_partitions": [{}]}, None),  # ignorable
])
def test_fields_that_a_version_lacks_are_refused(name, version, values, field):
    assert codecs.refused_field(name, version, values) == field


def test_a_null_that_a_version_lacks_is_written_as_empty():
    assert codecs.encode("MetadataRequest", 0, {"topics": None}) == bytes(4)


def test_a_newer_consumer_protocol_is_read_as_the_newest_known():
    _, newest = codecs.messages()["ConsumerProtocolSubscription"]
    data = codecs.sample("ConsumerProtocolSubscription", newest) + b"fields of the future"
    values, left = codecs.decode("ConsumerProtocolSubscription", newest + 7, data)
    assert values["rack_id"] == b"abc"
    assert left == len(b"fields of the future")


def test_a_tagged_field_with_a_length_of_several_bytes():
    endpoints = [{"node_id": i, "host": b"host%d" % i, "port": 9092, "rack": None} for i in range(20000)]
    data = codecs.encode("FetchResponse", 16, {"node_endpoints": endpoints})
    assert codecs.decode("FetchResponse", 16, data)[0]["node_endpoints"] == endpoints


def test_values_and_names_outside_the_schema_raise():
    with pytest.raises(OverflowError):
        codecs.encode("FetchRequest", 12, {"max_wait_ms": 2**31})
    with pytest.raises(KeyError):
        codecs.encode("FetchRequest", 12, {"max_wait": 1})
    with pytest.raises(KeyError):
        codecs.encode("NoSuchRequest", 0, {})
