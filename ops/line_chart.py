# SPDX-License-Identifier: Apache-2.0
"""Line charts as SVG, one or several panels with the same axes. The same numbers give the same bytes. The colours follow
the reader's choice of a light or a dark page."""

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

# One for each line of a panel: its colour on a light page and on a dark one, and its dashes.
STYLES = (("#1f6feb", "#79b8ff", ""), ("#b35900", "#ffab70", "7 3"), ("#c2185b", "#ff7eb6", "2 3"),
          ("#1a7f37", "#7ee787", "9 3 2 3"), ("#6f42c1", "#d2a8ff", "5 5"), ("#57606a", "#c9d1d9", "1 4"),
          ("#9a6700", "#e3b341", "12 4"))
WIDTH, LEFT, RIGHT, TOP, BOTTOM, PLOT_HEIGHT, LEGEND_ROW = 960, 50, 24, 30, 44, 190, 18


@dataclass(frozen=True)
class Axis:
    label: str
    low: float
    high: float
    is_log: bool = False

    def share(self, value):
        """Return the place of a value, 0 at the lower end and 1 at the upper one."""
        low, high, value = ((math.log(x) for x in (self.low, self.high, value)) if self.is_log
                            else (self.low, self.high, value))
        return (value - low) / (high - low)

    def ticks(self):
        return log_ticks(self.low, self.high) if self.is_log else even_ticks(self.low, self.high)


@dataclass(frozen=True)
class Panel:
    title: str
    lines: dict  # name: [(x, y), ...]; panels of one drawing have the same names
    note: str = ""  # below the title


def log_ticks(low, high):
    """The powers of ten, and 2 and 5 times them if there are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    # The quotient, because 10.0 ** -3 is not the number nearest to 0.001.
    every = [step * 10.0**e if e >= 0 else step / 10.0**-e for e in range(first, last + 1) for step in steps]
    return [tick for tick in every if low <= tick <= high]


def even_ticks(low, high):
    """Up to seven ticks at 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10((high - low) / 6))
    step = next(s * power for s in (1, 2, 5, 10) if s * power * 6 >= high - low)
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def place(value):
    return f"{value:.1f}"


class Frame:
    """Where a panel lies in the drawing."""

    def __init__(self, x, y, left, top, width):
        self.x, self.y, self.left, self.top, self.width = x, y, left, top, width

    def at_x(self, value):
        return self.left + self.x.share(value) * self.width

    def at_y(self, value):
        return self.top + (1 - self.y.share(value)) * PLOT_HEIGHT

    def grid(self):
        bottom, right = self.top + PLOT_HEIGHT, self.left + self.width
        for tick in self.x.ticks():
            at = place(self.at_x(tick))
            yield f'<path class="grid" d="M{at} {place(self.top)}V{place(bottom)}"/>'
            yield f'<text x="{at}" y="{place(bottom + 15)}" text-anchor="middle">{number(tick)}</text>'
        for tick in self.y.ticks():
            at = self.at_y(tick)
            yield f'<path class="grid" d="M{place(self.left)} {place(at)}H{place(right)}"/>'
            yield f'<text x="{place(self.left - 5)}" y="{place(at + 4)}" text-anchor="end">{number(tick)}</text>'
        middle = place(self.left + self.width / 2)
        yield f'<text x="{middle}" y="{place(bottom + 32)}" text-anchor="middle">{escape(self.x.label)}</text>'

    def line(self, points, style):
        """Points outside the axes are at their edge."""
        inside = [(min(max(x, self.x.low), self.x.high), min(max(y, self.y.low), self.y.high)) for x, y in points]
        path = " ".join(f"{place(self.at_x(x))},{place(self.at_y(y))}" for x, y in inside)
        return f'<polyline class="line s{style}" points="{path}"/>'

    def draw(self, panel):
        yield f'<text class="title" x="{place(self.left)}" y="{place(self.top - 16)}">{escape(panel.title)}</text>'
        yield f'<text x="{place(self.left)}" y="{place(self.top - 4)}">{escape(panel.note)}</text>'
        yield from self.grid()
        for style, points in enumerate(panel.lines.values()):
            yield self.line(points, style)


def rules(column):
    return "".join(f".s{i}{{stroke:{style[column]}}}" for i, style in enumerate(STYLES))


def style_sheet():
    dashes = "".join(f".s{i}{{stroke-dasharray:{dash}}}" for i, (_, _, dash) in enumerate(STYLES) if dash)
    return ("<style>text{fill:#1f2328}.page{fill:#fff}.grid{stroke:#d0d7de}.line{fill:none;stroke-width:2}"
            f".title{{font-weight:bold}}{dashes}{rules(0)}"
            "@media (prefers-color-scheme: dark){text{fill:#e6edf3}.page{fill:#0d1117}.grid{stroke:#30363d}"
            f"{rules(1)}}}</style>")


def legend(label, names):
    """Return (elements, number of rows): what the y axes show, then the lines."""
    parts, left, row = [f'<text class="title" x="{LEFT}" y="17">{escape(label)}</text>'], LEFT + 7 * len(label) + 22, 0
    for style, name in enumerate(names):
        width = 56 + 7 * len(name)
        if left + width > WIDTH:
            left, row = LEFT, row + 1
        y = 17 + row * LEGEND_ROW
        parts.append(f'<path class="line s{style}" d="M{left} {y - 4}h28"/>')
        parts.append(f'<text x="{left + 34}" y="{y}">{escape(name)}</text>')
        left += width
    return parts, row + 1


def draw(title, panels, x, y, columns):
    """Return the SVG of panels, row by row. y.label is said once, before the names of the lines."""
    names, n_legend_rows = legend(y.label, panels[0].lines)
    first, row_height = 8 + n_legend_rows * LEGEND_ROW, TOP + PLOT_HEIGHT + BOTTOM
    height = first + -(-len(panels) // columns) * row_height
    width = WIDTH / columns - LEFT - RIGHT
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
             f'font-size="11" role="img">', f"<title>{escape(title)}</title>", style_sheet(),
             f'<rect class="page" width="{WIDTH}" height="{height}"/>', *names]
    for i, panel in enumerate(panels):
        frame = Frame(x, y, LEFT + i % columns * WIDTH / columns, first + TOP + i // columns * row_height, width)
        parts += frame.draw(panel)
    return "\n".join([*parts, "</svg>", ""])
