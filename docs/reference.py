"""The pages of commands, plan keys and Python, made from what declares them: a hook of mkdocs, and a script.

python docs/reference.py          print all three
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

import click
import docstring_parser

import overclaim
from overclaim.audit.plans.options import AT_TOP, IN_CLAIM, OPTIONS, Option
from overclaim.audit.plans.plan_schema import PLAN
from overclaim.reports.command_line import help_pages
from overclaim.reports.command_line.cli import main

#: What each page has in the place of its generated part.
COMMANDS, KEYS, PYTHON = "<!-- commands -->", "<!-- plan keys -->", "<!-- python -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put what is generated in the place of the markers: called by mkdocs for every page."""
    for marker, section in ((COMMANDS, command_sections), (KEYS, plan_tables), (PYTHON, python_sections)):
        if marker in markdown:
            return markdown.replace(marker, "\n".join(section()))
    return markdown


def command_sections() -> Iterator[str]:
    """Yield the page of each command, with every option."""
    for group, commands in help_pages.COMMANDS.items():
        yield f"## {group}\n"
        for name in commands:
            command = main.get_command(click.Context(main), name)
            assert command is not None
            context = click.Context(command, info_name=f"overclaim {name}", terminal_width=120)
            yield f"### {name}\n\n```text\n{help_pages.page(command, context, with_rare=True)}```\n"


def plan_tables() -> Iterator[str]:
    """Yield the keys of a plan: those at its top, and those of a claim by what they are for."""
    yield "## At the top\n"
    yield from _table([option for option in OPTIONS.values() if option.plan == AT_TOP])
    yield "## In each `[[claims]]`\n"
    of_claims = [option for option in OPTIONS.values() if option.plan == IN_CLAIM]
    for group in ("", *help_pages.GROUPS):
        if members := [option for option in of_claims if option.group == group]:
            yield f"### {group or 'Target, expectation and words'}\n"
            yield from _table(members)
    schema = f"[JSON Schema]({PLAN['$id']})"
    yield f"\nThe {schema} says the same for editors; `overclaim init` names it in the plan's first line.\n"


def _table(options: list[Option]) -> Iterator[str]:
    yield "| key | value | meaning |\n|---|---|---|"
    for option in options:
        cells = (f"`{option.name}`", _value(option.schema), option.help or "")
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


def _value(schema: dict[str, Any]) -> str:
    """Return what a schema allows, in words."""
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(word)}`" for word in schema["enum"])
    kinds = schema.get("type") or [part["type"] for part in schema.get("anyOf", ()) if "type" in part]
    words = {
        "boolean": "true or false",
        "integer": "whole number",
        "object": "table",
        "array": "list",
        "string": "text",
    }
    kinds = [kinds] if isinstance(kinds, str) else kinds
    bounds = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    limits = [f"{word} {schema[key]:g}" for key, word in bounds.items() if key in schema and schema[key] < 2**53 - 1]
    return " ".join([" or ".join(words.get(kind, kind) for kind in kinds) or "any value", *limits])


def python_sections() -> Iterator[str]:
    """Yield what `overclaim` exports: signature, and docstring section by section."""
    for name in overclaim.__all__:
        exported = getattr(overclaim, name)
        if callable(exported):
            text = docstring_parser.parse(inspect.getdoc(exported) or "", docstring_parser.DocstringStyle.NUMPYDOC)
            yield f"## {name}\n\n```python\n{name}{_signature(exported)}\n```\n"
            yield "\n\n".join(filter(None, (text.short_description, text.long_description))) + "\n"
            yield from _parts("Parameters", [part for part in text.params if part.args[0] != "attribute"])
            yield from _parts("Attributes", [part for part in text.params if part.args[0] == "attribute"])
            yield from _parts("Returns", text.many_returns)
            yield from _parts("Raises", text.raises)
            for part in text.examples:
                shown = "\n".join(filter(None, (part.snippet, part.description)))
                yield f"```pycon\n{shown}\n```\n"


def _signature(exported: Any) -> str:
    """Return a signature with one parameter a line; nothing where there is none of ours to show."""
    if isinstance(exported, type) and issubclass(exported, Enum):
        return ""
    signature = inspect.signature(exported).replace(return_annotation=inspect.Signature.empty)
    parts = [part.replace(annotation=part.empty) for part in signature.parameters.values()]
    lines = [f"    {part}," for part in parts]
    return "\n".join(["(", *lines, ")"]) if lines else "()"


def _parts(title: str, parts: Sequence[Any]) -> Iterator[str]:
    """Yield a list of parameters, attributes, results or errors, each with its type and its text."""
    if parts:
        yield f"**{title}**\n"
        for part in parts:
            label = ": ".join(filter(None, (getattr(part, "arg_name", None), part.type_name)))
            yield f"- `{label}`: {' '.join((part.description or '').split())}".removesuffix(": ")
        yield ""


if __name__ == "__main__":
    print("\n".join([*command_sections(), *plan_tables(), *python_sections()]))
