"""Several topics into several tables in one run: each record once in each, whatever is killed or fails."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ingest_scene import Killed, Process, World
from test_driver import dying_table, no_sync  # noqa: F401

from kconsumer.errors import ConfigurationError
from kconsumer.ingest import IngestError, IngestOptions, LocalRunner, Routes
from kconsumer.ingest.driver import State
from kconsumer.ingest.turns import Turns
from kconsumer.testing import EmbeddedCluster

SEEDS = 30


class TwoWorlds:
    """Two topics and two tables under one clock."""

    def __init__(self, folder: Path) -> None:
        self.worlds = {name: World(folder / name, dying_table(folder / name)) for name in ("a", "b")}
        self.clock = self.worlds["a"]
        other = self.worlds["b"]
        other.now = other.wall = self.clock.now  # type: ignore[method-assign]
        other.wait = self.clock.wait  # type: ignore[method-assign]

    def processes(self, **more: Any) -> dict[str, Process]:
        return {name: world.process(**more) for name, world in self.worlds.items()}

    def turns(self, processes: dict[str, Process], ends: bool = True) -> Turns:
        return Turns({name: process.driver for name, process in processes.items()}, self.clock, ends)

    def check(self) -> None:
        for world in self.worlds.values():
            world.check_reader()

    def finish(self) -> None:
        self.turns(self.processes()).run()
        for world in self.worlds.values():
            assert world.rows() == world.expected()


@pytest.fixture
def two(tmp_path: Path) -> TwoWorlds:
    return TwoWorlds(tmp_path)


def test_tables_take_turns_by_triggers(two: TwoWorlds):
    for world in two.worlds.values():
        world.produce(0, 6)
    commits: list[str] = []
    processes = two.processes(limit=3)
    for name, process in processes.items():
        table = process.driver._table
        whole = table.commit
        table.commit = lambda found, whole=whole, name=name: (commits.append(name), whole(found))  # type: ignore
    two.turns(processes).run(two.check)
    assert commits == ["a", "b", "a", "b"]
    two.finish()


def test_a_run_killed_between_the_commits_of_two_tables_continues(two: TwoWorlds):
    for world in two.worlds.values():
        world.produce(0, 5)
    processes = two.processes()
    committed: list[int] = []

    def look() -> None:
        if processes["a"].driver.progress.offsets.get(("t", 0)) == 5 and processes["b"].driver.state is State.COMMIT:
            committed.append(1)
            raise Killed

    with pytest.raises(Killed):
        two.turns(processes).run(look)
    assert committed == [1]
    assert (len(two.worlds["a"].rows()), len(two.worlds["b"].rows())) == (5, 0)
    two.finish()


def simulate(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    two = TwoWorlds(folder)
    for _ in range(chance.randrange(3, 9)):
        for world in two.worlds.values():
            world.produce(chance.randrange(3), chance.randrange(9))
        processes = two.processes(limit=chance.choice((2, 7, 100)))
        unlucky = chance.choice(sorted(processes))
        processes[unlucky].dies_at = chance.randrange(60)
        try:
            two.turns(processes).run(two.check)
        except Killed:
            two.check()
    two.finish()


@pytest.mark.parametrize("seeds", [range(SEEDS), pytest.param(range(SEEDS, 600), marks=[
    pytest.mark.slow, pytest.mark.timeout(1200)])], ids=["few", "many"])
def test_each_record_is_in_its_table_once_after_any_kill(tmp_path: Path, seeds: range):
    for seed in seeds:
        try:
            simulate(tmp_path / str(seed), seed)
        except BaseException as error:
            raise AssertionError(f"seed {seed}") from error


def failing(process: Process, after: int = 0) -> None:
    """The table's commits fail, after so many."""
    table, whole, count = process.driver._table, process.driver._table.commit, iter(range(after))

    def commit(found: Any) -> None:
        if next(count, None) is None:
            raise OSError("disk full")
        whole(found)

    table.commit = commit  # type: ignore[method-assign]


