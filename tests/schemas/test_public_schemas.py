"""Schemas of public packages, in tables of each format: the values are those of fastavro, google.protobuf and json.

`make public-schemas` tries all schemas; here, every hundredth.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest
from packages import PublicSchema, public_schemas
from references import same
from trials import spark_session, tried

from kconsumer.ingest.table_types import FORMATS


@pytest.mark.timeout(600)
def test_public_schemas_become_tables_with_the_values_of_the_references(tmp_path: Path):
    chosen = list(islice(public_schemas(), 0, None, 100))
    assert {public.kind for public in chosen} == {"avro", "protobuf", "json"}
    refused = 0
    for number, public in enumerate(chosen):
        found = tried(public, tmp_path / str(number))
        assert not found.wrong, (public.name, found.wrong)
        assert set(found.refused) in (set(), set(FORMATS)), (public.name, found.refused)
        refused += bool(found.refused)
    assert refused <= len(chosen) * 0.02


@pytest.mark.timeout(600)
def test_spark_reads_the_tables_of_public_schemas(tmp_path: Path):
    pytest.importorskip("pyspark")
    spark = spark_session()
    try:
        for number, public in enumerate(islice(public_schemas(), 0, None, 800)):
            found = tried(public, tmp_path / str(number), spark)
            assert not found.wrong and not found.refused, (public.name, found)
    finally:
        spark.stop()


def test_a_refused_type_has_its_reason(tmp_path: Path):
    duration = {"type": "record", "name": "R", "fields": [
        {"name": "d", "type": {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}}]}
    found = tried(PublicSchema("none", "avro", "R", duration), tmp_path)
    assert found.refused.keys() == set(FORMATS) and "Parquet has no intervals" in found.refused["delta"]


@pytest.mark.parametrize("found, expected", [
    (1, 2), (None, 0), ("a", "b"), ({"a": 1}, {"a": 2}), ({"a": 1}, {"a": 1, "b": None}), ([1], [1, 2]), (True, 1),
    ([("k", 1)], {"k": 2}), ({"int": 1, "string": None}, "1"), ('{"a": 1}', {"a": 2}), (json.dumps([1]), [2]),
])
def test_a_wrong_value_is_found(found: object, expected: object):
    assert not same(found, expected)
