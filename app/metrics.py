"""The numbers of this process for Prometheus: what was counted since its start, and what is so now.

Owns names, labels and buckets; who counts calls a method at the moment it writes its log line. Labels hold words of
Docent's own only, never a name of a model, user, document or file, so that there are always few of them. Made once by
`create_app`, with a registry of its own; `GET /metrics` shows it. docs/operating.md explains each, and a test keeps the
two equal.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.registry import Collector

OUTCOMES = ("ok", "error", "malformed", "stopped", "interrupted")
MODES = ("grounded", "deflected", "none")
PROXY_OUTCOMES = ("ok", "error", "refused", "cancelled")
DOCUMENT_OUTCOMES = ("indexed", "failed")

RETRIEVAL_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
FIRST_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
TURN_S = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
DOCUMENT_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


@dataclass(frozen=True, slots=True)
class Now:
    """What is so at this moment. `guard_lost` is by reason, decisions and scans; `ingest_waiting` None where the
    database could not say."""

    active_turns: int = 0
    guard_queue: int = 0
    guard_lost: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    ingest_waiting: int | None = None


class Metrics:
    """The counters. Safe from any thread."""

    def __init__(self, *, version: str = "", revision: str = "") -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        Info("docent_build", "What runs.", registry=registry).info({"version": version, "revision": revision})
        self._turns = Counter("docent_turns", "Turns that ended.", ("outcome", "mode"), registry=registry)
        self._rounds = Counter("docent_turn_rounds", "Requests of turns to the model.", registry=registry)
        self._retries = Counter("docent_turn_retries", "Tries repeated before anything came.", registry=registry)
        self._tool_calls = Counter("docent_turn_tool_calls", "Tool calls that ran.", registry=registry)
        self._recovered = Counter("docent_turn_recoveries", "Replies mended by asking again.", registry=registry)
        self._stripped = Counter("docent_scaffold_stripped_chars", "Leaked tool syntax removed.", registry=registry)
        self._retrieval = _seconds("docent_turn_retrieval", "Search and decision.", RETRIEVAL_S, registry)
        self._first = _seconds("docent_turn_first_text", "From question to first text.", FIRST_S, registry)
        self._total = _seconds("docent_turn", "From question to end.", TURN_S, registry)
        self._active = Gauge("docent_turns_active", "Turns that run.", registry=registry)
        scan, trip = ("path", "mode"), ("detector", "path", "action")
        self._scans = Counter("docent_guard_scans", "Requests the loop guard looked at.", scan, registry=registry)
        self._trips = Counter("docent_guard_trips", "Decisions of the loop guard.", trip, registry=registry)
        self._guard_lost = _Lost()
        registry.register(self._guard_lost)
        self._guard_queue = Gauge("docent_guard_log_queue", "Decisions that wait for its log.", registry=registry)
        self._proxied = Counter("docent_proxy_requests", "Requests passed on by /v1.", ("outcome",), registry=registry)
        self._documents = Counter("docent_ingest_documents", "Documents read.", ("outcome",), registry=registry)
        self._reading = _seconds("docent_ingest_document", "From taking up to findable.", DOCUMENT_S, registry)
        self._waiting = Gauge("docent_ingest_queue", "Jobs that wait or run.", registry=registry)
        self._children: dict[tuple[str, ...], Counter] = {}
        """Of the two that are counted within a request: asking for a child by its labels costs as much as counting."""
        self._begin_at_zero()

    def turn_ended(self, line: Mapping[str, Any]) -> None:
        """One turn, by the fields of its log line; a duration of 0 is none."""
        self._turns.labels(line["outcome"] or "error", line["mode"] or "none").inc()
        for counter, name in (
            (self._rounds, "rounds"),
            (self._retries, "retries"),
            (self._tool_calls, "tool_calls"),
            (self._recovered, "recovered"),
            (self._stripped, "scaffold_stripped"),
        ):
            counter.inc(line[name])
        for histogram, name in (
            (self._retrieval, "retrieval_ms"),
            (self._first, "first_ms"),
            (self._total, "total_ms"),
        ):
            if line[name]:
                histogram.observe(line[name] / 1000)

    def guard_scanned(self, path: str, mode: str) -> None:
        """One request or round that the loop guard looked at."""
        child = self._children.get((path, mode))
        if child is None:
            child = self._children[path, mode] = self._scans.labels(path, mode)
        child.inc()

    def guard_tripped(self, detector: str, path: str, action: str) -> None:
        """One decision of the loop guard, one that was only observed included."""
        child = self._children.get((detector, path, action))
        if child is None:
            child = self._children[detector, path, action] = self._trips.labels(detector, path, action)
        child.inc()

    def proxy_ended(self, outcome: str, stripped: int = 0) -> None:
        """One request passed on by `/v1`, with its log line; `stripped` characters were taken out of the answer."""
        self._proxied.labels(outcome).inc()
        self._stripped.inc(stripped)

    def document_read(self, outcome: str, ms: int) -> None:
        """One document that can be found, or failed, with its log line."""
        self._documents.labels(outcome).inc()
        self._reading.observe(ms / 1000)

    def exposition(self, now: Now) -> bytes:
        """All of it in Prometheus' text form."""
        self._active.set(now.active_turns)
        self._guard_queue.set(now.guard_queue)
        self._guard_lost.counts = now.guard_lost
        self._waiting.set(float("nan") if now.ingest_waiting is None else now.ingest_waiting)
        return generate_latest(self.registry)

    def _begin_at_zero(self) -> None:
        """A series that begins with its first event shows no increase for it."""
        for outcome in OUTCOMES:
            for mode in MODES:
                self._turns.labels(outcome, mode)
        for outcome in PROXY_OUTCOMES:
            self._proxied.labels(outcome)
        for outcome in DOCUMENT_OUTCOMES:
            self._documents.labels(outcome)


class _Lost(Collector):
    """What the loop guard's log lost, which its writer counts itself."""

    def __init__(self) -> None:
        self.counts: Mapping[str, tuple[int, int]] = {}

    def collect(self) -> Iterable[CounterMetricFamily]:
        family = CounterMetricFamily("docent_guard_log_lost", "What its log lost.", labels=("reason", "kind"))
        for reason, (trips, scans) in self.counts.items():
            family.add_metric((reason, "trip"), trips)
            family.add_metric((reason, "scan"), scans)
        yield family


def _seconds(name: str, text: str, buckets: tuple[float, ...], registry: CollectorRegistry) -> Histogram:
    return Histogram(f"{name}_seconds", text, buckets=buckets, registry=registry)
