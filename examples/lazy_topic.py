"""A topic as a lazy frame of polars: it decodes only the needed columns and reads only the needed offsets.

    python lazy_topic.py -b localhost:9092 -t flights --since 2024-05-01T00:00:00Z
    pip install kconsumer polars

Prints the number of records and the flown distance per carrier, for records since a time.
"""

from __future__ import annotations

import argparse
from datetime import datetime

import polars as pl

from kconsumer.decoding import Json
from kconsumer.polars import scan_kafka

FLIGHT = Json({"carrier": "string", "dest": "string", "distance": "int64", "tailnum": "string"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-b", "--bootstrap-servers", required=True)
    parser.add_argument("-t", "--topic", required=True)
    parser.add_argument("--since", help="a time with a zone, such as 2024-05-01T00:00:00Z")
    options = parser.parse_args()

    flights = scan_kafka({"bootstrap.servers": options.bootstrap_servers}, options.topic, value=FLIGHT)
    if options.since:
        flights = flights.filter(pl.col("timestamp") >= datetime.fromisoformat(options.since.replace("Z", "+00:00")))
    report = flights.group_by("carrier").agg(pl.len().alias("flights"), pl.col("distance").sum()).sort("carrier")
    print(report.explain())
    print(report.collect())


if __name__ == "__main__":
    main()
