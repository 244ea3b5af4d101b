"""Owns: creating and deleting topics, with confluent_kafka if installed, else with Kafka's TopicCommand.

Threads: any. Never: keeps a connection.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any

from kconsumer.testing._artifacts import QUICK_START, Release, class_path, jdk_program
from kconsumer.testing._errors import ClusterError, MissingToolError
from kconsumer.testing._records import confluent

_SECONDS = 30.0


class Admin:
    """Topic operations on one cluster."""

    def __init__(self, bootstrap_servers: str, version: str, zookeeper: str | None) -> None:
        self._bootstrap = bootstrap_servers
        self._release = Release(version)
        self._zookeeper = zookeeper

    def create_topic(self, name: str, partitions: int, replication: int, config: Mapping[str, str]) -> None:
        """Create a topic. Raises ClusterError with the broker's reason."""
        admin = self._confluent_admin()
        if admin is None:
            options = [text for pair in config.items() for text in ("--config", "=".join(pair))]
            self._topic_command("--create", "--topic", name, "--partitions", str(partitions), "--replication-factor",
                                str(replication), *options)
            return
        topic = admin.NewTopic(name, partitions, replication, config=dict(config))
        client = self._client(admin)  # keep it until the result arrives: garbage collection cancels the request
        self._result(f"create topic {name}", client.create_topics([topic], operation_timeout=_SECONDS)[name])

    def delete_topic(self, name: str) -> None:
        """Delete a topic. Raises ClusterError with the broker's reason."""
        admin = self._confluent_admin()
        if admin is None:
            self._topic_command("--delete", "--topic", name)
            return
        client = self._client(admin)
        self._result(f"delete topic {name}", client.delete_topics([name], operation_timeout=_SECONDS)[name])

    def _confluent_admin(self) -> Any:
        """Return the module; None if it is missing or too new for the broker."""
        if self._release.numbers < (0, 10, 2):
            return None
        try:
            return confluent("confluent_kafka.admin")
        except MissingToolError:
            return None

    def _client(self, admin: Any) -> Any:
        return admin.AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 4})

    def _result(self, what: str, future: Any) -> None:
        error = confluent("confluent_kafka").KafkaException
        try:
            future.result(_SECONDS + 5)
        except error as failure:
            raise ClusterError(f"cannot {what}: {failure}") from failure

    def _topic_command(self, *options: str) -> None:
        moved = self._release.numbers >= (3, 7)  # from the core module to the tools module
        command = "org.apache.kafka.tools.TopicCommand" if moved else "kafka.admin.TopicCommand"
        where = ["--bootstrap-server", self._bootstrap]
        if self._release.numbers < (2, 2):
            if self._zookeeper is None:
                raise MissingToolError(
                    f"Kafka {self._release.text} has no topic command that works over the network: "
                    "pip install 'kconsumer[testing]' installs confluent-kafka, which can"
                )
            where = ["--zookeeper", self._zookeeper]
        java = jdk_program("java", self._release.java)
        line = [java, "-Xmx256m", QUICK_START, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
                "-cp", class_path(self._release.text), command, *where, *options]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=_SECONDS + 30,
                              stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise ClusterError(f"{command} {' '.join(options)} failed:\n{done.stdout}{done.stderr}".rstrip())
