"""Whether a number goes nowhere but into what the code under audit returns: then no branch depends on it.

Read in the source: the call that makes a plain number of a value with noise stands in a returned expression, and all
around it is lists, dictionaries and functions of that value and of literals.
"""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from types import FrameType

from ....learners.blame import of_package

#: Functions of their arguments alone.
_PURE = frozenset({"float", "int", "round", "abs", "bool", "str", "max", "min"})
#: Comprehensions have frames of their own before Python 3.12.
_INSIDE = frozenset({"<listcomp>", "<dictcomp>"})
_Span = tuple[int | None, int | None, int | None, int | None]


def is_returned(frame: FrameType | None) -> bool:
    """Tell whether what a frame computes right now goes into what the target returns, and nowhere else."""
    outer = frame
    while outer is not None and outer.f_code.co_name in _INSIDE:
        outer = outer.f_back
    if frame is None or outer is None or outer.f_back is None:
        return False
    if not of_package(str(outer.f_back.f_globals.get("__name__", ""))):
        return False  # whoever called it may look at it
    spans = list(frame.f_code.co_positions())
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    return spans[frame.f_lasti // 2] in _returned_spans(source)


@lru_cache(maxsize=64)
def _returned_spans(source: str) -> frozenset[_Span]:
    """Return where the calls stand whose values go into what is returned."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return frozenset()
    found: set[_Span] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            _add(node.value, found)
        elif isinstance(node, ast.Lambda):
            _add(node.body, found)
    return frozenset(found)


def _add(node: ast.expr, found: set[_Span]) -> None:
    """Add the calls in an expression whose value is returned, as it is or in lists and dictionaries."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            inner = parts
        case ast.Dict(values=parts):
            inner = parts
        case ast.ListComp(elt=part) | ast.DictComp(value=part):
            inner = [part]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _PURE:
            inner = [arg for arg in args if not isinstance(arg, ast.Constant)]
            if len(inner) != 1:
                return
            found.add((node.lineno, node.end_lineno, node.col_offset, node.end_col_offset))
        case _:
            return
    for part in inner:
        _add(part, found)
