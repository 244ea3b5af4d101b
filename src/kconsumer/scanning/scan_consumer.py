"""The consumer of a scan: without a broker, it ends instead of trying again.

Owns: ScanConsumer. Threads: the reader's thread. Never: handles errors after the first answer of a broker.
"""

from __future__ import annotations

from typing import Any

from kconsumer.consumer import Consumer
from kconsumer.data.cluster_metadata import ClusterMetadata
from kconsumer.errors import KafkaError, KafkaException
from kconsumer.errors.first_contact import FirstContact


class ScanConsumer(Consumer):
    """A consumer whose first call is list_topics().

    That call raises at once when every bootstrap server has failed.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self._contact = FirstContact("check bootstrap.servers")
        super().__init__(*arguments, **more)

    def list_topics(self, *arguments: Any, **more: Any) -> ClusterMetadata:
        try:
            found = super().list_topics(*arguments, **more)
        except KafkaException as error:
            raise self._contact.explained(error) from error
        self._contact.over = True
        return found

    def _on_error(self, error: KafkaError) -> Any:
        handled = super()._on_error(error)
        if not self._closing:
            self._contact.note(error)
        return handled
