"""Texts split into numbers, words and what stands between them."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from .places import Path, Placed, of_one_type

#: Beyond 2^53 a float does not hold every whole number, so a second column holds the remainder modulo 2^53.
MAX_INTEGER = 2**53
#: The most parts of a text, which are tokens, or the bytes and the characters of texts of one length that are read one
#: by one; the most of all texts that are split together; and the most characters of a text that are read at all.
MOST_PARTS, MOST_TOGETHER, MOST_CHARACTERS = 1024, 4096, 10_000
#: Numbers, whose sign does not follow a letter or digit; words; and what stands between them.
_NUMBER = r"(?:(?<!\w)[+-])?\d+(?:\.\d+(?:[eE][+-]?\d+)?)?"
_TOKENS = re.compile(rf"{_NUMBER}|[^\W\d_]+|[\W_]+?(?={_NUMBER}|[^\W_]|$)", re.DOTALL)


class Digits(NamedTuple):
    """A whole number in a text."""

    number: int
    digits: int


def as_float(number: Any) -> float:
    """Return the number as a float, infinite where it is too large for one."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except ValueError:  # a signalling nan
        return math.nan


def tokens_of(texts: Placed, split: Mapping[Path, bool]) -> Iterator[Placed]:
    """Yield the parts of the texts at a place whose texts are split (and aligned): each text is split once."""
    path, runs, leaves = texts
    if path not in split or not isinstance(leaves[0], str | bytes):
        return
    max_parts = min(MOST_PARTS, MOST_TOGETHER // len(split))
    number: dict[str | bytes, int] = {}
    numbers = np.array([number.setdefault(text, len(number)) for text in leaves])
    parts: dict[int, tuple[list[int], list[object]]] = defaultdict(lambda: ([], []))
    for text, its in number.items():
        for i, token in _tokens(text, max_parts, aligned=split[path]):
            parts[i][0].append(its)
            parts[i][1].append(token)
    for i, (with_one, tokens) in parts.items():
        place_of_run = np.full(len(number), -1)
        place_of_run[with_one] = np.arange(len(with_one))
        place_of_run = place_of_run[numbers]
        coded = np.flatnonzero(place_of_run >= 0)
        yield from of_one_type((*path, i), runs[coded], [tokens[token] for token in place_of_run[coded].tolist()])


def _tokens(text: str | bytes, max_parts: int, *, aligned: bool) -> Iterator[tuple[int, object]]:
    """Yield the parts of a text with their places: numbers, words, what is between; the last one, and both ends.

    Bytes come one by one too, and so do the characters of texts that are aligned.
    """
    if isinstance(text, bytes):
        yield from enumerate(map(float, text[:max_parts]), start=MOST_PARTS + 3)
        text = text.decode("latin-1")
    elif aligned:
        yield from enumerate(text[:max_parts], start=MOST_PARTS + 3)
    text = text[:MOST_CHARACTERS]
    tokens = [_token(token) for token in _TOKENS.findall(text)]
    yield from enumerate(tokens[:max_parts])
    if tokens:
        yield MOST_PARTS, tokens[-1]
        yield MOST_PARTS + 1, text[0]
        yield MOST_PARTS + 2, text[-1]


def _token(token: str) -> object:
    digits = token.lstrip("+-")
    if not digits[:1].isdecimal():
        return token
    return Digits(int(token[:300]), len(digits)) if digits.isdecimal() else float(token)
