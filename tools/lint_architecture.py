"""Checks the rules of the architecture that no general linter has; prints ``file:line: what`` and fails on findings.

    python tools/lint_architecture.py [--no-generated] [ROOT]

Owns: the rules below. Threads: none (a developer's tool). Never: changes a file; guesses: a file that cannot be checked
is a finding.

- head: a source of the core starts with what it owns, its thread, and what it never does.
- gil: a module that the network thread runs has no ``with gil``, no Python object as an attribute of a cdef class, no
  cdef class that the garbage collector may clear, and no nogil function that is not ``noexcept``.
- tag: every attribute of a cdef class there states which thread may touch it.
- harness: product code does not name tests.core, or include a header of it.
- included: a .pxi file is part of a module, which includes it and has the imports of all its files. The interface of a
  module may include files in the same way.
- layer: imports and includes go downwards only, in the core and between the rooms of src/kconsumer.
- circle: no chain of imports in src/kconsumer leads from a module back to itself. Imports inside functions count.
  Imports under TYPE_CHECKING count too: a module that names a type depends on the module that defines it. The core is
  one module here. The package that Python loads before a module does not count: a package may re-export its modules.
- name: no two modules of the core have the same name, generated ones apart.
- generated: the C++ that Cython makes of such a module's nogil functions touches no reference count and no GIL. It sees
  what source cannot show: conversions, error paths, calls of functions that may raise.
- reach: the functions of the consumer layer that the network thread's loop calls follow the rule `generated` too.
  Several modules of this layer serve both threads, so the rule is by function. Calls are followed through the generated
  C++, a virtual one into each class that may serve it.
- machine: nothing in the tree names a path of one machine or a package registry.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

LAYERS = ("base", "protocol", "records", "values", "network", "events", "state", "managers", "consumer")
# Of the consumer layer, only these belong to the network thread. Below it, all modules do, except decoders of values.
OFF_NETWORK_THREAD = {"values"}
NETWORK_THREAD_CONSUMER = {"application_event_processor", "consumer_network_thread", "fetch_buffer", "fetch_decoder",
                           "statistics"}
CORE = Path("src/_core")
PRODUCT = Path("src")
HARNESS = Path("tests/core")  # what tests need of the core's inside
FACE = Path("src/kconsumer")
# The rooms of src/kconsumer, with the core, from the bottom up.
ROOMS = (
    "_version", "errors", "data", "telemetry", "serialization", "groups", "config", "_core", "security", "decoding",
    "consumer", "spawning", "parallel", "aio", "compat", "transactions", "scanning", "testing", "ranges", "ingest",
    "spark", "cli",
)
# Modules for users: no module of the package imports them. The same applies to every __main__.
NAMES_FOR_USERS = {"__init__", "error", "metrics", "polars", "transactions", "__main__"}
GENERATED = Path("build/cython")
HEAD_LINES = 8
# In generated code: the loop of the network thread, and the functions of the consumer layer.
LOOP = "__pyx_f_9kconsumer_5_core_8consumer_8consumer_21ConsumerNetworkThread_run_once"
IN_CONSUMER = "__pyx_f_9kconsumer_5_core_8consumer_8consumer_"

OWNS = re.compile(r"\bOwns:")
NEVER = re.compile(r"\bNever:")
THREAD = re.compile(r"\b[Tt]hreads?: ")
TAG = re.compile(r"#.*\b(thread|shared): ?\S")
WITH_GIL = re.compile(r"\bwith gil\b")
CDEF_CLASS = re.compile(r"^cdef class (\w+)")
CIMPORT = re.compile(r"^\s*(?:from|cimport|import) +kconsumer\._core\.(\w+)")
INCLUDE = re.compile(r'^\s*#include "(\w+)/')
CYTHON = (".pyx", ".pxd", ".pxi")
INCLUDED = re.compile(r'^include "([\w.]+)"', re.M)
NAMES_HARNESS = re.compile(r"\btests\.core\b|^\s*(?:from|import|cimport) +tests\b")
HEADER = re.compile(r'(?:#include|cdef extern from) "([\w/]+\.hpp)"')
IMPORTED = re.compile(r"(?:from +[\w.]+ +)?c?import +[\w(]")
FACE_IMPORT = re.compile(r"^\s*(?:from|import) +(kconsumer(?:\.(?!_core\b)\w+)+)(?: +import\b|\s*$)")
PYTHON_TYPES = set("object list dict set frozenset tuple str bytes bytearray type memoryview".split())
FORBIDDEN = re.compile(
    r"PyGILState_\w+|__Pyx_X?(?:INCREF|DECREF|GOTREF|GIVEREF|CLEAR)|Py_X?(?:INCREF|DECREF|CLEAR|NewRef)\b"
    r"|PyErr_\w+|__Pyx_ErrFetch\w*|__Pyx_WriteUnraisable|__Pyx_AddTraceback|PyObject_\w+|PyEval_\w+"
)
NOT_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.DOTALL)
DEFINITION = re.compile(r"^\s*static .*?\b(__pyx_f_\w+)\(.*\{\s*$")
BASE = re.compile(r"struct __pyx_vtabstruct_(\w+) \{\s+struct __pyx_vtabstruct_(\w+) __pyx_base;")
VIRTUAL_CALL = re.compile(r"__pyx_vtabstruct_(\w+) \*\)[^;]*?__pyx_vtab\)->(?:__pyx_base\.)*(\w+)\(")
MACHINE = (
    (re.compile(r"(?<![\w.])/(?:root|home|work|Users)/\w"), "names a path of one machine"),
    (re.compile(r"https?://[^\s/]*(?:pypi|pythonhosted|artifactory|nexus|npmjs|repo\d?\.maven|proxy\.golang)"),
     "names a package registry"),
    (re.compile(r"(?:--|PIP_)(?:extra[-_])?index[-_]url\b|(?:--|PIP_)trusted[-_]host\b", re.I),
     "configures a package registry"),
)


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Source:
    """One file, with its place in the architecture."""

    root: Path
    path: Path  # relative to root

    @property
    def text(self) -> str:
        return (self.root / self.path).read_text(encoding="utf-8")

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def layer(self) -> str:
        """The folder of src/_core with the file; empty for other files."""
        parts = self.path.parts
        return parts[2] if self.path.is_relative_to(CORE) and len(parts) > 3 else ""

    @property
    def generated(self) -> bool:
        return any("Generated" in line for line in self.lines[:2])

    @property
    def on_network_thread(self) -> bool:
        """Whether the network thread runs this module."""
        if self.layer not in LAYERS or self.layer in OFF_NETWORK_THREAD:
            return False
        return self.layer != "consumer" or self.path.stem in NETWORK_THREAD_CONSUMER

    def finding(self, line: int, text: str) -> Finding:
        return Finding(self.path.as_posix(), line, text)


def code(line: str) -> str:
    """Return a line without its comment; sufficient if strings have no ``#``."""
    return line.split("#", 1)[0].rstrip()


