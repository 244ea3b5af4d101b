"""What the collections between tasks look at."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace

import pytest

from kconsumer.spark import garbage


@pytest.fixture(autouse=True)
def melt(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(garbage, "_settled", False)
    assert gc.get_freeze_count() == 0
    yield
    gc.unfreeze()


def main_is(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__spec__=SimpleNamespace(name=name)))


def test_a_worker_settles_once(monkeypatch: pytest.MonkeyPatch):
    main_is(monkeypatch, "pyspark.daemon")
    garbage.settle()
    count = gc.get_freeze_count()
    assert count > 1000
    kept = [[] for _ in range(100)]
    garbage.settle()
    assert gc.get_freeze_count() == count
    assert all(gc.is_tracked(one) for one in kept)


def test_no_other_process_does(monkeypatch: pytest.MonkeyPatch):
    main_is(monkeypatch, "pytest.__main__")
    garbage.settle()
    assert gc.get_freeze_count() == 0
