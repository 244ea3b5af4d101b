"""Random sequences of operations on topics that a query reads, on a real broker; `make soak` runs 500 of them."""

from __future__ import annotations

import pytest

from kconsumer.testing import KafkaCluster
from tests.spark.model import Sequence


@pytest.mark.parametrize("seed", range(20))
def test_a_query_has_the_rows_that_it_must_have(kafka: KafkaCluster, seed: int):
    said: list[str] = []
    try:
        Sequence(kafka, seed, said.append).run()
    except Exception:
        print("\n".join(said))
        raise


def test_the_same_seed_does_the_same(kafka: KafkaCluster):
    """But for the topics' names, and for what the brokers say."""
    said: list[list[str]] = [[], []]
    for lines in said:
        Sequence(kafka, 3, lines.append).run()
    kinds = [[line.split(" ", 1)[0] for line in lines] for lines in said]
    assert kinds[0] == kinds[1]
    assert len(set(kinds[0])) > 4
