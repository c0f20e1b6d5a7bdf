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
INK, MUTED, LINE, BAD, LEFT, RIGHT, GOOD = COLOURS.values()
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "overclaim",
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "figure.facecolor": "none",
    "grid.color": LINE,
    "grid.linewidth": 0.4,
    "grid.alpha": 0.6,
    "lines.linewidth": 1.6,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "path.simplify": True,
}
_SIZE = (3.5, 2.2)  # inches of 72 units


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
        axes = figure.add_axes((0.175, 0.195, 0.775, 0.765))
        paint(axes)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return out.getvalue()


def standalone(svg: str, title: str, alternative: str) -> str:
    """Return matplotlib's SVG as a file of its own, on a white ground, with a title that readers of screens say."""
    for name, stand_in in COLOURS.items():
        svg = svg.replace(stand_in, ON_WHITE[name])
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
    used = {a or b for a, b in re.findall(r'url\(#([^)]+)\)|xlink:href="#([^"]+)"', body)}
    body = re.sub(r' id="([^"]+)"', lambda m: f' id="{prefix}-{m[1]}"' if m[1] in used else "", body)
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
