"""Axes, lines and numbers written as SVG, for pictures of which a page has many.

A page shows a release in several readings, each with its own pictures. matplotlib needs about a second to
start and a quarter of a second for each picture; text needs a few milliseconds.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sfumato.domain import FloatArray

WIDTH = 374.4  # of a picture in points, as wide as those of matplotlib on the page
LINE = 12.0  # height of a line of text, in points
_LETTER = 5.6  # width of a letter, in points: a digit of the widest usual font
_SIZE = 10.0  # of letters
_TICK = 3.5  # length of a tick
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
Anchor = Literal["start", "middle", "end"]


class Tick(NamedTuple):
    """A place on an axis, in points, and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high`, drawn from the point `start` to the point `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The point of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    @property
    def scale(self) -> float:
        """Points for one unit."""
        return (self.end - self.start) / (self.high - self.low)


@dataclass(frozen=True)
class Sheet:
    """A picture with an axis below or above it, and one on its left, which runs from the bottom up."""

    x: Axis
    y: Axis

    def point(self, place: FloatArray) -> tuple[float, float]:
        """Where a place is drawn."""
        return self.x.at(float(place[0])), self.y.at(float(place[1]))

    def left(self, ticks: Sequence[Tick], name: str) -> str:
        """The axis on the left."""
        edge = self.x.start
        marks = "".join(f"M{edge:.5g} {tick.at:.5g}h{-_TICK}" for tick in ticks)
        texts = [text(tick.text, edge - 6, tick.at + 0.35 * _SIZE, "end") for tick in ticks]
        middle = (self.y.start + self.y.end) / 2
        away = edge - 6 - room(ticks) - 6
        label = text(name, away, middle, "middle", turn=-90)
        return f'<path d="{marks}" stroke="currentColor" stroke-width="0.8"/>{"".join(texts)}{label}'

    def below(self, ticks: Sequence[Tick], name: str) -> str:
        """The axis below."""
        edge = self.y.start
        marks = "".join(f"M{tick.at:.5g} {edge:.5g}v{_TICK}" for tick in ticks)
        texts = [text(tick.text, tick.at, edge + 6 + 0.7 * _SIZE, "middle") for tick in ticks]
        label = text(name, (self.x.start + self.x.end) / 2, edge + 6 + 2 * LINE, "middle")
        return f'<path d="{marks}" stroke="currentColor" stroke-width="0.8"/>{"".join(texts)}{label}'

    def frame(self) -> str:
        """A rectangle around everything."""
        width, height = self.x.end - self.x.start, self.y.start - self.y.end
        return (
            f'<rect x="{self.x.start:.5g}" y="{self.y.end:.5g}" width="{width:.5g}" height="{height:.5g}" '
            'fill="none" stroke="currentColor" stroke-width="0.8"/>'
        )


def text(
    words: str,
    x: float,
    y: float,
    anchor: Anchor = "start",
    *,
    size: float = _SIZE,
    turn: float = 0.0,
    look: str = 'fill="currentColor"',
) -> str:
    """Write words whose baseline is at a point."""
    turned = f' transform="rotate({turn:g} {x:.5g} {y:.5g})"' if turn else ""
    place = f'x="{x:.5g}" y="{y:.5g}" font-size="{size:.3g}" text-anchor="{anchor}"{turned}'
    return f"<text {place} {look}>{html.escape(words)}</text>"


def number(label: int, x: float, y: float, shrink: float) -> str:
    """Write a number that is legible on any background, as `plot.style.number` does."""
    size = _SIZE * max(shrink, 0.6)
    look = (
        'fill="white" stroke="#222222" stroke-width="2.6" stroke-linejoin="round" paint-order="stroke" '
        'font-weight="bold"'
    )
    return text(str(label), x, y + 0.35 * size, "middle", size=size, look=look)


def room(ticks: Iterable[Tick]) -> float:
    """Width of the longest text."""
    return _LETTER * max((len(tick.text) for tick in ticks), default=0)


def width_of(words: str) -> float:
    """Width of words, about."""
    return _LETTER * len(words)


def round_ticks(low: float, high: float, most: int) -> tuple[list[float], int]:
    """Round values from `low` to `high`, at most so many steps, and the digits that they need."""
    rough = (high - low) / most
    power = math.floor(math.log10(rough))
    step = next(step for step in _STEPS if step * 10.0**power >= rough * (1 - 1e-9)) * 10.0**power
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step)) + (f"{step:.1e}"[2] != "0"))
    return [i * step for i in range(first, last + 1)], digits
