"""A SIGKILL at steps of a change of types: `make soak` tries each step, and these tests a few of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from evolution_kills import CHANGES, Scene, kills
from one_table import FORMATS

from kconsumer.testing import EmbeddedCluster

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytestmark = [pytest.mark.embedded, pytest.mark.timeout(600)]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("change", CHANGES)
def test_each_record_is_there_once_with_its_value(cluster: EmbeddedCluster, tmp_path: Path, kind: str, change: str):
    assert kills(Scene(cluster, tmp_path, kind, change), every=40) > 1
