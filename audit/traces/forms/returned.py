"""Whether a number goes nowhere but into what the code under audit returns: then no branch depends on it.

Read in the source: `float(x)`, `int(x)`, `round(x)`, or `max` and `min` of x and literals, stands in a returned
expression, and all around it is lists, dictionaries and such calls.
"""

from __future__ import annotations

import ast
import builtins
import linecache
from functools import lru_cache
from types import FrameType

from ....learners.blame import of_package

#: Functions of one number, and those of a number and literals.
_OF_NUMBER, _OF_LITERALS = frozenset({"float", "int", "round"}), frozenset({"max", "min"})
#: Comprehensions have frames of their own before Python 3.12.
_COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>"})
_Span = tuple[int | None, int | None, int | None, int | None]
#: The name of a call, and the literals beside its number.
_Call = tuple[str, tuple[float, ...]]


def is_returned(frame: FrameType | None, names: tuple[str, ...], other: object) -> bool:
    """Tell whether a builtin of one of these names, of a number and literals, is what a frame returns right now."""
    outer = frame
    while outer is not None and outer.f_code.co_name in _COMPREHENSIONS:
        outer = outer.f_back
    if frame is None or outer is None or outer.f_back is None:
        return False
    if not of_package(str(outer.f_back.f_globals.get("__name__", ""))):
        return False  # whoever called it may look at it
    spans = list(frame.f_code.co_positions())
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    name, literals = _returned_calls(source).get(spans[frame.f_lasti // 2], ("", ()))
    if name not in names or any(
        name in names_in_scope for names_in_scope in (frame.f_locals, outer.f_locals, frame.f_globals)
    ):
        return False
    if frame.f_builtins.get(name) is not getattr(builtins, name):
        return False
    return name in _OF_NUMBER or (type(other) in (int, float) and other in literals)


@lru_cache(maxsize=64)
def _returned_calls(source: str) -> dict[_Span, _Call]:
    """Return the calls whose values go into what is returned, by where they stand."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    calls: dict[_Span, _Call] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            _add(node.value, calls)
        elif isinstance(node, ast.Lambda):
            _add(node.body, calls)
    return calls


def _add(node: ast.expr, calls: dict[_Span, _Call]) -> None:
    """Add the calls in an expression whose value is returned, as it is or in lists and dictionaries."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            inner = parts
        case ast.Dict(values=parts):
            inner = parts
        case ast.ListComp(elt=part) | ast.DictComp(value=part):
            inner = [part]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _OF_NUMBER | _OF_LITERALS:
            literals = [value for arg in args if (value := _literal(arg)) is not None]
            inner = [arg for arg in args if _literal(arg) is None]
            if len(inner) != 1 or isinstance(inner[0], ast.Starred) or (name in _OF_LITERALS and not literals):
                return
            calls[node.lineno, node.end_lineno, node.col_offset, node.end_col_offset] = name, tuple(literals)
        case _:
            return
    for part in inner:
        _add(part, calls)


def _literal(node: ast.expr) -> float | None:
    """Return the number that an expression is; None for another expression."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) in (int, float) else None
