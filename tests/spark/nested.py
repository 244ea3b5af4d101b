"""A topic whose records gain nested fields, written by the direct engine in two runs; and the rows as Spark reads them.

Owns: SCHEMAS, write(), READ, ROWS. Threads: the test's. Never: starts Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from kconsumer.ingest import Ingestion, IngestOptions, LocalRunner

# The new schema has other fields first, and the old ones in another order.
SCHEMAS: Final = ("n INT, s STRUCT<x: INT, y: INT>, l ARRAY<STRUCT<x: INT, y: INT>>, "
                  "m MAP<STRING, STRUCT<x: INT, y: INT>>",
                  "n INT, s STRUCT<a: STRUCT<q: INT>, y: INT, x: INT>, l ARRAY<STRUCT<y: INT, a: INT, x: INT>>, "
                  "m MAP<STRING, STRUCT<y: INT, a: INT, x: INT>>")
_VALUES: Final[tuple[list[dict[str, Any]], ...]] = (
    [{"n": 0, "s": {"x": 1, "y": 2}, "l": [{"x": 3, "y": 4}, None], "m": {"k": {"x": 5, "y": 6}}}],
    [{"n": 1, "s": {"x": 11, "y": 12, "a": {"q": 13}}, "l": [{"x": 14, "y": 15, "a": 16}],
      "m": {"k": {"x": 17, "y": 18, "a": 19}}}, {"n": 2}])
# Prints the rows as JSON, each path by its name. Arguments: the format, the table, settings.
READ: Final = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for text in sys.argv[3:]:
    builder = builder.config(*text.split("=", 1))
spark = builder.getOrCreate()
table = spark.read.format(sys.argv[1]).option("mergeSchema", "true").load(sys.argv[2])
paths = ["s.x", "s.y", "s.a.q", "l[0].x", "l[0].y", "l[0].a", "m['k'].x", "m['k'].y", "m['k'].a"]
rows = table.orderBy("n").selectExpr("n", "s is null", *paths, "l is null", "m is null", "size(l)").collect()
print(json.dumps([list(row) for row in rows]))
"""
ROWS: Final = [[0, False, 1, 2, None, 3, 4, None, 5, 6, None, False, False, 2],
               [1, False, 11, 12, 13, 14, 15, 16, 17, 18, 19, False, False, 1],
               [2, True, *[None] * 9, True, True, None]]


def write(produce: Callable[[list[dict[str, Any]]], Any], compacts: bool = False, **options: Any) -> None:
    """Ingest the values of both schemas.

    Args:
        produce: produces records of a topic.
        compacts: whether the table is compacted.
        options: of the ingestion.
    """
    for schema, values in zip(SCHEMAS, _VALUES, strict=True):
        produce([{"value": json.dumps(value).encode()} for value in values])
        given = IngestOptions(value="json", schema=schema, bad_records="fail", metadata=("offset",), **options)
        with Ingestion(given, LocalRunner(1)) as ingestion:
            ingestion.run()
            if compacts and schema == SCHEMAS[-1]:
                assert ingestion.compact() == 2