def test_a_table_that_fails_does_not_keep_the_others_from_their_end(two: TwoWorlds):
    for world in two.worlds.values():
        world.produce(1, 20)
    processes = two.processes(limit=7)
    failing(processes["a"], after=1)
    with pytest.raises(IngestError, match=r"^cannot write to a: disk full$") as caught:
        two.turns(processes).run(two.check)
    assert isinstance(caught.value.__cause__, OSError)
    assert (len(two.worlds["a"].rows()), len(two.worlds["b"].rows())) == (7, 20)
    two.finish()


def test_with_an_interval_the_others_finish_their_triggers(two: TwoWorlds):
    for world in two.worlds.values():
        world.produce(1, 20)
    processes = two.processes(limit=7, interval=10.0)
    failing(processes["a"])
    with pytest.raises(IngestError, match=r"^cannot write to a: disk full$"):
        two.turns(processes, ends=False).run(two.check)
    assert (len(two.worlds["a"].rows()), len(two.worlds["b"].rows())) == (0, 7)
    two.finish()


def test_waiting_tables_do_not_delay_one_that_is_due(two: TwoWorlds):
    """Intervals count for each table; a wait is that of the next table only."""
    processes = two.processes(interval=10.0)
    turns = two.turns(processes, ends=False)
    began, seen = two.clock.time, []
    two.worlds["a"].produce(0, 1)

    def look() -> None:
        seen.append(two.clock.time)
        if two.clock.time > began + 35 and not two.worlds["b"].ends[2]:
            two.worlds["b"].produce(2, 4)
        if two.clock.time > began + 60:
            turns.stop()

    turns.run(look)
    assert max(b - a for a, b in itertools.pairwise(seen)) < 11
    for world in two.worlds.values():
        assert world.rows() == world.expected()
        assert world.rows()


def test_a_full_trigger_of_a_continuous_run_begins_while_the_other_table_waits(two: TwoWorlds):
    processes = two.processes(limit=7, interval=60.0, eager=True)
    turns = two.turns(processes, ends=False)
    began, committed_at = two.clock.time, 0.0

    def look() -> None:
        nonlocal committed_at
        if two.clock.time > began + 5 and not two.worlds["b"].ends[0]:
            two.worlds["b"].produce(0, 7)
        if not committed_at and len(two.worlds["b"].rows()) == 7:
            committed_at = two.clock.time
            turns.stop()

    turns.run(look)
    assert began + 5 < committed_at < began + 9
    two.check()


# ---- on brokers


SCHEMAS = {"flights": "id BIGINT, carrier STRING", "hotels": "id BIGINT, stars INT"}


def fill(cluster: EmbeddedCluster, topic: str, kind: str, count: int, first: int = 0) -> None:
    more = {"carrier": "XY"} if kind == "flights" else {"stars": 4}
    cluster.produce(topic, ({"value": json.dumps({"id": n, **more}).encode(), "partition": n % 2}
                            for n in range(first, first + count)))


@pytest.fixture
def topics(cluster: EmbeddedCluster) -> dict[str, str]:
    found = {kind: f"{kind}-{uuid.uuid4().hex[:8]}" for kind in SCHEMAS}
    for kind, topic in found.items():
        cluster.create_topic(topic, 2)
        fill(cluster, topic, kind, 1_000)
    return found


def command(cluster: EmbeddedCluster, topics: dict[str, str], out: Path, *more: str) -> list[str]:
    routes = [word for kind, topic in topics.items() for word in
              ("--route", f"{topic}={out / kind}", "--route-schema", f"{topic}={SCHEMAS[kind]}")]
    return [sys.executable, "-m", "kconsumer", "ingest", "-b", cluster.bootstrap_servers, "--value", "json",
            "--runner", "local", "--workers", "2", *routes, *more]


