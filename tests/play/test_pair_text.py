"""Two inputs as texts: what differs is in sight, whatever holds it."""

import numpy as np
import pytest

from overclaim.audit.play.data import to_json
from overclaim.audit.play.pair_text import MAX_LETTERS, beside

NUMBERS = [float(x) for x in np.random.default_rng(0).random(20)]
COUNTS, KEYED = np.arange(60), {f"k{i}": i for i in range(30)}
VISITS = [{"user": i, "visits": list(range(30))} for i in range(9)]


def changed(records, index, record):
    return [*records[:index], record, *records[index + 1 :]]


@pytest.mark.parametrize(
    ("left", "right", "left_text", "right_text"),
    [
        ([1, 2.5], [1], "[1, 2.5]", "[1]"),
        ([0.1 + 0.2], [0.5], "[0.3]", "[0.5]"),
        ([0.1 + 0.2, 0.125], [0.3, 0.125], "[0.30000000000000004, 0.125]", "[0.3, 0.125]"),
        ([0.5] * 20, [0.5] * 19, "[0.5 x 19, 0.5]", "[0.5 x 19]"),
        (NUMBERS, NUMBERS[:19], "[19 alike, 0.4227]", "[19 alike]"),
        (NUMBERS, changed(NUMBERS, 7, 0.25), "[7 alike, 0.7295, 12 alike]", "[7 alike, 0.25, 12 alike]"),
        (COUNTS, COUNTS * (COUNTS != 7), "array([7 alike, 7, 52 alike])", "array([7 alike, 0, 52 alike])"),
        (KEYED, KEYED | {"k9": 0}, '{29 alike, "k9": 9}', '{29 alike, "k9": 0}'),
        (
            {"a": NUMBERS, "b": [0] * 20},
            {"a": NUMBERS, "b": [*[0] * 19, 1]},
            'table("a", "b": [19 alike, [0.4227, 0]])',
            'table("a", "b": [19 alike, [0.4227, 1]])',
        ),
        (
            VISITS,
            changed(VISITS, 4, {"user": 4, "visits": changed(list(range(30)), 12, 77)}),
            '[4 alike, {1 alike, "visits": [12 alike, 12, 17 alike]}, 4 alike]',
            '[4 alike, {1 alike, "visits": [12 alike, 77, 17 alike]}, 4 alike]',
        ),
        ("x" * 200 + "a", "x" * 200 + "b", f'...{"x" * 79}a"', f'...{"x" * 79}b"'),
        (None, list(range(50)), "null", f"[{', '.join(map(str, range(22)))}, 22..."),
    ],
)
def test_what_differs_is_in_sight(left, right, left_text, right_text):
    assert beside(to_json(left), to_json(right)) == (left_text, right_text)
    assert max(len(left_text), len(right_text)) <= MAX_LETTERS
