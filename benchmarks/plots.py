"""Owns: the plots of a run: clients on the first topic, and calls by size of the values.

Threads: the main thread. Never: measures, or omits a measured client.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import sizes
from benchmarks.clients.registry import EVERY
from benchmarks.report import summary

FIRST, BY_SIZE = "benchmarks.svg", "benchmarks-sizes.svg"
_LINES = (("kconsumer poll", "poll()", "#1f6fb5", "o"), ("kconsumer consume", "consume(10000)", "#c0504d", "s"),
          ("kconsumer arrow", "consume_batch(), copied into pyarrow", "#4f9a4f", "^"))


def draw(result: dict[str, Any], folder: Path) -> list[str]:
    """Draw the plots for the run's samples. Return their names; without matplotlib an empty list."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawn = []
    if "plain" in result["topics"] and result["samples"]:
        _bars(result, pyplot, folder / FIRST)
        drawn.append(FIRST)
    if sum(name in result["topics"] for name in sizes.TOPICS) > 1:
        _by_size(result, pyplot, folder / BY_SIZE)
        drawn.append(BY_SIZE)
    return drawn


def _save(figure: Any, pyplot: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path)
    figure.savefig(path.with_suffix(".png"), dpi=150)
    pyplot.close(figure)


def _bars(result: dict[str, Any], pyplot: Any, path: Path) -> None:
    """Draw rates and CPU of the first topic's clients, with their spread."""
    first = next(iter(result["topics"].values()))
    rows = [row for row in summary(result["samples"]) if row["topic"] == first["name"]]
    rows.sort(key=lambda row: row["rate"].median)
    names = [row["client"] for row in rows]
    colours = ["#b3d1f0" if name.startswith("raw socket") else "#1f6fb5" if EVERY[name].own else "#9a9a9a"
               for name in names]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 0.42 * len(rows) + 1.6), sharey=True)
    for axes, key, scale, label in ((left, "rate", 1e-6, "million records/s"),
                                    (right, "cpu", 1.0, "CPU seconds per million records")):
        middle = [row[key].median * scale for row in rows]
        around = [[m - row[key].least * scale for m, row in zip(middle, rows, strict=True)],
                  [row[key].most * scale - m for m, row in zip(middle, rows, strict=True)]]
        axes.barh(names, middle, xerr=around, color=colours, error_kw={"lw": 0.8, "ecolor": "#444444"})
        axes.set_xscale("log")
        axes.set_xlabel(label + " (log scale)")
        axes.spines[["top", "right"]].set_visible(False)
        for at, value in enumerate(middle):
            axes.annotate(f"{value:.3g}", (value, at), xytext=(5, 6), textcoords="offset points", fontsize=7)
    figure.suptitle(f"{first['records']:,} records: {first['about']}", fontsize=11)
    _save(figure, pyplot, path)



def _by_size(result: dict[str, Any], pyplot: Any, path: Path) -> None:
    """Draw each call's rate relative to confluent-kafka's, by size of a value; log scales."""
    figure, axes = pyplot.subplots(figsize=(7.5, 4.2))
    rows = {(row["topic"], row["client"]): row for row in summary(result["samples"])}
    for client, label, colour, marker in _LINES:
        found = [(topic.value_bytes, rows[name, client]["ratio"]) for name, topic in sizes.TOPICS.items()
                 if (name, client) in rows and rows[name, client]["ratio"]]
        middle = [ratio.median for _, ratio in found]
        around = [[ratio.median - ratio.least for _, ratio in found], [ratio.most - ratio.median for _, ratio in found]]
        axes.errorbar([size for size, _ in found], middle, yerr=around, label=label, color=colour, marker=marker,
                      capsize=3, lw=1.4)
    axes.axhline(1.0, color="#444444", lw=0.8, ls="--")
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = [topic.value_bytes for topic in sizes.TOPICS.values()]
    axes.set_xticks(ticks, [topic.about.split(",")[0] for topic in sizes.TOPICS.values()])
    axes.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
    axes.minorticks_off()
    axes.set_xlabel("size of a value")
    axes.set_ylabel("times confluent-kafka's rate")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    _save(figure, pyplot, path)
