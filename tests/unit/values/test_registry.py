"""SchemaRegistry: one question for each schema, whatever goes wrong."""

import itertools
import pickle
import threading

import pytest
from registry_client import Client, Failure, Reference, Schema

from kconsumer.decoding import RegistryError, SchemaRegistry
from kconsumer.decoding.registry import Lookup, RegistrySchema


def lookup(client, retries=2, unknown_for=30.0, clock=lambda: 0.0):
    waits = []
    made = Lookup(client, retries=retries, retry_wait=0.2, unknown_for=unknown_for, clock=clock, sleep=waits.append)
    return made, waits


def test_a_schema_is_asked_for_once():
    client = Client({1: Schema("one"), "guid": Schema("two", "JSON")})
    registry = SchemaRegistry(client)
    for _ in range(3):
        assert registry.schemas([1, "guid"]) == {1: RegistrySchema("AVRO", "one"),
                                                 "guid": RegistrySchema("JSON", "two")}
    assert client.asked == [1, "guid"]


def test_an_id_that_is_unknown_is_asked_for_again_after_a_while():
    now = [0.0]
    client = Client()
    memory, waits = lookup(client, clock=lambda: now[0])
    assert memory.get(("id", 7, "")) is None and memory.get(("id", 7, "")) is None
    assert client.asked == [7] and waits == []
    now[0] = 29.9
    assert memory.get(("id", 7, "")) is None and client.asked == [7]
    now[0] = 30.1
    client.ids[7] = Schema("late")
    assert memory.get(("id", 7, "")) == RegistrySchema("AVRO", "late")


def test_failures_are_tried_again_a_few_times_with_growing_random_waits():
    client = Client({1: Schema("one")}, failures=[OSError("down"), Failure(503)])
    memory, waits = lookup(client)
    assert memory.get(("id", 1, "")).text == "one"
    assert len(waits) == 2 and 0 <= waits[0] <= 0.2 and 0 <= waits[1] <= 0.4
    client = Client(failures=itertools.repeat(OSError("down"), 9))
    memory, waits = lookup(client)
    with pytest.raises(OSError, match="down"):
        memory.get(("id", 1, ""))
    assert len(client.asked) == 3 and len(waits) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 422])
def test_a_refusal_is_not_tried_again(status):
    client = Client(failures=[Failure(status)] * 9)
    with pytest.raises(RegistryError, match=f"cannot fetch schema 1 from the schema registry: status {status}"):
        SchemaRegistry(client).schemas([1])
    assert client.asked == [1]


def test_an_error_lists_the_missing_schemas_and_keeps_the_fetched_ones():
    client = Client({n: Schema(str(n)) for n in range(20)})
    registry = SchemaRegistry(client, retries=0)
    registry.schemas([3])
    client.failures = [OSError("down")]
    with pytest.raises(RegistryError, match=r"cannot fetch schemas 4, 5 from .*: down") as raised:
        registry.schemas([3, 4, 5])
    assert raised.value.missing == (4, 5)
    assert pickle.loads(pickle.dumps(raised.value)).missing == (4, 5)
    assert set(registry.schemas([3, 4, 5])) == {3, 4, 5}


