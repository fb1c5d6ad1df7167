"""docs/operating.md explains every metric with its labels, and no other."""

import re

from prometheus_client.parser import text_string_to_metric_families

from app.metrics import Metrics, Now
from app.rag.turn import TurnStats
from app.settings import ROOT


def used() -> Metrics:
    """A registry in which every label has been used once."""
    metrics = Metrics(version="1", revision="2")
    metrics.turn_ended(TurnStats(turn="t", chat=1, user=1, retrieval_ms=5, first_ms=9, total_ms=20).line_fields())
    metrics.guard_scanned("agent", "note")
    metrics.guard_tripped("loop", "agent", "final")
    metrics.proxy_ended("ok", 7)
    metrics.document_read("indexed", 30)
    return metrics


def test_the_page_and_the_registry_name_the_same_metrics_and_labels() -> None:
    """A new metric without a sentence, a sentence without a metric, or another label fails."""
    text = used().exposition(Now(guard_lost={"queue_full": (1, 2)})).decode()
    shown: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        if not name.endswith("_created"):
            shown[name] = {label for sample in family.samples for label in sample.labels} - {"le"}
    page = (ROOT / "docs/operating.md").read_text(encoding="utf-8").split("\n## Metrics\n")[1].split("\n## ")[0]
    told: dict[str, set[str]] = {}
    for names, labels in re.findall(r"^\| ([a-z_, ]+) \| ([a-z, ]*?) ?\| ", page, re.MULTILINE)[1:]:
        for name in names.split(", "):
            told[name] = set(filter(None, labels.split(", ")))
    assert told == shown


def test_what_is_counted_is_what_the_line_says() -> None:
    """Sums add up, durations are seconds, and one that did not happen is not observed."""
    metrics = Metrics()
    stats = TurnStats("t", 1, 1, mode="grounded", outcome="ok", rounds=3, tool_calls=2, retries=1, recovered=True)
    stats.scaffold_stripped, stats.retrieval_ms, stats.total_ms = 40, 25, 1500
    metrics.turn_ended(stats.line_fields())
    metrics.turn_ended(TurnStats("t", 1, 1).line_fields())
    metrics.proxy_ended("cancelled", 2)
    value = metrics.registry.get_sample_value
    assert value("docent_turns_total", {"outcome": "ok", "mode": "grounded"}) == 1
    assert value("docent_turns_total", {"outcome": "error", "mode": "none"}) == 1
    assert value("docent_turns_total", {"outcome": "stopped", "mode": "deflected"}) == 0
    assert value("docent_turn_rounds_total") == 3
    assert value("docent_turn_tool_calls_total") == 2
    assert value("docent_turn_retries_total") == 1
    assert value("docent_turn_recoveries_total") == 1
    assert value("docent_scaffold_stripped_chars_total") == 42
    assert value("docent_turn_seconds_sum") == 1.5
    assert value("docent_turn_retrieval_seconds_bucket", {"le": "0.025"}) == 1
    assert value("docent_turn_first_text_seconds_count") == 0
    assert value("docent_proxy_requests_total", {"outcome": "cancelled"}) == 1


def test_two_registries_count_apart() -> None:
    """Nothing is kept in the module: one application's counts are its own."""
    one, other = Metrics(), Metrics()
    one.guard_scanned("proxy", "note")
    labels = {"path": "proxy", "mode": "note"}
    assert one.registry.get_sample_value("docent_guard_scans_total", labels) == 1
    assert other.registry.get_sample_value("docent_guard_scans_total", labels) is None