def check_head(source: Source) -> Iterator[Finding]:
    head = "\n".join(source.lines[:HEAD_LINES])
    if not THREAD.search(head):
        yield source.finding(1, f"head: no 'thread: …' in the first {HEAD_LINES} lines")
    if source.path.suffix == ".pxd":
        return  # an interface: its one line of text stands for what the module owns
    if not OWNS.search(head):
        yield source.finding(1, f"head: no 'Owns: …' in the first {HEAD_LINES} lines")
    if not NEVER.search(head):
        yield source.finding(1, f"head: no 'Never: …' in the first {HEAD_LINES} lines")


def check_gil(source: Source) -> Iterator[Finding]:
    lines = source.lines
    for number, line in enumerate(lines, 1):
        if WITH_GIL.search(code(line)):
            yield source.finding(number, "gil: 'with gil' in a module of the network thread")
        if source.path.suffix != ".pxd" and CDEF_CLASS.match(line) and not decorated_no_gc(lines, number - 1):
            yield source.finding(number, "gil: a cdef class of the network thread needs @cython.no_gc")
    for number, signature in signatures(lines):
        if re.search(r"\)[^()]*\bnogil\b", signature) and not re.search(r"\bnoexcept\b", signature):
            yield source.finding(number, "gil: nogil without noexcept: callers take the GIL to look for an exception")


