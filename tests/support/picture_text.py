"""Where the texts of a small SVG stand: boxes by the widths of the font's own letters."""

import math
import re
from itertools import combinations
from xml.etree import ElementTree

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

FONT = FontProperties(family="DejaVu Sans")
#: What a turned text says, and how far text may reach over another's box: letters rarely fill theirs.
TURN, SLACK = re.compile(r"rotate\(([-\d.]+)"), 0.5


def text_boxes(svg):
    """Return (text, left, top, right, bottom) of every text of an SVG, in its units."""
    boxes = []
    for node in ElementTree.fromstring(svg).iter():
        if node.tag.rpartition("}")[2] != "text" or not (node.text or "").strip():
            continue
        size = float(re.search(r"font-size:\s*([\d.]+)", node.get("style")).group(1))
        anchor = re.search(r"text-anchor:\s*(\w+)", node.get("style"))
        x, y = float(node.get("x")), float(node.get("y"))
        extents = TextPath((0, 0), node.text, size=size, prop=FONT).get_extents()
        start = -extents.width * {"middle": 0.5, "end": 1.0}.get(anchor and anchor[1], 0.0)
        turn = TURN.search(node.get("transform") or "")
        angle = math.radians(float(turn[1])) if turn else 0.0
        corners = [(start + dx, -dy) for dx in (0, extents.width) for dy in (extents.ymin, extents.ymax)]
        turned = [
            (a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)) for a, b in corners
        ]
        xs, ys = [x + a for a, _ in turned], [y + b for _, b in turned]
        boxes.append((node.text, min(xs), min(ys), max(xs), max(ys)))
    return boxes


def misplaced(svg):
    """Return the texts of an SVG that leave it, and the pairs that overlap."""
    width, height = map(float, ElementTree.fromstring(svg).get("viewBox").split()[2:])
    boxes = text_boxes(svg)
    outside = [
        text for text, left, top, right, bottom in boxes if min(left, top) < 0 or right > width or bottom > height
    ]
    return outside + [(a[0], b[0]) for a, b in combinations(boxes, 2) if _meet(a, b)]


def _meet(first, second):
    return all(
        first[low] < second[high] - SLACK and second[low] < first[high] - SLACK for low, high in ((1, 3), (2, 4))
    )
