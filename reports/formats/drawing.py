"""Small inline SVGs by matplotlib, recoloured so that the page's style sheet paints them.

Only this module imports matplotlib, and only when a figure is drawn. The same data give the same bytes: no dates, no
random names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from html import escape
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes

#: Stand-ins that matplotlib paints with, and the style sheet's colours that replace them.
COLOURS = {
    "ink": "#010203",
    "muted": "#020304",
    "line": "#030405",
    "bad": "#040506",
    "left": "#050607",
    "right": "#060708",
    "good": "#070809",
}
#: What replaces them in a file of its own, on a white ground.
ON_WHITE = {
    "ink": "#1c1c1c",
    "muted": "#5c5c5c",
    "line": "#c8c8c8",
    "bad": "#b3261e",
    "left": "#1f5fa8",
    "right": "#b06000",
    "good": "#1b7f4b",
}
INK, MUTED, LINE, RED, LEFT, RIGHT, GREEN = COLOURS.values()
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "overclaim",
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.facecolor": "none",
    "axes.unicode_minus": True,
    "figure.facecolor": "none",
    "lines.linewidth": 1.6,
    "text.color": INK,
    "path.simplify": True,
}
_SIZE = (3.5, 2.2)  # inches of 72 units
_PLACE = (0.175, 0.195, 0.775, 0.765)  # of the axes: left, bottom, width and height, in shares of the size


@cache
def available() -> bool:
    """Tell whether matplotlib is installed and works; without it a report has no figures."""
    try:
        matplotlib_library()
    except (ImportError, OSError):  # it wants a folder to write to, in the user's home or among temporary files
        return False
    return True


def matplotlib_library() -> ModuleType:
    """Return matplotlib, imported with what a figure needs; raise ImportError where it is missing."""
    import matplotlib
    import matplotlib.figure
    import matplotlib.ticker

    return matplotlib


def draw(paint: Callable[[Axes], None], x: str, y: str) -> str:
    """Return the SVG text of one pair of axes."""
    from io import StringIO

    library = matplotlib_library()
    with library.rc_context(_STYLE):
        figure = library.figure.Figure(figsize=_SIZE)
        axes = figure.add_axes(_PLACE)
        axes.set_axis_off()
        paint(axes)
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        scales = _scales(axes, x, y)
    return re.sub(r'(<g id="axes_1">)', lambda match: match[1] + scales, out.getvalue(), count=1)


def _scales(axes: Axes, x: str, y: str) -> str:
    """Return the lines, numbers and names of both axes: matplotlib's own take two thirds of a figure's time."""
    width, height = (72 * inches for inches in _SIZE)
    left, bottom, wide, tall = _PLACE
    west, east, south, north = left * width, (left + wide) * width, (1 - bottom) * height, (1 - bottom - tall) * height
    parts = [_text(x, (west + east) / 2, south + 23.3), _text(y, 8.7, (south + north) / 2, turned=True)]
    parts += [_line(west, south, east, south, width=0.8), _line(west, south, west, north, width=0.8)]
    for axis, low, high in ((axes.xaxis, *axes.get_xlim()), (axes.yaxis, *axes.get_ylim())):
        ticks = [tick for tick in axis.get_majorticklocs() if min(low, high) <= tick <= max(low, high)]
        labels = axis.get_major_formatter().format_ticks(ticks)
        places = axis.get_transform().transform([low, *ticks, high])
        for label, place in zip(labels, places[1:-1], strict=True):
            share = (place - places[0]) / (places[-1] - places[0])
            if axis is axes.xaxis:
                pos = west + share * (east - west)
                parts += [_line(pos, south, pos, north), _text(label, pos, south + 10.3, colour=MUTED)]
            else:
                pos = south + share * (north - south)
                parts += [_line(west, pos, east, pos), _text(label, west - 3.5, pos + 3.4, colour=MUTED, anchor="end")]
        if offset := axis.get_major_formatter().get_offset():
            over_x = axis is axes.xaxis
            place = (east, south + 23.3) if over_x else (west + 3.5, north + 6.6)
            parts.append(_text(offset, *place, anchor="end" if over_x else "start"))
    return "".join(parts)


def per_cent(value: float, _: object = None) -> str:
    """Return a share in per cent: the ticks of an axis of shares."""
    return f"{100 * value:g}%"


def _line(x1: float, y1: float, x2: float, y2: float, *, width: float = 0.4) -> str:
    style = f"stroke: {LINE}; stroke-opacity: {0.6 if width < 0.5 else 1}; stroke-width: {width}"
    return f'\n<path d="M {x1:.2f} {y1:.2f} L {x2:.2f} {y2:.2f}" style="{style}"/>'


def _text(text: str, x: float, y: float, *, colour: str = INK, anchor: str = "middle", turned: bool = False) -> str:
    turn = f' transform="rotate(-90 {x:.2f} {y:.2f})"' if turned else ""
    style = f"font-size: 9px; text-anchor: {anchor}; fill: {colour}"
    return f'\n<text style="{style}" x="{x:.2f}" y="{y:.2f}"{turn}>{escape(text)}</text>'


def standalone(svg: str, title: str, alternative: str) -> str:
    """Return matplotlib's SVG as a file of its own, on a white ground, with a title that readers of screens say."""
    for name, stand_in in COLOURS.items():
        svg = svg.replace(stand_in, ON_WHITE[name])
    svg = svg.replace("<svg ", '<svg font-family="DejaVu Sans, sans-serif" ', 1)
    start = svg.index(">", svg.index("<svg")) + 1
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return f"{svg[:start]}\n<title>{escape(f'{title}: {alternative}')}</title>\n{ground}{svg[start:]}"


def inline(svg: str, prefix: str, title: str, alternative: str) -> str:
    """Return matplotlib's SVG as part of a page: the page's colours and fonts, names that clash with no other's."""
    body = svg[svg.index("<svg") :]
    box = re.search(r'viewBox="([^"]+)"', body)
    assert box is not None
    body = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", body, flags=re.DOTALL)
    body = body[body.index(">") + 1 :]
    targets = {a or b for a, b in re.findall(r'url\(#([^)]+)\)|xlink:href="#([^"]+)"', body)}
    body = re.sub(r' id="([^"]+)"', lambda m: f' id="{prefix}-{m[1]}"' if m[1] in targets else "", body)
    body = body.replace("url(#", f"url(#{prefix}-").replace('xlink:href="#', f'href="#{prefix}-')
    body = re.sub(r"font: ([\d.]+)px [^;\"]+", r"font-size: \1px", body)
    body = body.replace("font-family: 'DejaVu Sans';", "").replace(' transform="rotate(-0', ' transform="rotate(0')
    body = re.sub(r' transform="rotate\(0[^"]*"', "", body)
    body = re.sub(r"<g>\s*<path d=\"[^\"]*\" style=\"fill: none\"/>\s*</g>|<g/>", "", body)
    for name, stand_in in COLOURS.items():
        body = body.replace(stand_in, f"var(--{name})")
    body = re.sub(r"(\d+\.\d{2})\d+", r"\1", body)
    body = re.sub(r"\s*\n\s*", "\n", body).replace("; ", ";").replace(": ", ":")
    head = f'<svg class="plot" viewBox="{box[1]}" role="img" aria-label="{escape(f"{title}: {alternative}")}">'
    return head + body.strip()
