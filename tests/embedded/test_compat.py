"""kconsumer.compat: programs for confluent_kafka with kconsumer's consumers. Each runs in a separate process."""

import subprocess
import sys
import textwrap

import pytest

READS = """
import sys
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "compat", "auto.offset.reset": "earliest"})
consumer.assign([TopicPartition("compat", 0, 0)])
print([message.value().decode() for message in consumer.consume(3, timeout=20)], Consumer.__module__)
consumer.close()
try:
    consumer.poll(0)
except RuntimeError as error:
    print(error)
print(Producer.__module__, __name__, sys.argv[2:])
"""
FOUND = "['a', 'b', 'c'] kconsumer.consumer\nConsumer closed\ncimpl __main__ ['--more', 'x']\n"


@pytest.fixture(scope="module")
def servers(embedded):
    embedded.create_topic("compat")
    embedded.produce("compat", [b"a", b"b", b"c"])
    return embedded.bootstrap_servers


def run(*arguments, folder=None):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=100, check=False,
                          cwd=folder)


def output_of(program, *arguments):
    done = run("-c", textwrap.dedent(program), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("form", ["script", "module"])
def test_a_program_runs_unchanged(servers, tmp_path, form):
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "program.py").write_text(f"import beside\n{READS}")
    given = ["program.py"] if form == "script" else ["-m", "program"]
    done = run("-m", "kconsumer.compat", *given, servers, "--more", "x", folder=tmp_path)
    assert (done.stdout, done.returncode) == (FOUND, 0), done.stderr


def test_a_script_in_another_folder_finds_its_modules_and_ends_with_its_exit_code(tmp_path):
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "beside.py").write_text("code = 7\n")
    (folder / "program.py").write_text("import sys, beside\nsys.exit(beside.code)\n")
    assert run("-m", "kconsumer.compat", "program/program.py", folder=tmp_path).returncode == 7


@pytest.mark.parametrize("arguments", [(), ("-m",), ("--help",)])
def test_the_command_without_a_program_says_how_it_is_called(arguments):
    done = run("-m", "kconsumer.compat", *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("usage: python -m kconsumer.compat SCRIPT")


def test_install_replaces_each_consumer_class_and_uninstall_restores_it():
    assert output_of("""
        import confluent_kafka, confluent_kafka.aio, kconsumer, kconsumer.aio, kconsumer.compat
        from kconsumer.compat import install, uninstall

        def classes():
            import confluent_kafka.aio._AIOConsumer as aio, confluent_kafka.cimpl as cimpl
            import confluent_kafka.deserializing_consumer as deserializing
            return [confluent_kafka.Consumer, cimpl.Consumer, confluent_kafka.DeserializingConsumer,
                    deserializing.DeserializingConsumer, confluent_kafka.aio.AIOConsumer, aio.AIOConsumer]

        ours = [c for c in (kconsumer.Consumer, kconsumer.DeserializingConsumer, kconsumer.aio.AIOConsumer)
                for _ in range(2)]
        theirs = classes()
        producer = confluent_kafka.Producer
        uninstall()
        assert classes() == theirs
        with install() as installed:
            assert classes() == ours and installed.kept == () and confluent_kafka.Producer is producer
            assert install().kept == () and classes() == ours
        assert classes() == theirs
        try:
            with install():
                raise KeyError
        except KeyError:
            assert classes() == theirs
        install()
        confluent_kafka.Consumer = type("Wrapped", (kconsumer.Consumer,), {})
        uninstall()
        assert confluent_kafka.Consumer.__name__ == "Wrapped" and classes()[1:] == theirs[1:]
        print("as expected")
    """) == "as expected\n"


def test_classes_in_use_are_named_and_only_force_goes_on(tmp_path):
    assert output_of("""
        import sys, types
        early = types.ModuleType("early")
        sys.modules["early"] = early
        exec("from confluent_kafka import Consumer as Reader, KafkaError, DeserializingConsumer", vars(early))
        early.numbers = list[int]  # an alias, not a class
        exec("class Own(Reader): pass", vars(early))

        def local():
            class Hidden(early.Own):
                pass
            return Hidden

        hidden = local()
        import confluent_kafka, kconsumer
        from kconsumer.compat import install
        old = confluent_kafka.Consumer
        names = ("early.DeserializingConsumer", "early.Own", "early.Reader")
        try:
            install()
        except RuntimeError as error:
            assert all(name in str(error) for name in names), error
            assert "KafkaError" not in str(error) and "numbers" not in str(error), error
        else:
            raise AssertionError("install() went on")
        assert confluent_kafka.Consumer is old
        with install(force=True) as installed:
            assert set(names) <= set(installed.kept) and any("Hidden" in name for name in installed.kept)
            assert list(installed.kept) == sorted(installed.kept)
            assert confluent_kafka.Consumer is kconsumer.Consumer and early.Reader is old
        print("as expected")
    """) == "as expected\n"


def test_without_confluent_kafka_the_import_error_names_it():
    done = run("-c", "import sys; sys.modules['confluent_kafka'] = None\nimport kconsumer.compat as c; c.install()")
    assert "confluent_kafka" in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError")


def test_a_version_without_aio_has_the_other_classes_replaced():
    assert output_of("""
        import importlib.abc, sys

        class WithoutAio(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if name == "confluent_kafka.aio":
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, WithoutAio())
        import confluent_kafka, kconsumer
        from kconsumer.compat import install
        install()
        print(confluent_kafka.Consumer is kconsumer.Consumer)
    """) == "True\n"


def test_classes_that_stay_run_beside_ours(servers):
    """aio.AsyncDeserializingConsumer is built on confluent_kafka's own AIOConsumer, which then calls our Consumer."""
    assert output_of("""
        import asyncio, sys
        from kconsumer.compat import install
        install()
        from confluent_kafka.aio import AIOConsumer, AsyncDeserializingConsumer
        from confluent_kafka.serialization import StringDeserializer

        async def main(servers):
            config = {"bootstrap.servers": servers, "auto.offset.reset": "earliest"}
            plain = AIOConsumer({**config, "group.id": "plain"}, max_workers=2)
            text = await AsyncDeserializingConsumer({
                **config, "group.id": "text", "value.deserializer": StringDeserializer()})
            for consumer in (plain, text):
                await consumer.subscribe(["compat"])
                print(type(consumer).__module__, (await consumer.poll(20)).value())
                await consumer.close()

        asyncio.run(main(sys.argv[1]))
    """, servers) == "kconsumer.aio.consumer b'a'\nconfluent_kafka.aio._AsyncDeserializingConsumer a\n"