def counts(out: Path, kind: str = "parquet") -> dict[str, tuple[int, int]]:
    """Rows, and different ids among them, of each table."""
    found = {}
    for name in SCHEMAS:
        if kind == "delta":
            import deltalake

            files = deltalake.DeltaTable(str(out / name)).file_uris()
        else:
            files = sorted(map(str, (out / name).glob("*.parquet")))
        found[name] = duckdb.sql(f"select count(*), count(distinct id) from read_parquet({files})").fetchall()[0] \
            if files else (0, 0)
    return found


@pytest.mark.embedded
@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_two_topics_become_two_tables(cluster: EmbeddedCluster, topics: dict[str, str], tmp_path: Path, kind: str):
    if kind == "delta":
        pytest.importorskip("deltalake")
    cluster.produce(topics["hotels"], [{"value": b"{", "partition": 0}])
    line = command(cluster, topics, tmp_path, "-o", kind, "--metrics", "-", "--dead-letter", str(tmp_path / "letters"))
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(text) for text in done.stdout.splitlines()]
    assert [(found["table"], found["rows"], found["bad"]) for found in lines] == [
        (str(tmp_path / "flights"), 1_000, 0), (str(tmp_path / "hotels"), 1_001, 1)]
    assert "the values of 1 of 2,001 records" in done.stderr
    assert counts(tmp_path, kind) == {"flights": (1_000, 1_000), "hotels": (1_000, 1_000)}
    assert len(list((tmp_path / "letters" / "hotels").glob("*.parquet"))) == 1
    assert not list((tmp_path / "letters" / "flights").glob("*.parquet"))
    fill(cluster, topics["flights"], "flights", 10, 1_000)
    again = subprocess.run(line, capture_output=True, text=True, check=False)
    assert [json.loads(text)["rows"] for text in again.stdout.splitlines()] == [10]
    assert counts(tmp_path, kind) == {"flights": (1_010, 1_010), "hotels": (1_000, 1_000)}


@pytest.mark.embedded
def test_a_killed_command_continues_in_both_tables(cluster: EmbeddedCluster, topics: dict[str, str], tmp_path: Path):
    chance = random.Random(5)
    line = command(cluster, topics, tmp_path, "--metrics", "-", "--option", "maxOffsetsPerTrigger=100")
    for _ in range(4):
        process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(chance.randrange(1, 4)):  # after an odd number of commits it is between those of the two tables
            process.stdout.readline()
        process.kill()
        process.wait()
        assert all(rows == ids for rows, ids in counts(tmp_path).values())
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert counts(tmp_path) == {"flights": (1_000, 1_000), "hotels": (1_000, 1_000)}
    assert not list(tmp_path.rglob("*.staged"))