def test_threads_wait_for_one_request():
    entered, leave = threading.Event(), threading.Event()

    class Slow(Client):
        def get_schema(self, id_):
            entered.set()
            assert leave.wait(30)
            return super().get_schema(id_)

    client = Slow({1: Schema("one")})
    registry = SchemaRegistry(client)
    found = []
    threads = [threading.Thread(target=lambda: found.append(registry.schemas([1])[1].text)) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert entered.wait(30)
    leave.set()
    for thread in threads:
        thread.join()
    assert found == ["one"] * 8 and client.asked == [1]


def test_a_thread_that_is_interrupted_leaves_the_question_to_the_next():
    entered, leave = threading.Event(), threading.Event()

    class Interrupted(Client):
        def get_schema(self, id_):
            if not entered.is_set():
                entered.set()
                assert leave.wait(30)
                raise KeyboardInterrupt
            return super().get_schema(id_)

    registry = SchemaRegistry(Interrupted({1: Schema("one")}))
    ended = []

    def first():
        try:
            registry.schemas([1])
        except KeyboardInterrupt:
            ended.append("interrupted")

    threads = [threading.Thread(target=first)]
    threads[0].start()
    assert entered.wait(30)
    threads.append(threading.Thread(target=lambda: ended.append(registry.schemas([1])[1].text)))
    threads[1].start()
    leave.set()
    for thread in threads:
        thread.join(30)
    assert sorted(ended) == ["interrupted", "one"]


def test_each_schema_reference_follows_its_dependencies_once():
    client = Client(
        {1: Schema("top", references=(Reference("b", "b", 1), Reference("c", "c", 1)))},
        {("b", 1): Schema("B", references=(Reference("d", "d", 1),)),
         ("c", 1): Schema("C", references=(Reference("d", "d", 1),)),
         ("d", 1): Schema("D")})
    assert SchemaRegistry(client).schemas([1])[1].references == (("d", "D"), ("b", "B"), ("c", "C"))
    assert client.asked == [1, ("b", 1), ("d", 1), ("c", 1)]


def test_references_that_are_missing_or_circular(caplog):
    client = Client({1: Schema("top", references=(Reference("b", "b", 2),))})
    assert SchemaRegistry(client).schemas([1]) == {1: None}
    assert "refers to version 2 of b" in caplog.text
    client = Client({1: Schema("top", references=(Reference("b", "b", 1),))},
                    {("b", 1): Schema("B", references=(Reference("b", "b", 1),))})
    assert SchemaRegistry(client).schemas([1])[1].references == (("b", "B"),)


def test_a_call_asks_for_at_most_1000_schemas_and_the_next_call_goes_on():
    client = Client({n: Schema(str(n)) for n in range(2_500)})
    registry = SchemaRegistry(client)
    for left in (1_500, 500):
        with pytest.raises(RegistryError, match=f"{left:,} are still to be fetched: decode the same") as raised:
            registry.schemas(range(2_500))
        assert raised.value.missing == tuple(range(2_500 - left, 2_500))
    assert len(registry.schemas(range(2_500))) == len(client.asked) == 2_500


@pytest.mark.parametrize("code", [None, 404, -1])
def test_a_404_of_another_server_is_an_error(code):
    client = Client(failures=[Failure(404, code)] * 9)
    registry = SchemaRegistry(client)
    with pytest.raises(RegistryError, match="cannot fetch schema 1 from the schema registry: status 404"):
        registry.schemas([1])
    client.failures.clear()
    client.ids[1] = Schema("one")
    assert client.asked == [1] and registry.schemas([1])[1].text == "one"


@pytest.mark.parametrize("error", [Failure(404, 40401), Failure(404, 40402), Failure(404, 40403), KeyError(1)])
def test_a_schema_that_the_registry_does_not_have(error):
    assert SchemaRegistry(Client(failures=[error])).schemas([1]) == {1: None}


def test_the_newest_is_asked_for_each_time():
    client = Client(versions={("s", "latest"): Schema("new")})
    registry = SchemaRegistry(client)
    assert registry.newest("s").text == registry.newest("s").text == "new"
    assert len(client.asked) == 2
    with pytest.raises(RegistryError, match="subject t is not in the schema registry: give the decoder a schema"):
        registry.newest("t")


def test_an_object_that_is_not_a_registry_client():
    with pytest.raises(TypeError, match="not str"):
        SchemaRegistry("http://localhost:8081")
    with pytest.raises(RegistryError, match="get_schema_by_guid"):
        SchemaRegistry(type("Least", (), {"get_schema": lambda self, id_: "text"})()).schemas(["guid"])
    assert SchemaRegistry(type("Least", (), {"get_schema": lambda self, id_: "text"})()).schemas([1])[1].text == "text"


def test_a_forked_child_uses_its_own_registry_client(monkeypatch):
    client = Client({1: Schema("one")})
    registry = SchemaRegistry(client)
    before = registry.lookup
    assert registry.lookup is before
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert registry.lookup is not before and registry.schemas([1])[1].text == "one"
    shared = SchemaRegistry({"url": "mock://fork"})
    pytest.importorskip("confluent_kafka.schema_registry", reason="the extra [registry] is not installed")
    assert SchemaRegistry({"url": "mock://fork"}).client is shared.client


def test_registries_are_equal_by_their_configuration_and_show_no_secret():
    config = {"url": "http://user:secret@localhost:8081", "basic.auth.user.info": "user:secret"}
    registry = SchemaRegistry(config)
    copy = pickle.loads(pickle.dumps(registry))
    assert copy == registry == SchemaRegistry(config) and hash(copy) == hash(registry)
    assert registry != SchemaRegistry({"url": "http://localhost:8082"})
    assert registry != SchemaRegistry(config, retries=1)
    assert repr(registry) == "<SchemaRegistry: the schema registry http://localhost:8081>"
    client = Client()
    assert SchemaRegistry(client) == SchemaRegistry(client) != SchemaRegistry(Client())
