"""Every loop of the documentation that reads from a consumer, with errors and ends among its records.

The loops are found in the code (docs_blocks.loops). Each gets an error and an end of partition before its first
record, and a topic that does not exist. None may take these for a record, ignore them, or wait for ever in silence.
"""

from __future__ import annotations

import ast
import re
import uuid
from contextlib import contextmanager, suppress

import pytest
from docs_blocks import ORDERED, blocks, loops
from test_docs_snippets import ELSEWHERE, consumers, demo, fits, run  # noqa: F401 - demo is a fixture

from kconsumer import Consumer, KafkaError
from kconsumer.aio import AIOConsumer

LOOPS = [block for page in ORDERED if page.name not in ELSEWHERE for block in blocks(page)
         if block.language == "python" and not block.mark.startswith("not run:") and fits(block) and loops(block.code)]
# Calls that return errors as messages. The others raise them.
OF_MESSAGES = [block for block in LOOPS if ".poll(" in block.code or ".consume(" in block.code]
WITH_TOPIC = [block for block in LOOPS if '"flights"' in block.code]
MISSING = "no-such-topic"
MOST_GIVEN = 100


class Planted:
    """A message that is an error; notes whether its error is read, and whether it is taken for a record."""

    def __init__(self, code):
        self._error = KafkaError(code, "planted")
        self.seen = self.taken = False

    def error(self):
        self.seen = True
        return self._error

    def _record(self, *_):
        self.taken = True

    key = value = headers = timestamp = topic = partition = offset = leader_epoch = _record


class Source:
    """Puts a planted message before the first one of the consumers that a block reads from."""

    def __init__(self, code, monkeypatch):
        self.planted = Planted(code)
        self.given = 0
        poll, consume = Consumer.poll, Consumer.consume
        async_poll, async_consume = AIOConsumer.poll, AIOConsumer.consume

        async def planted_poll(consumer, *arguments, **more):
            return self.planted if self.first() else await async_poll(consumer, *arguments, **more)

        async def planted_consume(consumer, *arguments, **more):
            return [self.planted] if self.first() else await async_consume(consumer, *arguments, **more)

        monkeypatch.setattr(Consumer, "poll", lambda *arguments, **more: (
            self.planted if self.first() else poll(*arguments, **more)), raising=False)
        monkeypatch.setattr(Consumer, "consume", lambda *arguments, **more: (
            [self.planted] if self.first() else consume(*arguments, **more)))
        monkeypatch.setattr(AIOConsumer, "poll", planted_poll)
        monkeypatch.setattr(AIOConsumer, "consume", planted_consume)

    def first(self):
        """Whether a call returns the planted message: until its error is read. A cancelled call drops it."""
        self.given += 1
        return not self.planted.seen and self.given <= MOST_GIVEN


def names_in(code, kind):
    return {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name) and isinstance(node.ctx, kind)}


def imported(code):
    return {alias.asname or alias.name for node in ast.parse(code).body
            if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names}


def in_new_groups(block):
    """The block with groups that have committed nothing: it may run several times on one cluster."""
    return block._replace(code=re.sub(r'("group\.id": ")', rf"\g<1>{uuid.uuid4().hex[:6]}-", block.code))


@contextmanager
def page_until(block, cluster, tmp_path, monkeypatch):
    """The names that the block takes from earlier ones of its page: these have run."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    needed = names_in(block.code, ast.Load) - names_in(block.code, ast.Store) - imported(block.code)
    try:
        for earlier in blocks(block.page):
            if earlier.line == block.line:
                break
            if earlier.language == "python" and not earlier.mark and fits(earlier) and (
                    needed & (names_in(earlier.code, ast.Store) | imported(earlier.code))):
                run(in_new_groups(earlier), names, cluster)
        yield names
    finally:
        for consumer in consumers(names):
            with suppress(RuntimeError):
                consumer.close()


@pytest.mark.parametrize("code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._PARTITION_EOF],
                         ids=["error", "end-of-partition"])
@pytest.mark.parametrize("block", OF_MESSAGES, ids=lambda block: block.place)
def test_a_loop_does_not_take_an_error_for_a_record(block, code, demo, tmp_path, monkeypatch):  # noqa: F811
    with page_until(block, demo, tmp_path, monkeypatch) as names, monkeypatch.context() as patch:
        source = Source(code, patch)
        with suppress(Exception, SystemExit):  # how a loop ends is its own choice
            run(in_new_groups(block), names, demo)
        assert source.given, "the loop reads nothing"
        assert source.planted.seen, "the loop ignores an error"
        assert not source.planted.taken, "the loop takes an error for a record"


@pytest.mark.parametrize("block", WITH_TOPIC, ids=lambda block: block.place)
def test_a_loop_ends_at_a_topic_that_does_not_exist(block, demo, tmp_path, monkeypatch, capfd):  # noqa: F811
    with page_until(block, demo, tmp_path, monkeypatch) as names:
        capfd.readouterr()
        said = []
        try:
            run(in_new_groups(block._replace(code=block.code.replace('"flights"', f'"{MISSING}"'))), names, demo)
        except (Exception, SystemExit) as ended:
            said = [str(reason) for reason in getattr(ended, "exceptions", (ended,))]
        said += capfd.readouterr().out.splitlines()
        assert said, "the loop ends in silence"
        assert [text for text in said if "UNKNOWN_TOPIC_OR_PART" not in text] == []


def test_the_loops_are_found():
    assert len(OF_MESSAGES) > 5 and len(WITH_TOPIC) > 5
    assert not loops("for p in consumer.assignment():\n    print(p)")
    assert all(loops(code) for code in (
        "for message in consumer:\n    pass", "while True:\n    consumer.poll()",
        "for m in consumer.consume(5):\n    pass", "while x:\n    y = consumer.consume_batch()",
        "async def main():\n    async for m in consumer:\n        pass"))
