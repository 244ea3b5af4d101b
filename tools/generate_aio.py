"""Writes src/kconsumer/aio/methods.py: the methods of AIOConsumer that only differ from Consumer's by `await`.

    python tools/generate_aio.py [--check]

Owns: which methods those are, and how each is called. Signatures and docstrings are Consumer's own. Threads: none (a
developer's tool). Never: changes anything with --check, which fails where the file is not up to date.
"""

from __future__ import annotations

import argparse
import ast
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [ROOT / "src/kconsumer/consumer/group_consumer.py", ROOT / "src/kconsumer/consumer/__init__.py"]
TARGET = ROOT / "src/kconsumer/aio/methods.py"

# They ask brokers: _<name>_call is the call.
ASKING = ("commit", "committed", "lag", "get_watermark_offsets", "offsets_for_times", "list_topics", "cluster_id")
# They return at once.
AT_ONCE = (
    "subscribe", "subscription", "memberid", "rebalance_protocol", "consumer_group_metadata", "store_offsets", "assign",
    "unassign", "incremental_assign", "incremental_unassign", "assignment", "seek", "seek_to_beginning", "seek_to_end",
    "position", "pause", "resume", "paused", "set_config", "metrics", "set_sasl_credentials", "set_oauth_token",
    "wakeup",
)
HEAD = '''"""The methods of AIOConsumer that are Consumer's with `await`. Made by tools/generate_aio.py: do not edit.

Owns: their signatures and docstrings, which are Consumer's. Threads: the loop's. Never: does anything itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from kconsumer.aio.calls import LoopCalls
from kconsumer.consumer.group_consumer import Rebalanced
from kconsumer.data.cluster_metadata import ClusterMetadata
from kconsumer.data.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kconsumer._core.consumer.consumer import Message
    from kconsumer.telemetry.metrics import Metrics

__all__ = ["Methods"]


class Methods(LoopCalls):
    """AIOConsumer's methods that are Consumer's with `await`."""
'''


def written() -> str:
    """The whole file."""
    functions: dict[str, list[ast.FunctionDef]] = {}
    for source in SOURCES:
        for found in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(found, ast.ClassDef) and found.name in ("GroupConsumer", "Consumer"):
                for item in found.body:
                    if isinstance(item, ast.FunctionDef):
                        functions.setdefault(item.name, []).append(item)
    missing = [name for name in ASKING + AT_ONCE if name not in functions]
    if missing:
        raise SystemExit(f"Consumer has no {', '.join(missing)}: change the lists of {Path(__file__).name}")
    return HEAD + "".join(_method(function) for name in AT_ONCE + ASKING for function in functions[name])


def _method(function: ast.FunctionDef) -> str:
    head = f"async def {function.name}({ast.unparse(function.args)})"
    returns = f" -> {ast.unparse(function.returns)}:" if function.returns else ":"
    overloaded = any(isinstance(d, ast.Name) and d.id == "overload" for d in function.decorator_list)
    lines = [""] + (["@overload"] if overloaded else [])
    if len(head + returns) > 112:
        lines += [f"async def {function.name}(", f"    {ast.unparse(function.args)}"]
        if len(lines[-1]) > 112:
            arguments = _arguments(function.args)
            lines[-1:] = [f"    {argument}," for argument in arguments]
        lines.append(f"){returns}" + (" ..." if overloaded else ""))
    else:
        lines.append(head + returns + (" ..." if overloaded else ""))
    if not overloaded:
        document = ast.get_docstring(function) or ""
        body = document.split("\n")
        lines.append(f'    """{body[0]}')
        lines += [f"    {line}".rstrip() for line in body[1:]]
        if "" not in body:  # one paragraph
            lines[-1] += '"""'
        else:
            lines.append('    """')
        lines += [f"    {line}" for line in _body(function)]
    return textwrap.indent("\n".join(lines), "    ", lambda line: bool(line.strip())) + "\n"


def _arguments(arguments: ast.arguments) -> list[str]:
    texts = []
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + list(arguments.defaults)
    for argument, default in zip(arguments.args, defaults, strict=True):
        texts.append(ast.unparse(argument) + (f" = {ast.unparse(default)}" if default is not None else ""))
    if arguments.kwonlyargs:
        texts += ["*", *map(ast.unparse, arguments.kwonlyargs)]
    if arguments.kwarg is not None:
        texts.append("**" + ast.unparse(arguments.kwarg))
    return texts


def _body(function: ast.FunctionDef) -> list[str]:
    given = [argument.arg for argument in function.args.args[1:]]
    passed = ", ".join(given + ([f"**{function.args.kwarg.arg}"] if function.args.kwarg else []))
    if function.name in ASKING:
        return [f"return await self._call(self._inner._{function.name}_call({passed}))"]
    line = f"self._inner.{function.name}({passed})"
    returns = function.returns is not None and ast.unparse(function.returns) != "None"
    return ["self._enter()", f"return {line}" if returns else line]


def main() -> int:
    """Write the file, or with --check compare it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    text = written()
    if not parser.parse_args().check:
        TARGET.write_text(text, encoding="utf-8")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
        print(f"{TARGET.relative_to(ROOT)} is not up to date: run python tools/generate_aio.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
