"""Compare two records: `python benchmarks/same_record.py OLD.json NEW.json [--relative 1e-9] [--but replay]`.

Every field is compared, except when and by which versions the records were made (`UNSHARED`) and how long that took.
Floats, and numbers inside texts, must be equal, or near by `--relative`. The verdict alone is compared of claims whose
randomness has no seed, and of claims about low-order bits if the processors differ. Exits 1 if something differs.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

#: Fields of a record that say when, where and by which versions it was made; and what every part takes in time.
UNSHARED = ("created", "command", "versions", "overclaim", "processor", "audited")
TIME = "seconds"
#: What is compared of a claim whose counts another run does not give again.
VERDICT = ("name", "claimed", "verdict")
#: Beside a relative tolerance: what rounding leaves of 0.
DUST = 1e-12
#: A number with a fraction inside a text.
_NUMBER = re.compile(r"(-?\d+\.\d+(?:e[-+]?\d+)?)")


class Rules(NamedTuple):
    """How fields are compared: the relative tolerance of floats, and the names of fields that are left out."""

    relative: float = 0.0
    but: frozenset[str] = frozenset()
    same_processor: bool = True

    def near(self, old: float, new: float) -> bool:
        """Tell whether two numbers are equal up to the tolerance."""
        return old == new or (self.relative > 0 and math.isclose(old, new, rel_tol=self.relative, abs_tol=DUST))


#: Every field, every digit.
EXACT = Rules()


def differences(old: Mapping[str, Any], new: Mapping[str, Any], rules: Rules = EXACT) -> list[str]:
    """Return one line for each field in which two records differ: its place, the old value and the new one."""
    rules = rules._replace(
        but=rules.but | {TIME}, same_processor=rules.same_processor and old.get("processor") == new.get("processor")
    )
    return list(
        _compared(*({k: v for k, v in record.items() if k not in UNSHARED} for record in (old, new)), "", rules)
    )


def _compared(old: Any, new: Any, place: str, rules: Rules) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _fields(old, new, place, rules)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _items(old, new, place, rules)
    elif not _same(old, new, rules):
        yield f"{place}: {_short(old)} -> {_short(new)}"


def _fields(old: Mapping[str, Any], new: Mapping[str, Any], place: str, rules: Rules) -> Iterator[str]:
    names = [name for name in {**old, **new} if name not in rules.but]
    if _is_played_anew(old, rules) and _is_played_anew(new, rules):
        names = [name for name in names if name in VERDICT]
    elif not rules.same_processor:
        names = [name for name in names if name != "outputs_digest"]  # of the last bits of floats
    for name in names:
        field = f"{place}.{name}" if place else name
        if name in old and name in new:
            yield from _compared(old[name], new[name], field, rules)
        else:
            texts = (_short(side[name]) if name in side else "missing" for side in (old, new))
            yield f"{field}: {' -> '.join(texts)}"


def _is_played_anew(claim: Mapping[str, Any], rules: Rules) -> bool:
    """Tell whether what was counted of a claim is not what another run counts."""
    return claim.get("replayable") is False or (claim.get("platform_dependent") is True and not rules.same_processor)


def _items(old: Sequence[Any], new: Sequence[Any], place: str, rules: Rules) -> Iterator[str]:
    labels = [[_label(item) for item in side] for side in (old, new)]
    if not any(map(any, labels)):
        if len(old) != len(new):
            yield f"{place}: {len(old)} items -> {len(new)} items"
            return
        labels = [[""] * len(old), [""] * len(new)]
    for kind, a, b, c, d in SequenceMatcher(None, *labels, autojunk=False).get_opcodes():
        paired = kind == "equal" or b - a == d - c  # what two lists name otherwise in one place is one thing
        for i, j in zip(range(a, b), range(c, d), strict=True) if paired else ():
            yield from _compared(old[i], new[j], f"{place}[{i}] {labels[0][i]}".rstrip(), rules)
        if not paired:
            yield from (f"{place}[{i}] {labels[0][i]}: missing" for i in range(a, b))
            yield from (f"{place}[{j}] {labels[1][j]}: new" for j in range(c, d))


def _label(item: Any) -> str:
    """Return what tells an item of a list from the others: a claim's target, and what is claimed of it."""
    if not isinstance(item, Mapping) or "name" not in item:
        return ""
    details = [item.get(name) for name in ("measure", "surface", "neighbours", "parameters", "stop") if name in item]
    return " ".join(
        [str(item["name"]), *(json.dumps(detail) if isinstance(detail, dict) else str(detail) for detail in details)]
    )


def _same(old: Any, new: Any, rules: Rules) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        left, right = (_NUMBER.split(text) for text in (old, new))
        if len(left) != len(right) or left[::2] != right[::2]:
            return False
        return all(a == b or rules.near(float(a), float(b)) for a, b in zip(left[1::2], right[1::2], strict=True))
    if isinstance(old, bool) or isinstance(new, bool) or old is None or new is None:
        return old is new
    if isinstance(old, int) and isinstance(new, int):
        return old == new
    if isinstance(old, int | float) and isinstance(new, int | float):
        return rules.near(old, new)
    return bool(old == new)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def main() -> int:
    """Print the differences of two files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--relative", type=float, default=0.0, metavar="TOLERANCE", help="of floats")
    parser.add_argument("--but", action="append", default=[], metavar="FIELD", help="left out; repeatable")
    options = parser.parse_args()
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (options.old, options.new))
    lines = differences(old, new, Rules(options.relative, frozenset(options.but)))
    print("\n".join([*lines, f"{len(lines)} differences" if lines else "the same"]))
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
