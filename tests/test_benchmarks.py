"""What benchmarks, examples and scripts of the documentation import exists: they run seldom, and modules move."""

import ast
import importlib
import re
import tomllib
from pathlib import Path

import pytest

from overclaim.benchmarks import tables

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted(script for room in ("benchmarks", "docs", "examples") for script in (ROOT / room).rglob("*.py"))


def imports(script: Path):
    """Yield every import of ours in a script, those inside functions too, as (module, name or nothing)."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


def is_there(module: str, name: str | None) -> bool:
    try:
        imported = importlib.import_module(module)
        if name is None or hasattr(imported, name):
            return True
        importlib.import_module(f"{module}.{name}")
    except ImportError:
        return False
    return True


def missing(script: Path) -> list[str]:
    """Return what a script imports from our package or from beside it, and is not there."""
    absent = []
    for module, name in imports(script):
        top = module.partition(".")[0]
        beside = script.parent / f"{top}.py"
        if top == "overclaim" and not is_there(module, name):
            absent.append(f"{module}.{name}")
        elif beside.is_file() and name is not None and not re.search(rf"\b{name}\b", beside.read_text("utf-8")):
            absent.append(f"{beside.name}: {name}")
    return absent


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_what_scripts_import_exists(script):
    assert missing(script) == []


def test_a_name_that_has_moved_is_noticed(tmp_path):
    (tmp_path / "beside.py").write_text("rows = []\n")
    (tmp_path / "script.py").write_text(
        "from overclaim.audit.statistics.intervals import epsilon_guess\nfrom overclaim import falsify, audit_all\n"
        "def late():\n    from beside import rows, columns\n"
    )
    absent = ["overclaim.audit.statistics.intervals.epsilon_guess", "overclaim.audit_all", "beside.py: columns"]
    assert sorted(missing(tmp_path / "script.py")) == sorted(absent)


def test_modules_that_are_mutated_and_their_tests_exist():
    """`make mutation` takes hours: it may not end with a file that was moved."""
    room = ROOT / "benchmarks" / "robustness"
    text = (room / "mutation.py").read_text(encoding="utf-8")
    values = {
        target.id: node.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    names = {name: value.value for name, value in values.items() if isinstance(value, ast.Constant)}
    table = values["TESTS"]
    modules = [key.value for key in table.keys]
    tests = [eval(ast.unparse(value), names) for value in table.values]
    assert [module for module in modules if not (ROOT / module).is_file()] == []
    assert [test for line in tests for test in line.split() if not (ROOT / "tests" / f"{test}.py").is_file()] == []
    reasons = tomllib.loads((room / "mutation.toml").read_text(encoding="utf-8"))["reason"]
    assert {reason["module"] for reason in reasons} <= set(modules)


def test_the_page_of_benchmarks_names_each_of_them():
    folder = ROOT / "benchmarks"
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`([\w/]+\.py)`", page)) == {
        script.relative_to(folder).as_posix() for script in folder.rglob("*.py")
    }
    assert set(re.findall(r"`(\w+\.md)`", page)) <= {file.name for file in (folder / "results").iterdir()}


PAGES = sorted((ROOT / "benchmarks" / "results").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_of_results_names_day_commit_and_machine(page):
    """Pages said "with the code of that day": neither the code nor the machine could be found."""
    said = re.findall(r"\d{4}-\d\d-\d\d, commit [0-9a-f]{7,}[^,|]*, on \w", page.read_text(encoding="utf-8"))
    assert said
    assert "code of that day" not in page.read_text(encoding="utf-8")


def test_every_page_of_results_has_a_question():
    """No table is kept that nobody asks for."""
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert {page.name for page in PAGES} == set(re.findall(r"`(\w+\.md)`", text))


def test_pages_are_written_by_the_one_function_that_names_commit_and_machine(tmp_path):
    tables.write_page("mine", "# Mine\n\n| a |\n|---|\n| 1 |\n", tmp_path)
    *_, last = (tmp_path / "mine.md").read_text(encoding="utf-8").splitlines()
    assert last == tables.dated()
    assert tables.DATE_AND_COMMIT.search(last)
    assert f", on {tables.processor()}, " in last
    tables.write_page("dated", f"# Mine\n\n{tables.dated()} More.\n", tmp_path)
    assert (tmp_path / "dated.md").read_text(encoding="utf-8").count("commit") == 1
    others = [s for s in SCRIPTS if "benchmarks" in s.parts and s.name != "tables.py"]
    direct = re.compile(r"""\.md["'][^\n]*write_text|with_suffix\(["']\.md""")
    assert [script.name for script in others if direct.search(script.read_text(encoding="utf-8"))] == []
