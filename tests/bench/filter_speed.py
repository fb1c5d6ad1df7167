"""What the scaffolding filter costs, and that the cost grows with the text and not faster.

    python -m tests.bench.filter_speed [--out FILE] [input …]

Feeds text in chunks of 30 characters, from 1 kB to 10 MB: prose, prose with citation markers and code, and input made
to be slow. Prints `name value limit`: nanoseconds per character at 1 MB (and, for prose, how many times a loop takes
that only collects the same chunks), the exponent by which the time grows (slope of log time over log size), that of the
last step from 1 MB to 10 MB, and the memory that 1 MB and 10 MB of an endless call take at most.
"""

import argparse
import gc
import itertools
import json
import math
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from app.rag.scaffolding import ScaffoldingFilter

CHUNK = 30
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
AT = 1_000_000
PROSE_LIMIT_NS = 150
GROWTH_LIMIT = 1.1
MEMORY_LIMIT_KB = 700
LEAST_S = 0.5
"""A size is measured again until this much time has passed, at least twice; the shortest counts."""

START = "<|tool_call_start|>"
PROSE = (
    "The heat pump was serviced in March, and the engineer replaced the filter of the outdoor unit. Since then the "
    "flow temperature stays near thirty-five degrees; on cold nights it rises by a few. Nothing else was changed.\n\n"
)
MARKED = (
    "The pump's pressure is 1.6 bar [1], checked in March [2][3]; `docker compose up -d` starts the logger, and "
    "a value < 1.2 means a leak [4].\n\n```yaml\nlist: [a, b]\nif: x < y | z\n```\n\n- see <https://example.org> [1]\n"
)
INPUTS: dict[str, tuple[str, str]] = {
    "prose": ("", PROSE),
    "marked": ("", MARKED),
    "half_starts": ("", "<|tool_call"),
    "endless_call": (START, '[read(path="a"), '),
    "endless_span": (START, PROSE),
    "endless_json": ("<tool_call>", '{"a": ["b", '),
    "starts": ("", START),
    "tags": ("", "<tool_call>"),
    "dsml": ("", "<｜DSML｜"),
    "turn_ends": ("", "<|im_end|> "),
    "brackets": ("", "["),
    "angles": ("", "<"),
    "backticks": ("", "`"),
}
"""Name: what the text begins with, what is repeated behind it."""

Figure = tuple[str, float, str]


def main() -> int:
    """Measures every input; 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("inputs", nargs="*", metavar="input", help=", ".join(INPUTS))
    options = parser.parse_args()
    figures: list[Figure] = []
    for figure in every_figure(options.inputs or list(INPUTS)):
        figures.append(figure)
        print(f"{figure[0]} {figure[1]:.2f} {figure[2]}", flush=True)
    if options.out:
        options.out.write_text(
            json.dumps({name: value for name, value, _ in figures}, indent=2) + "\n", encoding="utf-8"
        )
    return int(any(limit != "-" and value > float(limit) for _, value, limit in figures))


def every_figure(names: list[str]) -> Iterator[Figure]:
    """Those of the inputs named, then the memory."""
    for name in names:
        yield from measured(name)
    for size in SIZES[-2:]:
        yield f"endless_call_{size // 1_000_000}_mb_peak_kb", peak_kb(size), str(MEMORY_LIMIT_KB)


def measured(name: str) -> Iterator[Figure]:
    """The figures of one input."""
    chunks = {size: chunks_of(*INPUTS[name], size) for size in SIZES}
    seconds = {size: best(lambda size=size: filtered(chunks[size])) for size in SIZES}
    plain = name == "prose"
    yield f"{name}_ns_per_char", seconds[AT] / AT * 1e9, str(PROSE_LIMIT_NS) if plain else "-"
    if plain:
        yield f"{name}_times_collecting", seconds[AT] / best(lambda: collected(chunks[AT])), "-"
    yield f"{name}_growth", slope(seconds), str(GROWTH_LIMIT)
    yield f"{name}_growth_last", slope({size: seconds[size] for size in SIZES[-2:]}), "-"


def chunks_of(begin: str, unit: str, size: int) -> list[str]:
    """A text of `size` characters as a model's server would send it."""
    text = (begin + unit * (size // len(unit) + 1))[:size]
    return [text[at : at + CHUNK] for at in range(0, size, CHUNK)]


def filtered(chunks: list[str]) -> None:
    """One reply through a filter, read as `app.rag.llm` reads it; the law of lengths is checked outside the loop."""
    content_filter = ScaffoldingFilter()
    shown = [content_filter.feed(chunk) for chunk in chunks]
    shown.append(content_filter.flush())
    assert sum(map(len, shown)) + content_filter.stripped_chars == sum(map(len, chunks))


def collected(chunks: list[str]) -> None:
    """The named baseline: the same loop without a filter."""
    shown = list(map(str, chunks))
    assert sum(map(len, shown)) == sum(map(len, chunks))


def best(run: Callable[[], None]) -> float:
    """The shortest of several runs, in seconds of processor time; the garbage collector waits meanwhile."""
    times: list[float] = []
    gc.collect()
    gc.disable()
    try:
        while len(times) < 2 or (sum(times) < LEAST_S and len(times) < 200):
            started = time.process_time()
            run()
            times.append(time.process_time() - started)
    finally:
        gc.enable()
    return min(times)


def slope(seconds: dict[int, float]) -> float:
    """The exponent of growth: least squares through the logarithms."""
    points = [(math.log(size), math.log(time)) for size, time in seconds.items()]
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / sum((x - middle_x) ** 2 for x, _ in points)


def peak_kb(size: int) -> float:
    """What a filter holds at most while `size` characters of one call pass, in kB."""
    begin, unit = INPUTS["endless_call"]
    units = itertools.repeat(unit * 2, size // (2 * len(unit)))
    content_filter = ScaffoldingFilter()
    content_filter.feed(begin)
    tracemalloc.start()
    for chunk in units:
        content_filter.feed(chunk)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e3


if __name__ == "__main__":
    sys.exit(main())
