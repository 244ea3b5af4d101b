"""The files that are shipped, built once for all tests of this folder."""

from __future__ import annotations

import pytest

from tests.cluster.shipping import Shipment, built


@pytest.fixture(scope="session")
def shipment(tmp_path_factory: pytest.TempPathFactory) -> Shipment:
    return built(tmp_path_factory.mktemp("shipment"))
