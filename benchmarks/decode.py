"""Owns: measuring decoders of values into columns: kconsumer.decoding and its peers, in one thread.

    python -m benchmarks.decode [--rows N] [--rounds N] [--shapes flights,nested] [--formats json,avro] [--publish]

Threads: the main thread. Never: fails because of a low figure or a missing tool.
It prints M rows/s of CPU time, the median of rounds in which the tools take turns, and writes build/bench/decode.json.
--publish writes the tables into docs/benchmarks.md; tools/figures.py reads them there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import report
from benchmarks.decode_shapes import (
    SHAPES,
    Rows,
    Shape,
    avro_bytes,
    json_bytes,
    proto_bytes,
    shuffled,
    with_unknown,
)
from benchmarks.decode_tools import RustRows, Tool, avro_tools, json_tools, proto_tools
from tools import page_parts

BATCHES = (50_000, 1_000)
PACKAGES = ("duckdb", "polars", "orjson", "fastavro", "pyruhvro", "ptars", "protobuf")
# (section, tool or peers, minimum): kconsumer's rate relative to it, in batches of 50,000.
GOALS = (
    ("json flights", "best peer", 3.5),
    ("json flights shuffled keys", "arrow-json (Rust)", 2.0),
    ("json flights unknown fields", "arrow-json (Rust)", 2.0),
    ("avro flights", "arrow-avro (Rust)", 2.5),
    ("avro flights", "confluent's AvroDeserializer", 300.0),
    ("protobuf flights", "ptars", 3.0),
)


@dataclass(frozen=True)
class Section:
    """Values of one shape in one format, and the tools that decode them."""

    name: str
    form: str
    shape: Shape
    values: list[bytes]
    tools: list[Tool]


def sections(formats: list[str], shapes: list[str], count: int) -> Iterator[Section]:
    makers: dict[str, tuple[Callable[[Shape, Rows], list[bytes]], Callable[[Shape], list[Tool]]]] = {
        "json": (lambda _, rows: json_bytes(rows), json_tools),
        "avro": (avro_bytes, avro_tools),
        "protobuf": (proto_bytes, proto_tools),
    }
    for form in formats:
        write, make = makers[form]
        for shape in SHAPES:
            if shape.name not in shapes:
                continue
            rows = shape.rows(count // 10 if shape.name == "wide" else count)
            try:
                tools = make(shape)
                yield Section(f"{form} {shape.name}", form, shape, write(shape, rows), tools)
            except ImportError as error:
                print(f"{form}: left out ({error})")
                continue
            if form == "json" and shape.name == "flights":
                yield Section("json flights shuffled keys", form, shape, json_bytes(shuffled(rows)), tools)
                yield Section("json flights unknown fields", form, shape, json_bytes(with_unknown(rows)), tools)


def measured(section: Section, batch: int, rounds: int) -> dict[str, list[float]]:
    """Return M rows/s of CPU time by tool and round. The tools take turns after one uncounted round."""
    values = section.values
    parts = batches(values, batch)
    files = {tool.rust: RustRows(section.shape, tool.rust, values) for tool in section.tools if tool.rust}
    found: dict[str, list[float]] = {tool.name: [] for tool in section.tools}
    for turn in range(rounds + 1):
        for tool in list(section.tools):
            if tool.name not in found:
                continue
            count = len(values) // tool.share
            try:
                taken = (
                    files[tool.rust].seconds(batch)
                    if tool.rust
                    else seconds(tool, batches(values[:count], batch) if tool.share > 1 else parts)
                )
            except Exception as error:  # the peer does not support this shape
                print(f"  {tool.name}: left out ({str(error).splitlines()[0][:150] if str(error) else error!r})")
                del found[tool.name]
                continue
            if turn:
                found[tool.name].append(count / taken / 1e6)
    return found


def batches(values: list[bytes], batch: int) -> list[pa.Array]:
    array = pa.array(values, pa.binary())
    return [array[at : at + batch] for at in range(0, len(array), batch)]


def seconds(tool: Tool, parts: list[pa.Array]) -> float:
    assert tool.run is not None
    before = time.process_time()
    for part in parts:
        tool.run(part)
    return time.process_time() - before


def best_peer(tools: list[Tool], rates: dict[str, float]) -> str | None:
    peers = [tool.name for tool in tools if tool.is_peer and tool.name in rates]
    return max(peers, key=rates.__getitem__, default=None)


# ---- the page


def tables(result: dict[str, Any]) -> str:
    """Return the tables of docs/benchmarks.md."""
    out = [result["machine"], ""]
    by_name: dict[str, dict[int, dict[str, Any]]] = {}
    for entry in result["sections"]:
        by_name.setdefault(entry["name"], {})[entry["batch"]] = entry
    for name, found in by_name.items():
        some = next(iter(found.values()))
        out += [
            f"### {name}: {some['bytes']} bytes a value",
            "",
            "| decoder | " + " | ".join(f"batches of {batch:,}" for batch in found) + " |",
            "| --- |" + " --- |" * len(found),
        ]
        tools = sorted(some["rates"], key=lambda tool: -some["rates"][tool]["median"])
        for tool in tools:
            cells = [shown(entry["rates"].get(tool)) for entry in found.values()]
            out.append(f"| {tool} | " + " | ".join(cells) + " |")
        out.append("")
    out += ["### Decoding: goals", "", "| kconsumer's rate by that of | goal | found | |", "| --- | --- | --- | --- |"]
    for name, versus, goal in GOALS:
        rates = {
            tool: rate["median"] for tool, rate in by_name.get(name, {}).get(BATCHES[0], {"rates": {}})["rates"].items()
        }
        peer = by_name[name][BATCHES[0]]["best"] if rates and versus == "best peer" else versus
        if peer in rates:
            found_ratio = rates["kconsumer"] / rates[peer]
            verdict = "reached" if found_ratio >= goal else "missed"
            out.append(
                f"| {peer}, {name} | ≥ {goal:g} | {found_ratio:.3g} | {verdict} |"
            )
    for form in ("avro", "protobuf"):
        entry = by_name.get(f"{form} flights", {}).get(BATCHES[0])
        if entry:
            ratio = entry["rates"]["kconsumer, 3 columns"]["median"] / entry["rates"]["kconsumer"]["median"]
            out.append(
                f"| all 12 columns, {form} flights, 3 columns | ≥ 1.5 | {ratio:.3g} | "
                f"{'reached' if ratio >= 1.5 else 'missed'} |"
            )
    return "\n".join(out) + "\n"


def shown(rate: dict[str, float] | None) -> str:
    if rate is None:
        return "cannot"
    return f"{rate['median']:.3g} ({rate['least']:.3g}-{rate['most']:.3g})"


def publish(text: str) -> None:
    page_parts.write(report.DOCS / "benchmarks.md", "decode results", lambda _: text)


def conditions(rows: int, rounds: int) -> str:
    found = report.machine()
    packages = [
        f"{name} {version}" for name, version in found.items() if name in ("kconsumer", "pyarrow", "confluent-kafka")
    ]
    packages += [f"{name} {report.version(name)}" for name in PACKAGES if _installed(name)]
    return (
        f"Measured {time.strftime('%Y-%m-%d %H:%M:%S +0000', time.gmtime())} on {found['cores']} cores "
        f"({found['cpu']}), load {os.getloadavg()[0]:.1f}, {', '.join(packages)}. M rows/s of CPU time, {rows:,} rows "
        f"(wide: a tenth), one thread. Median (least-most) of {rounds} rounds."
    )


def _installed(name: str) -> bool:
    try:
        report.version(name)
    except report.PackageNotFoundError:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shapes", default=",".join(shape.name for shape in SHAPES))
    parser.add_argument("--formats", default="json,avro,protobuf")
    parser.add_argument("--publish", action="store_true")
    given = parser.parse_args()
    result: dict[str, Any] = {"machine": conditions(given.rows, given.rounds), "sections": []}
    for section in sections(given.formats.split(","), given.shapes.split(","), given.rows):
        for batch in BATCHES:
            found = measured(section, batch, given.rounds)
            rates = {name: statistics.median(every) for name, every in found.items()}
            best = best_peer(section.tools, rates)
            size = sum(map(len, section.values)) // len(section.values)
            result["sections"].append(
                {
                    "name": section.name,
                    "batch": batch,
                    "bytes": size,
                    "best": best,
                    "rates": {
                        name: {"median": statistics.median(every), "least": min(every), "most": max(every)}
                        for name, every in found.items()
                    },
                }
            )
            ratio = f"{rates['kconsumer'] / rates[best]:.2f} times {best}" if best else "no peer"
            print(f"\n{section.name}, {size} B a row, batches of {batch:,}: kconsumer {ratio}", flush=True)
            for name, rate in sorted(rates.items(), key=lambda item: -item[1]):
                print(f"  {name:<30} {rate:8.3f} M rows/s", flush=True)
    out = Path("build/bench/decode.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1))
    if given.publish:
        publish(tables(result))


if __name__ == "__main__":
    main()