@pytest.mark.embedded
def test_sigterm_ends_both_tables(cluster: EmbeddedCluster, topics: dict[str, str], tmp_path: Path):
    process = subprocess.Popen(command(cluster, topics, tmp_path, "--trigger", "1s", "--metrics", "-"),
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in topics:
        assert json.loads(process.stdout.readline())["rows"] == 1_000
    fill(cluster, topics["hotels"], "hotels", 7, 1_000)
    left = 7  # in one trigger, or one for each partition
    while left > 0:
        found = json.loads(process.stdout.readline())
        assert found["table"] == str(tmp_path / "hotels")
        left -= found["rows"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert counts(tmp_path) == {"flights": (1_000, 1_000), "hotels": (1_007, 1_007)}


@pytest.mark.embedded
def test_the_error_names_the_table(cluster: EmbeddedCluster, topics: dict[str, str], tmp_path: Path):
    (tmp_path / "flights").mkdir()
    (tmp_path / "flights" / "foreign.parquet").write_bytes(b"")
    done = subprocess.run(command(cluster, topics, tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"cannot write to {tmp_path / 'flights'}: " in done.stderr
    assert "Traceback" not in done.stderr
    assert counts_of_hotels(tmp_path) == (1_000, 1_000)


def counts_of_hotels(out: Path) -> tuple[int, int]:
    found = duckdb.sql(f"select count(*), count(distinct id) from read_parquet('{out}/hotels/*.parquet')").fetchall()
    return found[0]


# ---- options


def options(path: str = "out", **more: Any) -> IngestOptions:
    return IngestOptions(**{"bootstrap_servers": "h:1", "topics": ("t",), "path": path, **more})


_OVERLAP = "the dead letters of {} go to {}, and the table {} has the folder {}: one is in the other; give another"


def letters(path: str, folder: str, **more: Any) -> IngestOptions:
    return options(path, value="json", schema="a INT", bad_records="dead-letter", dead_letters=folder, **more)


@pytest.mark.parametrize(("routes", "message"), [
    ([], "no routes: set at least one"),
    ([options("out/a"), options("out/b/../a")], "two routes write to out/b/../a: use one route for both topics"),
    ([options("a"), options("b", trigger="1s")], "the routes have different triggers"),
    ([options(path, value="json", schema="a INT", bad_records="dead-letter", dead_letters="d") for path in "ab"],
     "two routes write to d: use a separate folder of dead letters"),
    # Dead letters of the first table in the folder of the second one, around it, and equal to it.
    ([letters("a", "b/letters/a"), letters("b", "d/b")], _OVERLAP.format("a", "b/letters/a", "b", "b")),
    ([letters("b/rows", "d/b"), letters("a", "b")], _OVERLAP.format("a", "b", "b/rows", "b/rows")),
    ([letters("a", "d/../b"), letters("b", "d/b")], _OVERLAP.format("a", "d/../b", "b", "b")),
    ([letters("s3://x/a", "s3a://x/b/c"), letters("s3://x/b", "s3://x/d")],
     _OVERLAP.format("s3://x/a", "s3a://x/b/c", "s3://x/b", "s3://x/b")),
    ([letters("out/n/a", "out/n/b/l", format="iceberg", table="n.a"),
      letters("out/n/b", "d", format="iceberg", table="n.b")], _OVERLAP.format("n.a", "out/n/b/l", "n.b", "out/n/b")),
])
def test_routes_that_do_not_go_together(routes: list[IngestOptions], message: str):
    with pytest.raises(ConfigurationError, match=message):
        Routes(routes, LocalRunner(1))


@pytest.mark.parametrize(("words", "message"), [
    (["t", "--route", "a=b"], "--route sets the topics: remove TOPIC"),
    (["--route", "a"], "'a' is not TOPIC=PATH_OR_TABLE"),
    (["--route", "a=b", "-O", "c"], "--route sets the paths: remove -O"),
    (["--route", "a=b", "-o", "iceberg"], "--route with iceberg needs -O PATH"),
    (["--route", "a=b", "--take-over", "c"], "--take-over needs a run with one table"),
    (["--route", "a=b", "--table", "c"], "--route sets the tables: remove --table"),
    (["--route", "a=b", "--route-schema", "c=x INT", "--value", "json"], "--route-schema c=… has no route"),
    (["t", "-O", "x", "--route-schema", "c=x INT"], "--route-schema needs --route"),
    (["--route", "a=b", "--route", "c=d", "--from", '{"a": {"0": 1}}'], "--from lacks the topics c"),
    (["--route", "a,b=c", "--route-schema", "a=x INT", "--route-schema", "b=x STRING", "--value", "json"],
     "the topics a, b have different schemas, but one table c"),
])
def test_the_command_refuses(words: list[str], message: str):
    from click.testing import CliRunner

    from kconsumer.cli.app import cli

    found = CliRunner().invoke(cli, ["ingest", "-b", "h:1", "--runner", "local", *words])
    assert found.exit_code == 2
    assert message in " ".join(found.output.split())


def test_dead_letters_beside_the_tables_and_with_a_common_prefix_are_accepted(tmp_path: Path):
    Routes([letters(f"{tmp_path}/b", f"{tmp_path}/bad/a"), letters(f"{tmp_path}/bc", f"{tmp_path}/bad/b")],
           LocalRunner(1))
