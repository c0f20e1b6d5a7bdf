"""Walks through Python files for what they state: a good tenth of the nodes that `ast.walk` visits."""

import ast


def statements(tree):
    """Yield every statement below a module, a class, a function or any other block."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, field, ()):
            if isinstance(node, ast.stmt):
                yield node
            yield from statements(node)
