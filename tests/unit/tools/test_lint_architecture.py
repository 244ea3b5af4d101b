"""Each rule of tools/lint_architecture.py finds a violation planted in a small tree, and nothing in a clean one."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "lint_architecture.py"

PXD = """# A clock. thread: N.
from kconsumer._core.base.cpp cimport int64_t

cdef class Clock:
    cdef int64_t time_us  # thread: N
    cdef int64_t now_us(self,
                        int64_t start) noexcept nogil
"""
PYX = '''"""Owns: Clock.

thread: N. Never: runs backwards.
"""
cimport cython


@cython.no_gc
cdef class Clock:
    cdef int64_t now_us(self,
                        int64_t start) noexcept nogil:
        return self.time_us
'''
CPP = """static int64_t __pyx_f_9kconsumer_5_core_7network_5clock_5Clock_now_us(struct X *__pyx_v_self) {
  int64_t __pyx_r;
  /* a comment may say Py_INCREF */
  __pyx_r = __pyx_v_self->time_us;
  return __pyx_r;
}

static void __pyx_f_9kconsumer_5_core_7network_5clock_with_gil(void) {
  Py_INCREF(Py_None);
}
"""


@pytest.fixture(scope="module")
def lint() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lint_architecture", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["lint_architecture"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


class Tree:
    """A clean tree, that a test then spoils."""

    def __init__(self, root: Path, lint: ModuleType) -> None:
        self.root, self.lint = root, lint
        self.write("src/_core/network/clock.pxd", PXD)
        self.write("src/_core/network/clock.pyx", PYX)
        self.write("build/cython/src/_core/network/clock.cpp", CPP)

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        os.utime(target, (1000, 1000))  # generated code is never older, unless a test says so

    def findings(self, generated: bool = True) -> list[str]:
        return [str(finding) for finding in self.lint.check(self.root, generated)]

    def only(self) -> str:
        """The one finding."""
        found = self.findings()
        assert len(found) == 1, found
        return found[0]


@pytest.fixture
def tree(tmp_path: Path, lint: ModuleType) -> Tree:
    return Tree(tmp_path, lint)


def test_a_clean_tree_has_no_findings(tree: Tree) -> None:
    assert tree.findings() == []


@pytest.mark.parametrize("word", ["Owns", "thread", "Never"])
def test_a_file_header_without_a_required_word_is_found(tree: Tree, word: str) -> None:
    tree.write("src/_core/network/x.hpp", "// Owns: x. thread: N. Never: y.\n".replace(f"{word}:", word))
    assert tree.only() == f"src/_core/network/x.hpp:1: head: no '{word}: …' in the first 8 lines"


def test_with_gil_is_found(tree: Tree) -> None:
    tree.write("src/_core/network/clock.pyx", PYX + "        with gil:\n            pass\n")
    assert "clock.pyx:13: gil: 'with gil'" in tree.only()


@pytest.mark.parametrize(("path", "line"), [
    ("src/_core/managers/a.pyx", "from tests.core import inside"),
    ("src/_core/managers/a.pyx", "    cimport tests.core.inside"),
    ("src/_core/managers/a.pyx", 'cdef extern from "simulation/world.hpp":'),
    ("src/_core/managers/b.hpp", '#include "simulation/world.hpp"'),
    ("src/kconsumer/testing/a.py", "import tests.core.inside"),
    ("src/kconsumer/testing/a.py", 'importlib.import_module("tests.core.inside")'),
])
def test_product_code_that_uses_what_only_tests_have_is_found(tree: Tree, path: str, line: str) -> None:
    tree.write("tests/core/simulation/world.hpp", "// Owns: time. thread: that of the test. Never: waits.\n")
    head = {".pyx": '"""{}"""', ".py": "# {}", ".hpp": "// {}"}[Path(path).suffix]
    tree.write(path, head.format("Owns: a. thread: N. Never: b.") + f"\n{line}\n")
    (found,) = tree.findings(generated=False)
    assert found == f"{path}:2: harness: product code must not use tests.core"


def test_a_test_may_use_the_core(tree: Tree) -> None:
    tree.write("tests/core/inside.pyx", '"""Owns: access. thread: that of the test. Never: part of the product."""\n'
                                        "from kconsumer._core.network.clock cimport Clock\n")
    tree.write("tests/unit/test_clock.py", "from tests.core import inside\n")
    assert tree.findings() == []


def test_a_file_that_a_module_includes_is_checked_like_a_module(tree: Tree) -> None:
    module, part = "src/_core/network/clock.pyx", "src/_core/network/ticks.pxi"
    tree.write(part, PYX.replace("cimport cython\n", ""))
    tree.write(module, '"""Owns: clocks. thread: N. Never: waits."""\ncimport cython\n\ninclude "ticks.pxi"\n')
    assert tree.findings() == []
    tree.write(part, PYX.replace("cimport cython\n", "") + "        with gil:\n            pass\n")
    assert "ticks.pxi:12: gil: 'with gil'" in tree.only()
    tree.write(part, PYX.replace("cimport cython\n", "").replace("now_us", "renamed"))
    assert "ticks.pxi:9: generated: " in tree.only()


def test_a_file_that_no_module_includes_is_found(tree: Tree) -> None:
    tree.write("src/_core/network/ticks.pxi", '"""Owns: ticks. thread: N. Never: waits."""\n')
    (found,) = tree.findings(generated=False)
    assert found == "src/_core/network/ticks.pxi:1: included: no module includes this file"


def test_an_import_in_an_included_file_is_found(tree: Tree) -> None:
    tree.write("src/_core/network/clock.pyx", PYX + '\ninclude "ticks.pxi"\n')
    tree.write("src/_core/network/ticks.pxi", '"""Owns: ticks. thread: N. Never: waits."""\nfrom a cimport (\n    b)\n')
    assert tree.only().startswith("src/_core/network/ticks.pxi:2: included: imports are at the head of the module")


def test_with_gil_outside_the_network_thread_is_allowed(tree: Tree) -> None:
    head = '"""Owns: x. thread: A. Never: y."""\n'
    for path in ("consumer/fetch_handler.pyx", "librdkafka/mock.pyx"):
        tree.write(f"src/_core/{path}", head + "def f():\n    with gil:\n        pass\n")
    assert tree.findings() == []


def test_with_gil_in_the_consumer_layers_network_thread_part_is_found(tree: Tree) -> None:
    tree.write("src/_core/consumer/fetch_buffer.pyx", '"""Owns: x. thread: N. Never: y."""\nwith gil:\n    pass\n')
    assert any("gil: 'with gil'" in finding for finding in tree.findings(generated=False))


@pytest.mark.parametrize("declaration", ["object clock", "dict by_name", "public list clocks", "clock"])
def test_a_python_attribute_is_found(tree: Tree, declaration: str) -> None:
    tree.write("src/_core/network/clock.pxd", PXD.replace("int64_t time_us", declaration))
    assert tree.only().startswith("src/_core/network/clock.pxd:5: gil: ")


@pytest.mark.parametrize("declaration", ["Network network", "set[int] ids", "void (*on_room)(void*) noexcept nogil"])
def test_other_cdef_classes_containers_and_pointers_are_fine(tree: Tree, declaration: str) -> None:
    tree.write("src/_core/network/clock.pxd", PXD.replace("int64_t time_us", declaration))
    assert tree.findings() == []


def test_an_attribute_without_a_thread_tag_is_found(tree: Tree) -> None:
    tree.write("src/_core/network/clock.pxd", PXD.replace("  # thread: N", "  # in µs"))
    assert "clock.pxd:5: tag:" in tree.only()


@pytest.mark.parametrize("tag", ["# shared: lock", "# thread: A (written once)"])
def test_a_tag_on_the_line_or_under_the_class_statement_will_do(tree: Tree, tag: str) -> None:
    tree.write("src/_core/network/clock.pxd", PXD.replace("# thread: N", tag))
    assert tree.findings() == []
    untagged = PXD.replace("  # thread: N", "").replace("class Clock:\n", f"class Clock:\n    # Ticks.\n    {tag}\n")
    tree.write("src/_core/network/clock.pxd", untagged)
    assert tree.findings() == []


def test_a_class_that_the_collector_may_clear_is_found(tree: Tree) -> None:
    tree.write("src/_core/network/clock.pyx", PYX.replace("@cython.no_gc\n", ""))
    assert "needs @cython.no_gc" in tree.only()


def test_nogil_without_noexcept_is_found_across_lines(tree: Tree) -> None:
    tree.write("src/_core/network/clock.pyx", PYX.replace("noexcept nogil", "nogil"))
    assert "clock.pyx:10: gil: nogil without noexcept" in tree.only()


@pytest.mark.parametrize(
    "path, line",
    [
        ("src/_core/base/a.pyx", "from kconsumer._core.records.columns cimport Block"),
        ("src/_core/network/a.hpp", '#include "managers/state.hpp"'),
        ("src/_core/network/a.pxd", "cimport kconsumer._core.librdkafka.mock_cluster"),
        ("src/_core/librdkafka/a.pyx", "from kconsumer._core.network.network cimport Network"),
    ],
)
def test_an_import_from_above_or_from_beside_is_found(tree: Tree, path: str, line: str) -> None:
    opening = {".pyx": '"""{}"""', ".pxd": "# {}", ".hpp": "// {}"}[Path(path).suffix]
    tree.write(path, opening.format("Owns: a. thread: N. Never: b.") + f"\n{line}\n")
    (found,) = tree.findings(generated=False)
    assert found.startswith(f"{path}:2: layer: ")


def test_an_import_from_below_is_fine(tree: Tree) -> None:
    tree.write("src/_core/managers/a.hpp", '// Owns: a. thread: N. Never: b.\n#include "base/status.hpp"\n')
    assert tree.findings() == []


@pytest.mark.parametrize("suffix", [".hpp", ".pyx"])
def test_two_modules_of_the_core_with_one_name_are_found(tree: Tree, suffix: str) -> None:
    head = {".hpp": "// {}", ".pyx": '"""{}"""'}[suffix].format("Owns: x. thread: A. Never: y.\n")
    tree.write(f"src/_core/records/clock{suffix}", head)
    (found,) = tree.findings(generated=False)
    assert found == f"src/_core/records/clock{suffix}:1: name: src/_core/network has a module clock too"


def test_generated_modules_may_be_called_as_others(tree: Tree) -> None:
    tree.write("src/_core/protocol/messages/clock.hpp", "// Generated by a tool.\n")
    assert tree.findings() == []


@pytest.mark.parametrize(
    "import_of_sasl",
    [
        "from kconsumer.config.sasl import check",
        "from kconsumer.config import sasl",
        "import kconsumer.config.sasl",
        "from .sasl import check",
        "from . import sasl",
        "def f():\n    from kconsumer.config import sasl",
        "if TYPE_CHECKING:\n    from kconsumer.config.sasl import check",
    ],
)
def test_a_circle_of_imports_is_found(tree: Tree, import_of_sasl: str) -> None:
    tree.write("src/kconsumer/config/__init__.py", "from kconsumer.config.parsing import parse\n")
    tree.write("src/kconsumer/config/sasl.py", "def f():\n    from kconsumer.config.values import read\n")
    tree.write("src/kconsumer/config/values.py", "import re\n\nfrom kconsumer.config.parsing import Name\n")
    tree.write("src/kconsumer/config/parsing.py", "import re\n")
    assert tree.findings() == []
    tree.write("src/kconsumer/config/parsing.py", f"import re\n{import_of_sasl}\n")
    line = 2 + import_of_sasl.count("\n")
    assert tree.only() == (
        f"src/kconsumer/config/parsing.py:{line}: circle: kconsumer.config.parsing → kconsumer.config.sasl → "
        "kconsumer.config.values → kconsumer.config.parsing"
    )


def test_a_circle_through_a_package_is_found(tree: Tree) -> None:
    tree.write("src/kconsumer/cli/__init__.py", "from kconsumer.cli import app\n")
    tree.write("src/kconsumer/cli/app.py", "from kconsumer.cli import EXIT_CODE\n")
    assert tree.only() == "src/kconsumer/cli/__init__.py:1: circle: kconsumer.cli → kconsumer.cli.app → kconsumer.cli"


def test_a_circle_through_the_core_is_found(tree: Tree) -> None:
    tree.write("src/kconsumer/security/tokens.py", "from kconsumer._core.network.clock import Clock\n")
    lazily = "    def f(self):\n        from kconsumer.security.tokens import check\n"
    tree.write("src/_core/network/clock.pyx", PYX + lazily)
    assert tree.findings(generated=False) == [
        "src/_core/network/clock.pyx:14: circle: kconsumer._core → kconsumer.security.tokens → kconsumer._core",
        "src/_core/network/clock.pyx:14: layer: _core must not import from security",
    ]


@pytest.mark.parametrize(
    "path, line, text",
    [
        ("errors/codes.py", "from kconsumer.config import parse", "errors must not import from config"),
        ("security/oidc.py", "from kconsumer.consumer import Consumer", "security must not import from consumer"),
        ("config/parsing.py", "from kconsumer._core.network import clock", "config must not import from _core"),
        ("new/room.py", "from kconsumer.config import parse", "new is not among the rooms: add it to ROOMS"),
        ("config/parsing.py", "from kconsumer import KafkaError",
         "kconsumer is for users: import from where the name is defined"),
        ("config/parsing.py", "from kconsumer.error import KafkaError",
         "kconsumer.error is for users: import from where the name is defined"),
    ],
)
def test_an_import_of_a_room_from_above_is_found(tree: Tree, path: str, line: str, text: str) -> None:
    for module in ("__init__", "error", "config/__init__", "consumer/__init__"):
        tree.write(f"src/kconsumer/{module}.py", "")
    tree.write(f"src/kconsumer/{path}", f"{line}\n")
    assert tree.only() == f"src/kconsumer/{path}:1: layer: {text}"


def test_the_face_imports_rooms_and_a_program_imports_any_module(tree: Tree) -> None:
    tree.write("src/kconsumer/__init__.py", "from kconsumer.consumer import Consumer\n")
    tree.write("src/kconsumer/consumer/__init__.py", "import kconsumer._core.network.clock\n")
    tree.write("src/kconsumer/spark/jobs/__init__.py", "from kconsumer.consumer import Consumer\n")
    tree.write("src/kconsumer/spark/jobs/__main__.py", "from kconsumer.cli import main\n")
    tree.write("src/kconsumer/cli/__init__.py", "from kconsumer.spark import jobs\n")
    assert tree.findings() == []


@pytest.mark.parametrize(
    "statement", ["__Pyx_INCREF(x);", "PyGILState_STATE s = PyGILState_Ensure();", '__Pyx_WriteUnraisable("x");']
)
def test_generated_code_that_touches_python_is_found(tree: Tree, statement: str) -> None:
    tree.write("build/cython/src/_core/network/clock.cpp", CPP.replace("  return __pyx_r;", f"  {statement}"))
    assert tree.only().startswith("build/cython/src/_core/network/clock.cpp:5: generated: ")


def test_a_nogil_function_that_is_missing_from_the_generated_code_is_found(tree: Tree) -> None:
    tree.write("build/cython/src/_core/network/clock.cpp", CPP.replace("5Clock_now_us", "5Clock_renamed"))
    assert "src/_core/network/clock.pyx:10: generated: " in tree.only()


def test_missing_and_outdated_generated_code_is_found(tree: Tree) -> None:
    made = tree.root / "build/cython/src/_core/network/clock.cpp"
    os.utime(made, (1, 1))
    assert "is older than its source" in tree.only()
    made.unlink()
    assert any("is missing; build first" in finding for finding in tree.findings())
    assert tree.findings(generated=False) == []


# The loop calls a module's function; a virtual method, which an argument of another call may contain; and the override
# of a class that derives from it. Cython indents functions after one with a handler of C++ exceptions.
LOOP = """struct __pyx_vtabstruct_9kconsumer_5_core_8consumer_8consumer_Two {
  struct __pyx_vtabstruct_9kconsumer_5_core_8consumer_8consumer_One __pyx_base;
};
static void __pyx_f_9kconsumer_5_core_8consumer_8consumer_21ConsumerNetworkThread_run_once(void *s) {
  f(((struct __pyx_vtabstruct_9kconsumer_5_core_8consumer_8consumer_One *)s->a->__pyx_vtab)->work(s->a, __pyx_k_brace));
  __pyx_f_9kconsumer_5_core_8consumer_8consumer_step("{");
  }
  static void __pyx_f_9kconsumer_5_core_8consumer_8consumer_step(char const *text) {
    if (text) {
      /* a brace: { */
    }
    STEP
    }
    static void __pyx_f_9kconsumer_5_core_8consumer_8consumer_3One_work(void *s) {
      ONE
      }
