"""The commands of the documentation, run: `python docs/commands.py [PAGE ...]` rewrites what they print.

Without a page, in README.md and docs/; of a page that is named also the numbers that may differ.

A page is run from top to bottom in an empty folder of its own.

- `console`: commands behind "$ ", each with what it prints; a line "..." stands for any lines.
- `sh`: commands whose output is not shown.
- `python`: run; a `text` block right behind it is what it prints.
- A block whose first line is a comment "# NAME.py", or that follows `<!-- file: NAME -->`, is a file.
- `<!-- in NAME: OLD -> NEW -->` changes that file; `<!-- not run: WHY -->` leaves the next block out.
- `<!-- needs: MODULE ... -->`: the page is left out where one of these cannot be imported.
- `<!-- numbers differ: WHY -->`: of what the commands of the next block print, numbers are not compared.

Lines of `text` blocks and inline code that begin with `overclaim` are not run, but their options must exist.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import click
from click.testing import CliRunner

from overclaim.reports.command_line.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
#: Shown, not run.
OTHER = ("text", "yaml", "json")
#: Exit codes of a command that did its work: as expected, falsified, undecided.
DONE = (0, 1, 3)
#: Columns of the terminal.
WIDTH = {"COLUMNS": "140"}


@dataclass
class Block:
    """A fenced block of a page."""

    language: str
    body: list[str]
    start: int  # the line of the page, from 0, of the body's first line
    indent: str
    comments: list[str]  # the HTML comments between it and the block before

    @property
    def name(self) -> str:
        """The file that the block is, or nothing."""
        for comment in self.comments:
            if match := re.fullmatch(r"file: (\S+)", comment):
                return match[1]
        match = re.fullmatch(r"# (\S+\.(?:py|toml))", self.body[0]) if self.body else None
        return match[1] if match else ""


def blocks(lines: list[str]) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    comments: list[str] = []
    at = 0
    while at < len(lines):
        if match := re.fullmatch(r"\s*<!-- (.*) -->", lines[at]):
            comments.append(match[1])
        if not (match := re.fullmatch(r"( *)```(\w*).*", lines[at])):
            at += 1
            continue
        indent, language = match[1], match[2]
        end = next(i for i in range(at + 1, len(lines)) if lines[i] == f"{indent}```")
        yield Block(language, [line.removeprefix(indent) for line in lines[at + 1 : end]], at + 1, indent, comments)
        comments, at = [], end + 1


@dataclass
class Page:
    """A page as it runs: its folder, and the exit code of the last command."""

    folder: Path
    exact: bool = False  # numbers that may differ are rewritten too
    code: int = 0
    ran: list[str] = field(default_factory=list)

    def run(self, text: str) -> str:
        """Return the page with what its commands print now; text that still fits is left as it is."""
        lines = text.split("\n")
        fenced = list(blocks(lines))
        changes: list[tuple[Block, list[str]]] = []
        for block, after in zip_longest(fenced, fenced[1:]):
            for comment in block.comments:
                self._change(comment)
            shown = block.language in OTHER and not block.name
            if any(comment.startswith("not run: ") for comment in block.comments) or shown:
                continue
            if block.name:
                (self.folder / block.name).write_text("\n".join(block.body) + "\n", encoding="utf-8")
            elif block.language == "console":
                differ = not self.exact and any(c.startswith("numbers differ: ") for c in block.comments)
                changes.append((block, self._console(block.body, differ=differ)))
            elif block.language == "sh":
                for command in block.body:
                    self.command(command)
                    if self.code not in DONE:
                        raise ValueError(f"line {block.start + 1}: {command}: exit code {self.code}")
            elif block.language == "python":
                printed = self._python("\n".join(block.body))
                if after and after.language == "text" and after.start == block.start + len(block.body) + 3:
                    changes.append((after, _kept(after.body, printed)))
            else:
                raise ValueError(f"line {block.start}: a block must be console, sh, python, or {', '.join(OTHER)}")
        for block, body in reversed(changes):
            lines[block.start : block.start + len(block.body)] = [(block.indent + line).rstrip() for line in body]
        return "\n".join(lines)

    def _change(self, comment: str) -> None:
        if match := re.fullmatch(r"in (\S+): (.*) -> (.*)", comment):
            file, old, new = self.folder / match[1], match[2], match[3]
            text = file.read_text(encoding="utf-8")
            if text.count(old) != 1:
                raise ValueError(f"{old!r} must be in {file.name} once, found {text.count(old)} times")
            file.write_text(text.replace(old, new), encoding="utf-8")

    def _console(self, body: list[str], *, differ: bool = False) -> list[str]:
        starts = [i for i, line in enumerate(body) if line.startswith("$ ")]
        if not starts or starts[0] != 0:
            raise ValueError(f"a console block must begin with a command behind '$ ', got {body[:1]}")
        out: list[str] = []
        for start, end in zip(starts, [*starts[1:], len(body)], strict=True):
            out += [body[start], *_kept(body[start + 1 : end], self.command(body[start][2:]), differ=differ)]
        return out

    def _python(self, code: str) -> str:
        """Run an example and return what it prints; in this process, as starting another takes longer than most."""
        self.ran.append(code)
        printed, loaded = io.StringIO(), set(sys.modules)
        try:
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
                sys.path.insert(0, str(self.folder))
                exec(compile(code, "<example>", "exec"), {"__name__": "__main__"})
        except Exception as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error
        finally:
            sys.path.remove(str(self.folder))
            for name in set(sys.modules) - loaded:  # another page may have another file of this name
                if (self.folder / f"{name}.py").exists():
                    del sys.modules[name]
        return printed.getvalue()

    def command(self, text: str) -> str:
        """Run one command in the page's folder and return what it prints."""
        if text == "echo $?":
            return str(self.code)
        self.ran.append(text)
        program, *words = shlex.split(text, comments=True)
        with contextlib.chdir(self.folder):
            if program == "overclaim":
                result = CliRunner(env=WIDTH).invoke(main, words)
                if result.exception is not None and not isinstance(result.exception, SystemExit):
                    raise result.exception
                self.code = result.exit_code
                return result.stdout + (result.stderr if self.code not in DONE else "")
            if program not in ("python", "pytest"):
                raise ValueError(
                    f"cannot run {program}: use overclaim, python or pytest, or say why in <!-- not run: ... -->"
                )
            words = ["-m", "pytest", "-p", "no:cacheprovider", *words] if program == "pytest" else words
            words = [sys.executable, *words]
            done = subprocess.run(words, env=os.environ | WIDTH, capture_output=True, text=True, check=False)
            self.code = done.returncode
            return done.stdout


