"""Which word on a model's window counts, and what reported tokens teach about it."""

import pytest

from app.upstream.window import LEARNED_S, Learned, Said, Window, window_of

LOADED = Said(32768, kind="Ollama")


@pytest.mark.parametrize(
    ("setting", "said", "expected"),
    [
        (None, Said(), (8192, "default", None)),
        (None, LOADED, (32768, "server", 32768)),
        (None, Said(4096, in_effect=False), (4096, "assumed", None)),
        (16384, LOADED, (16384, "setting", 32768)),
        (65536, LOADED, (65536, "setting", 32768)),
        (16384, Said(), (16384, "setting", None)),
    ],
)
def test_the_setting_wins_then_the_servers_word_then_a_default(
    setting: int | None, said: Said, expected: tuple[int, str, int | None]
) -> None:
    """And the server's own word stands beside the setting, so that a page can say that it has less."""
    window = window_of(setting, said, Learned(), 0.0)
    assert (window.tokens, window.source, window.said) == expected


def test_what_a_server_was_seen_to_read_limits_even_the_setting_for_an_hour() -> None:
    """A prompt that is cut from the front loses its rules: no setting is worth that."""
    learned = Learned()
    learned.cut(read=2048, sent=6100, now=10.0)
    assert window_of(16384, Said(), learned, 11.0) == Window(2048, "learned")
    assert window_of(1024, Said(), learned, 11.0).source == "setting"
    assert window_of(16384, Said(), learned, 10.0 + LEARNED_S).tokens == 16384


def test_the_servers_own_word_explains_a_cut() -> None:
    """Newer Ollamas keep half of the window of what is too long: the window is what they say, not what they kept."""
    learned = Learned()
    learned.cut(read=2050, sent=6100, now=0.0)
    assert window_of(None, Said(4096), learned, 1.0).tokens == 4096
    assert window_of(16384, Said(4096), learned, 1.0) == Window(4096, "learned", 4096)
    assert window_of(None, Said(32768), learned, 1.0).tokens == 2050
    assert window_of(None, Said(4096, in_effect=False), learned, 1.0).tokens == 2050


@pytest.mark.parametrize(
    ("seen", "rate"),
    [
        ((), 1.0),
        ((1.3,), 1.3),
        ((0.8,), 1.0),
        ((0.8, 0.9), 1.0),
        ((0.8, 0.9, 0.85), 0.9),
        ((0.2, 0.3, 0.25), 0.75),
        ((9.0,), 2.0),
        ((1.9, *[1.1] * 8), 1.1),
    ],
)
def test_the_rate_is_bounded_and_errs_on_the_safe_side(seen: tuple[float, ...], rate: float) -> None:
    """One dense prompt counts at once, sparse ones only together; old ones are forgotten."""
    learned = Learned()
    for one in seen:
        learned.counted(one)
    assert learned.rate == rate
