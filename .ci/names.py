"""Count assigned names that say nothing: words without a noun, such as `one`, `known`, `here`, `told`.

    python .ci/names.py --most 2 audit/statistics     exit 1 if more than 2 % of a folder's assigned names are empty
    python .ci/names.py --words audit                 the words too, with how often each is assigned

Counted is every name that code assigns: by `=`, `for`, `with`, `:=`, in comprehensions and patterns, and as a
parameter. Attributes, imports, functions and classes are not. A name is empty if the whole of it is in EMPTY.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

#: Pronouns, determiners, adverbs, prepositions; participles and adjectives without their noun; and words for anything.
#: Left out are those that are customary: `other` of a comparison, `seen` of a walk, `rest`, `old` and `new`, `all`.
EMPTY = frozenset(
    """
    one ones others another both each every either such same whole any some many most more few least fewest
    own mine ours theirs
    here there now then again also alone apart together ahead away beyond beside besides around about already still
    once later early
    how what which who why whose
    at by of above below under over within inside outside between beneath near far up down
    known found told said says shown given taken made done kept held got had left_over left_out spent lost
    chosen drawn dealt named called asked wanted needed used tried stated worded written counted meant thought moved
    changed put cut met won gone begun began ended heard spoken
    alike plain wrong worth fit fits due usual fresh good bad big small sure ready
    thing things stuff way ways words facts
    """.split()  # noqa: SIM905
)


def assigned(tree: ast.AST) -> Iterator[str]:
    """Yield each name that is assigned, as often as it is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name


def counted_names(path: Path) -> Counter[str]:
    """Return how often a file assigns each name, without the underscores around it."""
    tree = ast.parse(path.read_bytes())
    return Counter(name.strip("_") for name in assigned(tree) if name not in ("self", "cls", "_"))


def empty_of(names: Counter[str]) -> Counter[str]:
    """Return the empty names among these."""
    return Counter({name: times for name, times in names.items() if name.lower() in EMPTY})


def main() -> int:
    """Print the share of each folder; return 1 if one is above what `--most` allows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--words", action="store_true", help="the empty names, most frequent first")
    parser.add_argument("--most", type=float, metavar="PERCENT", help="exit 1 above this share")
    options = parser.parse_args()
    exceeded = False
    for folder in options.folders:
        names = sum(map(counted_names, sorted(folder.rglob("*.py"))), Counter[str]())
        if not names:
            print(f"names: no Python under {folder}", file=sys.stderr)
            return 2
        empty = empty_of(names)
        share = 100 * empty.total() / names.total()
        too_many = options.most is not None and share > options.most
        exceeded |= too_many
        if too_many or options.most is None:
            print(f"names: {share:.1f} % of {names.total()} assigned names in {folder}/ say nothing ({empty.total()})")
        if too_many or options.words:
            print("  " + ", ".join(f"{name} {times}" for name, times in empty.most_common()))
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