def decorated_no_gc(lines: list[str], index: int) -> bool:
    while index > 0 and lines[index - 1].startswith("@"):
        index -= 1
        if lines[index].strip() == "@cython.no_gc":
            return True
    return False


def signatures(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield (line number, signature on one line) of every cdef function, except externs."""
    extern_indent = -1
    at = 0
    while at < len(lines):
        start, line = at, code(lines[at])
        at += 1
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent <= extern_indent:
            extern_indent = -1
        if line.lstrip().startswith("cdef extern"):
            extern_indent = indent
        if extern_indent >= 0 or not line.lstrip().startswith("cdef ") or "(" not in line:
            continue
        while line.count("(") > line.count(")") and at < len(lines):
            line += " " + code(lines[at]).strip()
            at += 1
        yield start + 1, line


def class_attributes(lines: list[str]) -> Iterator[tuple[int, str, str, bool]]:
    """Yield (line number, line, declaration without ``cdef``, tagged by class) of cdef class attributes."""
    inside = tagged = opening = False
    for number, line in enumerate(lines, 1):
        if CDEF_CLASS.match(line):
            inside, opening, tagged = True, True, bool(TAG.search(line))
            continue
        if line.strip() and not line[0].isspace() and not line.startswith("#"):
            inside = False
        if not inside or not line.strip():
            continue
        if opening and line.lstrip().startswith("#"):  # comments directly under the class statement apply to it
            tagged = tagged or bool(TAG.search(line))
            continue
        opening = False
        text = code(line)
        if len(text) - len(text.lstrip()) != 4 or not text.lstrip().startswith("cdef "):
            continue
        if "(" not in text or "(*" in text:
            yield number, line, text.strip().removeprefix("cdef "), tagged


def check_attributes(source: Source) -> Iterator[Finding]:
    for number, line, declaration, tagged in class_attributes(source.lines):
        if not tagged and not TAG.search(line):
            yield source.finding(number, f"tag: which thread may touch it? '{declaration}' has no thread: or shared:")
        words = declaration.removeprefix("public ").removeprefix("readonly ").split()
        if words[0] in PYTHON_TYPES or len(words) == 1:
            yield source.finding(number, f"gil: '{declaration}' is a Python object in a class of the network thread")


def check_layers(source: Source) -> Iterator[Finding]:
    known = set(LAYERS) | {"librdkafka"}
    for number, line in enumerate(source.lines, 1):
        match = CIMPORT.match(line) or INCLUDE.match(line)
        if match is None or match[1] not in known or match[1] == source.layer:
            continue
        if "librdkafka" in (match[1], source.layer):
            upwards = match[1] != "base"  # it stands beside the layers
        else:
            upwards = LAYERS.index(match[1]) > LAYERS.index(source.layer)
        if upwards:
            yield source.finding(number, f"layer: {source.layer} must not import from {match[1]}")


def check_names(sources: Iterable[Source]) -> Iterator[Finding]:
    owner: dict[str, str] = {}
    for source in sources:
        name, folder = source.path.stem, source.path.parent.as_posix()
        if not source.layer or source.path.suffix not in (*CYTHON, ".hpp") or source.generated:
            continue
        if owner.setdefault(name, folder) != folder:
            yield source.finding(1, f"name: {owner[name]} has a module {name} too")


def check_harness(source: Source) -> Iterator[Finding]:
    for number, line in enumerate(source.lines, 1):
        header = HEADER.search(line)
        if NAMES_HARNESS.search(line) or (header and (source.root / HARNESS / header[1]).is_file()):
            yield source.finding(number, "harness: product code must not use tests.core")


def modules_of(sources: Iterable[Source]) -> dict[Path, Path]:
    """Return which module of the core includes each file."""
    modules: dict[Path, Path] = {}
    for source in sources:
        if source.layer and source.path.suffix in (".pyx", ".pxd"):
            included = (source.path.parent / name for name in INCLUDED.findall(source.text))
            modules |= dict.fromkeys(included, source.path.with_suffix(".pyx"))
    return modules


def check_included(sources: Iterable[Source], modules: dict[Path, Path]) -> Iterator[Finding]:
    for source in sources:
        if not source.layer or (source.path.suffix != ".pxi" and source.path not in modules):
            continue
        if source.path not in modules:
            yield source.finding(1, "included: no module includes this file")
        for number, line in enumerate(source.lines, 1):
            if IMPORTED.match(line):
                yield source.finding(number, "included: imports are at the head of the module that includes this file")


@dataclass(frozen=True)
class Import:
    """A line with which one module of the package needs another."""

    source: Source
    line: int
    module: str  # dotted; CORE_MODULE for the whole core
    needs: str

    def finding(self, text: str) -> Finding:
        return self.source.finding(self.line, text)


CORE_MODULE = "kconsumer._core"


def module_of(path: Path) -> str:
    """Return the dotted name of a file in src/kconsumer."""
    parts = ("kconsumer", *path.relative_to(FACE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def needed(tree: ast.Module, package: str, modules: set[str]) -> Iterator[tuple[int, str]]:
    """Yield (line number, module) of every import of the package's modules, anywhere in the file."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{origin}.{alias.name}" for alias in node.names]
        for name in names:
            module = CORE_MODULE if name.startswith(f"{CORE_MODULE}.") else name
            while module and module not in modules:  # the last part may be a name inside a module
                module = module.rpartition(".")[0]
            if module:
                yield node.lineno, module


def python_imports(sources: list[Source]) -> Iterator[Import]:
    """Yield the imports between the modules of src/kconsumer, and between them and the core."""
    face = {module_of(source.path): source for source in sources
            if source.path.is_relative_to(FACE) and source.path.suffix == ".py"}
    for module, source in face.items():
        package = module if source.path.name == "__init__.py" else module.rpartition(".")[0]
        for line, needs in needed(ast.parse(source.text), package, {*face, CORE_MODULE}):
            yield Import(source, line, module, needs)
    for source in sources:
        if not source.path.is_relative_to(CORE) or source.path.suffix not in (".pyx", ".pxi", ".pyi"):
            continue
        for number, line in enumerate(source.lines, 1):
            match = FACE_IMPORT.match(code(line))
            if match is not None:
                yield Import(source, number, CORE_MODULE, match[1])


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def check_rooms(imports: Iterable[Import]) -> Iterator[Finding]:
    for item in imports:
        if item.module.endswith(".__main__") or room(item.module) in NAMES_FOR_USERS:
            continue
        below, here = room(item.needs), room(item.module)
        for name in (below, here):
            if name not in ROOMS and name not in NAMES_FOR_USERS:
                yield item.finding(f"layer: {name} is not among the rooms: add it to ROOMS")
                break
        else:
            if below in NAMES_FOR_USERS or item.needs.endswith(".__main__"):
                yield item.finding(f"layer: {item.needs} is for users: import from where the name is defined")
            elif ROOMS.index(below) > ROOMS.index(here):
                yield item.finding(f"layer: {here} must not import from {below}")


def check_circles(imports: Iterable[Import]) -> Iterator[Finding]:
    """Yield each circle once, as the shortest chain from one of its modules back to itself."""
    graph: dict[str, dict[str, Import]] = {}
    for item in imports:
        if item.module != item.needs:
            graph.setdefault(item.module, {}).setdefault(item.needs, item)
    known: set[str] = set()
    for start in sorted(graph):
        way = [] if start in known else way_round(graph, start)
        if way:
            known |= {item.module for item in way}
            modules = " → ".join([start, *(item.needs for item in way)])
            yield way[0].finding(f"circle: {modules}")


def way_round(graph: dict[str, dict[str, Import]], start: str) -> list[Import]:
    """Return the shortest chain of imports from a module back to itself; empty without one."""
    came_by: dict[str, Import] = {}
    queue = [start]
    for module in queue:
        for needs, item in graph.get(module, {}).items():
            if needs in came_by:
                continue
            came_by[needs] = item
            if needs == start:
                way = [item]
                while way[0].module != start:
                    way.insert(0, came_by[way[0].module])
                return way
            queue.append(needs)
    return []


def c_name(module: Iterable[str], cls: str, function: str) -> str:
    """Return the C name of a cdef function or method in Cython's output."""
    return "__pyx_f_" + "".join(f"{len(part)}{part}_" for part in [*module, *([cls] if cls else [])]) + function


def nogil_functions(source: Source, module_path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, C name) of every nogil function in a file of a module or an inline part of an interface."""
    module = ("kconsumer", "_core", *module_path.relative_to(CORE).with_suffix("").parts)
    lines = source.lines
    for number, signature in signatures(lines):
        ending = signature.rsplit(")", 1)[1]
        if "nogil" not in ending or ":" not in ending:
            continue
        cls = ""
        if signature[0].isspace():
            above = (CDEF_CLASS.match(line) for line in reversed(lines[:number]))
            cls = next((found[1] for found in above if found), "")
        name = re.search(r"(\w+)\s*\(", signature)
        assert name is not None  # signatures() asks for a parenthesis
        yield number, c_name(module, cls, name[1])


def definitions(text: str) -> Iterator[tuple[str, int, list[str]]]:
    """Yield (C name, line number, body) of each function with a Cython name in a generated file."""
    # Without texts and comments, which may have braces; the lines keep their numbers.
    lines = NOT_CODE.sub(lambda match: "\n" * match[0].count("\n"), text).splitlines()
    at = 0
    while at < len(lines):
        match = DEFINITION.match(lines[at])
        at += 1
        if match is None:
            continue
        first, depth = at, 1  # indentation shows no end: Cython loses it after a handler of C++ exceptions
        while at < len(lines) and depth > 0:
            depth += lines[at].count("{") - lines[at].count("}")
            at += 1
        yield match[1], first, lines[first:at - 1]


def check_generated(root: Path, sources: Iterable[Source], modules: dict[Path, Path]) -> Iterator[Finding]:
    """Check the C++ of the network thread's modules together: inline functions are defined in their users."""
    read: set[Path] = set()
    expected: dict[str, Finding] = {}
    seen: set[str] = set()
    bodies: list[tuple[str, str, int, list[str]]] = []
    for source in sources:
        module = modules.get(source.path, source.path)
        for number, name in nogil_functions(source, module):
            text = f"generated: {name} is not in the generated code, so it was not checked"
            expected[name] = source.finding(number, text)
        if source.path.suffix == ".pxd":
            continue
        made = GENERATED / module.with_suffix(".cpp")
        if not (root / made).is_file():
            yield source.finding(1, f"generated: {made} is missing; build first")
            continue
        if (root / made).stat().st_mtime < (root / source.path).stat().st_mtime:
            yield source.finding(1, f"generated: {made} is older than its source; build first")
        if made in read:
            continue
        read.add(made)
        for name, number, body in definitions((root / made).read_text(encoding="utf-8", errors="replace")):
            bodies.append((name, made.as_posix(), number, body))
            seen.add(name)
    for name, path, number, body in bodies:
        if name not in expected:
            continue
        for offset, line in enumerate(body, 1):
            match = FORBIDDEN.search(line)
            if match is not None:
                yield Finding(path, number + offset, f"generated: {match[0]} in the nogil function {name}")
                break
    for name, finding in expected.items():
        if name not in seen and not finding.path.endswith(".pxd"):  # an unused inline function is not emitted
            yield finding


def virtual_calls(line: str) -> Iterator[tuple[str, str]]:
    """Yield (class, method) of each virtual call, also of those among the arguments of another one."""
    found = VIRTUAL_CALL.search(line)
    while found is not None:
        yield found[1], found[2]
        found = VIRTUAL_CALL.search(line, found.start() + 1)


def in_function(cls: str) -> str:
    """Return the form that the name of a class has in functions, with its length, from that of its table."""
    at = 0
    while (length := re.match(r"\d+", cls[at:])) is not None:
        at += length.end() + int(length[0]) + 1
    return f"{cls[:at]}{len(cls) - at}{cls[at:]}"


class Calls:
    """Which functions of the generated C++ call which."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[tuple[str, int, list[str]]]] = {}  # by function: inline ones are in several files
        self._bases: dict[str, str] = {}  # of classes

    def add(self, path: str, text: str) -> None:
        """Add a generated file."""
        for name, number, body in definitions(text):
            self.bodies.setdefault(name, []).append((path, number, body))
        self._bases.update(BASE.findall(text))

    def reached(self, start: str) -> set[str]:
        """Return the functions that a function calls, directly or not."""
        found, queue = {start}, [start]
        for name in queue:
            new = {called for _, _, body in self.bodies[name] for line in body for called in self._called(line)} - found
            found |= new
            queue += sorted(new)
        return found

    def _called(self, line: str) -> Iterator[str]:
        yield from (name for name in re.findall(r"__pyx_f_\w+", line) if name in self.bodies)
        for cls, method in virtual_calls(line):
            names = (f"__pyx_f_{in_function(other)}_{method}" for other in self._related(cls))
            yield from (name for name in names if name in self.bodies)

    def _related(self, cls: str) -> Iterator[str]:
        """Yield the class, its bases, and the classes that derive from it."""
        yield from self._up(cls)
        yield from (other for other in self._bases if cls in self._up(other))

    def _up(self, cls: str | None) -> list[str]:
        found = []
        while cls is not None:
            found.append(cls)
            cls = self._bases.get(cls)
        return found


def check_reached(root: Path, sources: Iterable[Source]) -> Iterator[Finding]:
    """Check the functions of the consumer layer that the loop of the network thread calls."""
    loop = CORE / "consumer/consumer_network_thread.pxi"
    if not (root / loop).is_file():
        return
    calls = Calls()
    for source in sources:
        made = GENERATED / source.path.with_suffix(".cpp")
        if source.layer and source.path.suffix == ".pyx" and (root / made).is_file():
            calls.add(made.as_posix(), (root / made).read_text(encoding="utf-8", errors="replace"))
    if LOOP not in calls.bodies:
        yield Finding(loop.as_posix(), 1,
                      f"reach: {LOOP} is not in the generated code, so what it calls was not checked")
        return
    for name in sorted(name for name in calls.reached(LOOP) if name.startswith(IN_CONSUMER)):
        for path, number, body in calls.bodies[name]:
            for offset, line in enumerate(body, 1):
                match = FORBIDDEN.search(line)
                if match is not None:
                    yield Finding(path, number + offset, f"reach: {match[0]} in {name}, which the network thread calls")
                    break


def check_machine(source: Source) -> Iterator[Finding]:
    try:
        lines = source.lines
    except UnicodeDecodeError:
        return  # a picture or test data
    for number, line in enumerate(lines, 1):
        for pattern, text in MACHINE:
            if pattern.search(line):
                yield source.finding(number, f"machine: {text}")


def tracked(root: Path) -> list[Source]:
    """Return every file that git tracks or would track; all files without git."""
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True,
                          check=False)
    if done.returncode == 0:
        paths = [Path(line) for line in done.stdout.splitlines()]
    else:
        paths = [path.relative_to(root) for path in root.rglob("*")]
    return [Source(root, path) for path in sorted(paths) if (root / path).is_file() and GENERATED not in path.parents]


def check(root: Path, generated: bool = True) -> list[Finding]:
    """Return all findings in a tree, sorted."""
    found: list[Finding] = []
    on_network_thread: list[Source] = []
    sources = tracked(root)
    imports = list(python_imports(sources))
    modules = modules_of(sources)
    found += [*check_rooms(imports), *check_circles(imports), *check_names(sources), *check_included(sources, modules)]
    for source in sources:
        found += check_machine(source)
        if source.path.is_relative_to(PRODUCT) and source.path.suffix in (*CYTHON, ".hpp", ".py", ".pyi"):
            found += check_harness(source)
        if source.path.is_relative_to(HARNESS) and source.path.suffix in (*CYTHON, ".hpp"):
            found += check_head(source)
        if not source.layer or source.path.suffix not in (*CYTHON, ".hpp"):
            continue
        found += check_layers(source)
        if source.generated:
            continue
        found += check_head(source)
        if source.on_network_thread and source.path.suffix != ".hpp":
            on_network_thread.append(source)
            found += check_gil(source)
            found += check_attributes(source)
    if generated:
        found += [*check_generated(root, on_network_thread, modules), *check_reached(root, sources)]
    return sorted(found)


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the architecture's rules.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--no-generated", action="store_true", help="skip the C++ under build/cython")
    options = parser.parse_args()
    found = check(options.root, generated=not options.no_generated)
    for finding in found:
        print(finding)
    print(f"architecture: {len(found)} finding(s)" if found else "architecture: no findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
