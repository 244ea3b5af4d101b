"""Types of the functions that Consumer.metrics() and Consumer.lag() call; see metrics.pyx."""

from collections.abc import Iterable

from kconsumer._core.consumer.consumer_core import ConsumerCore
from kconsumer._core.consumer.group_core import GroupCore

def core_metrics(core: ConsumerCore) -> dict[str, int | float]: ...
def group_metrics(core: GroupCore) -> dict[str, int]: ...
def ends(
    core: ConsumerCore, partitions: Iterable[tuple[str, int]] | None = None
) -> list[tuple[str, int, int, int, bool]]: ...