def _kept(shown: list[str], printed: str, *, differ: bool = False) -> list[str]:
    """Return what is shown if it fits what was printed, but for times and lines "..."; else what was printed.

    Numbers need not fit where they differ between processors. Where nothing but numbers has changed, the lines "..."
    stay.
    """
    same = _numberless if differ else _timeless
    lines = [line.rstrip() for line in printed.rstrip("\n").split("\n")] if printed.strip() else []
    if _places(shown, lines, same) is not None:
        return shown
    places = _places(shown, lines, _numberless)
    if places is None:
        return lines
    pairs = [(line, line if place is None else lines[place]) for line, place in zip(shown, places, strict=True)]
    return [old if same(old) == same(new) else new for old, new in pairs]


def _places(shown: list[str], lines: list[str], same: Callable[[str], str]) -> list[int | None] | None:
    """Return where each shown line stands among those printed, None for "..."; None where they do not fit."""
    parts = [r"((?:.*\n)*)" if line == "..." else f"({re.escape(same(line))}\n)" for line in shown]
    text = "".join(same(line) + "\n" for line in lines)
    match = re.fullmatch("".join(parts), text)
    if match is None:
        return None
    starts = [text.count("\n", 0, match.start(i)) for i in range(1, len(shown) + 1)]
    return [None if line == "..." else start for line, start in zip(shown, starts, strict=True)]


def _timeless(line: str) -> str:
    line = re.sub(r"s \(\d+:\d\d:\d\d\)$", "s", line)  # pytest's, of a minute and more
    return re.sub(r"\b\d+(\.\d+)? ?s\b", "0 s", line)


def _numberless(line: str) -> str:
    return re.sub(r"\d+(,\d{3})*(\.\d+)?", "0", _timeless(line))


def missing(text: str) -> str:
    """Return why a page cannot be run here, or nothing where it can."""
    for module in " ".join(re.findall(r"^<!-- needs: (.*) -->$", text, re.MULTILINE)).split():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                importlib.import_module(module)
        except ImportError as error:
            return f"needs {module}: {' '.join(str(error).split())}"
    return ""


def mentioned(text: str) -> Iterator[str]:
    """Yield the commands that a page mentions without running them: in `text` blocks and in inline code."""
    lines = text.split("\n")
    for block in blocks(lines):
        if block.language == "text":
            yield from (line for line in block.body if line.startswith("overclaim "))
        for i in range(block.start - 1, block.start + len(block.body) + 1):
            lines[i] = ""
    yield from (found.replace("\n", " ") for found in re.findall(r"`(overclaim [^`]+)`", "\n".join(lines)))


def check_mentioned(command: str) -> None:
    """Raise ValueError unless the subcommand and its options exist."""
    name = command.split()[1]
    options = re.findall(r"(?<![\w-])--[a-z][a-z-]*", command)
    if name.startswith("-"):
        known: click.Command | None = main
    else:
        known = main.get_command(click.Context(main), name)
    if known is None:
        raise ValueError(f"{command}: no such command")
    accepted = {option for parameter in known.get_params(click.Context(known)) for option in parameter.opts}
    for option in options:
        if option not in accepted:
            raise ValueError(f"{command}: no option {option}")


def rewrite(*names: str) -> None:
    """Run every page, or those named, and write what its commands print now."""
    for page in [Path(name).resolve() for name in names] or PAGES:
        text = page.read_text(encoding="utf-8")
        if reason := missing(text):
            print(f"left out: {page.relative_to(ROOT)} {reason}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            new = Page(Path(folder), exact=bool(names)).run(text)
        for command in mentioned(new):
            check_mentioned(command)
        if new != text:
            page.write_text(new, encoding="utf-8")
        print(f"{'rewritten' if new != text else 'unchanged'}: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    rewrite(*sys.argv[1:])
