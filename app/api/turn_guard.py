"""The loop guard of a turn: made by its settings, told what the turn cost, read for the line. Used by `run_turn`."""

from collections.abc import Generator
from contextlib import contextmanager

from app.api.turn_start import TurnRequest, TurnStart
from app.clock import Clock
from app.edge.deps import Services
from app.guard.turn_guard import TurnGuard
from app.guard.turn_log import LoggedTurnGuard
from app.rag.turn import TurnStats
from app.upstream.client import endpoint_from


def turn_guard(services: Services, request: TurnRequest, start: TurnStart, stats: TurnStats) -> LoggedTurnGuard:
    """A guard for one turn; where the mode is `off` it judges nothing and keeps nothing."""
    settings = start.settings
    guard = TurnGuard(
        settings.loop_guard_mode, strikes=settings.loop_guard_strikes, stagnation=settings.loop_guard_stagnation
    )
    endpoint = endpoint_from(settings)
    talk = request.ids.turn_id if request.ids.chat_id is None else str(request.ids.chat_id)
    return LoggedTurnGuard(
        guard,
        services.guard_log,
        mode=settings.loop_guard_mode,
        model=lambda: stats.model,
        session=f"{request.user_id}:{talk}",
        environment=lambda: services.guard_backends.environment(services.guard_environment, endpoint, stats.model),
    )


@contextmanager
def guarding(guard: LoggedTurnGuard, stats: TurnStats, clock: Clock) -> Generator[None]:
    """Around the agent's work: whatever its end, the line says how far the guard went and the log what it cost."""
    began = clock.monotonic()
    try:
        yield
    finally:
        stats.guard, stats.guard_detector = guard.outcome, guard.detector
        guard.finish(
            prompt_tokens=stats.prompt_tokens,
            completion_tokens=stats.completion_tokens,
            seconds=clock.monotonic() - began,
        )
