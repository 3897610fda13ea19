"""Curves as SVG, written by hand: a few lines on logarithmic time need no library."""

from collections.abc import Mapping, Sequence
from math import log10
from typing import Final

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 40, 40
TICKS_MS: Final = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
SHARES: Final = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)
COLOURS: Final = ("#8a8f98", "#c77d11", "#7a4fb5", "#0b7a4b")
_TEXT: Final = 'font-family="sans-serif" font-size="11" fill="#222"'


def waits(title: str, curves: Mapping[str, Sequence[float]]) -> str:
    """Which share of turns had its first byte within a time, one line a policy.

    Args:
        title: what is shown.
        curves: by the policy's name, equally spaced quantiles of its waits in ms.
    """
    highest = max((max(curve) for curve in curves.values() if curve), default=TICKS_MS[1])
    ticks = [tick for tick in TICKS_MS if tick <= highest] + [highest]
    low, high = log10(TICKS_MS[0]), log10(max(highest, TICKS_MS[1]))

    def x(ms: float) -> float:
        place = (log10(max(ms, TICKS_MS[0])) - low) / (high - low)
        return LEFT + min(max(place, 0.0), 1.0) * (WIDTH - LEFT - RIGHT)

    def y(share: float) -> float:
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="16" {_TEXT} font-weight="bold">{title}</text>',
    ]
    for tick in ticks[:-1]:
        lines.append(_line(x(tick), y(0), x(tick), y(1)))
        lines.append(_text(x(tick), HEIGHT - BOTTOM + 16, _seconds(tick), "middle"))
    for share in SHARES:
        lines.append(_line(LEFT, y(share), WIDTH - RIGHT, y(share)))
        lines.append(_text(LEFT - 6, y(share) + 4, f"{share:.0%}", "end"))
    lines.append(_text(WIDTH - RIGHT, HEIGHT - 8, "time to first byte", "end"))
    for number, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        steps = max(1, len(curve) - 1)
        points = " ".join(f"{x(ms):.1f},{y(place / steps):.1f}" for place, ms in enumerate(curve))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        at = LEFT + number * 168
        lines.append(f'<line x1="{at}" y1="28" x2="{at + 18}" y2="28" stroke="{colour}" stroke-width="3"/>')
        lines.append(_text(at + 22, 32, name, "start"))
    return "\n".join([*lines, "</svg>", ""])


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {_TEXT}>{text}</text>'


def _seconds(ms: float) -> str:
    return f"{ms / 1000:g} s"