static void __pyx_f_9kconsumer_5_core_8consumer_8consumer_3Two_work(void *s) {
  TWO
}
static void __pyx_f_9kconsumer_5_core_8consumer_8consumer_never_called(void) {
  Py_INCREF(Py_None);
}
"""
THREAD = '"""Owns: the loop.\n\nthread: N. Never: waits.\n"""\n'
CONSUMER = '"""Owns: the consumer. thread: A. Never: waits."""\ninclude "consumer_network_thread.pxi"\n'


@pytest.mark.parametrize(("where", "line", "function"), [
    ("STEP", 12, "step"), ("ONE", 15, "3One_work"), ("TWO", 18, "3Two_work")])
def test_a_function_that_the_network_thread_calls_may_not_touch_python(
    tree: Tree, where: str, line: int, function: str
) -> None:
    tree.write("src/_core/consumer/consumer_network_thread.pxi", THREAD)
    tree.write("src/_core/consumer/consumer.pyx", CONSUMER)
    made = "build/cython/src/_core/consumer/consumer.cpp"
    tree.write(made, LOOP)
    assert tree.findings() == []
    tree.write(made, LOOP.replace(f" {where}\n", " Py_DECREF(x);\n"))
    assert tree.only() == (f"{made}:{line}: reach: Py_DECREF in "
                           f"__pyx_f_9kconsumer_5_core_8consumer_8consumer_{function}, which the network thread calls")


def test_a_loop_that_is_not_in_the_generated_code_is_found(tree: Tree) -> None:
    tree.write("src/_core/consumer/consumer_network_thread.pxi", THREAD)
    tree.write("src/_core/consumer/consumer.pyx", CONSUMER)
    tree.write("build/cython/src/_core/consumer/consumer.cpp", LOOP.replace("run_once", "run_twice"))
    assert "so what it calls was not checked" in tree.only()


@pytest.mark.parametrize(
    "text, what",
    [
        ("/ro" "ot/somewhere", "names a path of one machine"),
        ("cache = '/ho" "me/me/cache'", "names a path of one machine"),
        ("https://mirror.py" "pi.example/simple", "names a package registry"),
        ("pip install --index" "-url x y", "configures a package registry"),
    ],
)
def test_machine_paths_and_registries_are_found(tree: Tree, text: str, what: str) -> None:
    tree.write("README.md", text + "\n")
    assert tree.only() == f"README.md:1: machine: {what}"


def test_the_exit_code_and_the_printed_findings(
    tree: Tree, lint: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main: Callable[[], int] = lint.main
    monkeypatch.setattr(sys, "argv", ["lint", str(tree.root)])
    assert main() == 0
    assert capsys.readouterr().out == "architecture: no findings\n"
    tree.write("README.md", "/ro" "ot/x\n")
    assert main() == 1
    assert capsys.readouterr().out == (
        "README.md:1: machine: names a path of one machine\narchitecture: 1 finding(s)\n"
    )
