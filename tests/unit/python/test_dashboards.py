"""docs/dashboards: the collector has all names and labels that they use, and each alert fires in its fault only."""

import json
import re
from pathlib import Path

import promql_parser as promql
import promql_rules
import pytest
import yaml
from prometheus_client import CollectorRegistry
from test_telemetry import Fake, facts

from kconsumer.telemetry.consumers import Consumers
from kconsumer.telemetry.metrics import METRICS, Kind
from kconsumer.telemetry.partitions import REASONS, Progress
from kconsumer.telemetry.prometheus import Collector

DASHBOARDS = Path(__file__).parents[3] / "docs/dashboards"
RULES = {rule["alert"]: rule
         for group in yaml.safe_load((DASHBOARDS / "alerts.yml").read_text())["groups"] for rule in group["rules"]}
BOARD = json.loads((DASHBOARDS / "grafana.json").read_text())
SCRAPE_S = 15
SCENE_S = 1200


class Scene:
    """A healthy member that is scraped; a fault changes it before each scrape."""

    def __init__(self):
        self.at = 0.0
        self.source = Consumers(lambda: Progress(lambda: self.at, lambda: self.at))
        self.consumer = Fake(assigned_partitions=2, session_age_ms=900, last_rebalance_ago_ms=1000)
        self.source.opened(self.consumer, "c", "g")
        self.registry = CollectorRegistry()
        Collector(source=self.source).register(self.registry)

    def scrape(self):
        return self.at, {(s.name, tuple(sorted(s.labels.items()))): s.value
                         for family in self.registry.collect() for s in family.samples}

    def run(self, fault):
        """The scrapes of twenty minutes."""
        scrapes = []
        for turn in range(SCENE_S // SCRAPE_S):
            self.at = float(turn * SCRAPE_S)
            at_ms = int(self.at * 1000)
            self.consumer.metrics["fetches_total"] = turn
            self.consumer.metrics["rebalance_latency_buckets"] = (1,) + (0,) * 18
            # One partition is busy, the other one is paused and has records.
            self.consumer.partitions = [facts(0, turn * 100, turn * 100 + 50, next_ms=at_ms - 2000),
                                        facts(1, 5, 9, next_ms=at_ms - 4000, paused=True)]
            fault(self.consumer, turn, at_ms)
            scrapes.append(self.scrape())
        return scrapes


def quiet(consumer, turn, at_ms):
    pass


def stuck(consumer, turn, at_ms):
    consumer.partitions[0] = facts(0, 7, 50, next_ms=at_ms - 2000, buffered=43)


def late(consumer, turn, at_ms):
    consumer.partitions[0] = facts(0, turn * 10, turn * 1000 + 50, next_ms=at_ms - 400_000)


def cut_off(consumer, turn, at_ms):
    consumer.metrics["session_age_ms"] = 900 + turn * 1000


def storm(consumer, turn, at_ms):
    consumer.metrics["rebalance_latency_buckets"] = (1 + turn // 4,) + (0,) * 18


def corrupt(consumer, turn, at_ms):
    consumer.metrics["bad_batches_total"] = 1 if turn > 10 else 0


FAULTS = {"KafkaPartitionStalled": stuck, "KafkaConsumerLate": late, "KafkaConsumerWithoutCoordinator": cut_off,
          "KafkaConsumerRebalances": storm, "KafkaConsumerUnreadableBatches": corrupt}


def seconds(text):
    return int(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


def alerts(fault):
    scrapes = Scene().run(fault)
    return {name for name, rule in RULES.items() if promql_rules.fired(rule["expr"], seconds(rule["for"]), scrapes)}


def test_no_alert_fires_in_the_quiet_run():
    assert alerts(quiet) == set()


def test_there_is_a_fault_for_each_alert():
    assert set(FAULTS) == set(RULES)


@pytest.mark.parametrize("alert", FAULTS)
def test_an_alert_fires_in_its_fault_and_no_other_one_does(alert):
    assert alerts(FAULTS[alert]) == {alert}


# -- names and labels


def expressions():
    """(where, expression without Grafana's variables)."""
    for name, rule in RULES.items():
        yield name, rule["expr"]
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m")
    for variable in BOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], re.fullmatch(r"label_values\((.*), \w+\)", variable["query"]["query"])[1]


@pytest.fixture(scope="module")
def labels_of():
    """The labels of each sample's name, in a scrape that has all of them."""
    scene = Scene()
    scene.scrape()
    scene.consumer.metrics |= {m.name: (1,) * 19 if m.kind is Kind.HISTOGRAM else 1 for m in METRICS}
    scene.consumer.partitions = [facts(buffered=1)]
    scene.scrape()
    scene.at = 60.0
    return {name: {label for label, _ in labels} for name, labels in scene.scrape()[1]}


@pytest.mark.parametrize("where, expression", list(expressions()))
def test_the_collector_has_the_names_and_labels_of_each_expression(where, expression, labels_of):
    node = promql.parse(expression)
    selectors = list(promql_rules.names(node))
    assert selectors
    for selector in selectors:
        assert selector.name in labels_of, where
        assert {matcher.name for matcher in selector.matchers.matchers} <= labels_of[selector.name], where
    grouped = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", expression))))
    assert grouped <= set().union(*(labels_of[selector.name] for selector in selectors)), where


def test_legends_and_annotations_name_labels_that_the_expression_keeps():
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            grouped = re.search(r"by \(([^)]*)\)", target["expr"])
            for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                assert grouped is None or label in grouped[1], panel["title"]
    for name, rule in RULES.items():
        grouped = re.search(r"by \(([^)]*)\)", rule["expr"])[1]
        for label in re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]):
            assert label in grouped, name


def test_reasons_in_the_rules_are_reasons_of_the_collector():
    for reason in re.findall(r'reason!?="([^"]*)"', " ".join(rule["expr"] for rule in RULES.values())):
        assert reason in REASONS


def test_panels_and_variables_of_the_dashboard_are_complete():
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(ids) == len(set(ids))
    names = {variable["name"] for variable in BOARD["templating"]["list"]}
    used = set(re.findall(r"\$(\w+)", json.dumps(BOARD))) - {"__rate_interval", "__all"}
    assert used <= names
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in BOARD["panels"])
