"""The package as installed: its list of rooms, its version and its lazy face."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest

import overclaim
from overclaim.addresses import HOME, PAGES
from overclaim.tests.support.syntax import statements

ROOT = Path(__file__).resolve().parents[1]
NOT_ROOMS = {"benchmarks", "build", "dist", "docs", "examples", "out", "spec", "tests"}
WRITTEN = {"build", "dist", "out"}
#: What takes long to load, and is imported where it is used.
HEAVY = [
    "scipy.stats",
    "scipy.optimize",
    "scipy.linalg",
    "pandas",
    "statsmodels",
    "sklearn",
    "optuna",
    "matplotlib",
    "distributed",
]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@cache
def files():
    """Every Python file below the root whose path has no hidden folder, from the root."""
    walked = [file for top in ROOT.glob("[!.]*") for file in (top.rglob("*.py") if top.is_dir() else [top])]
    places = [file.relative_to(ROOT) for file in walked if file.suffix == ".py"]
    return [place for place in places if not any(name.startswith(".") for name in place.parts)]


@cache
def sources():
    """Every Python file of the repository, with its text."""
    return [(place, (ROOT / place).read_text(encoding="utf-8")) for place in files() if place.parts[0] not in WRITTEN]


def packages_on_disk() -> set[str]:
    """Every folder below the root that holds Python code of ours, at any depth."""
    packages = {"overclaim"}
    for file in files():
        folders = file.parent.parts
        if folders and folders[0] not in NOT_ROOMS:
            packages.add(".".join(("overclaim", *folders)))
    return packages


def loaded_by(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after the statement."""
    code = f"import sys\n{statement}\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_a_run_begins_without_what_takes_long_to_load():
    """The first verdict waits for every import, and each worker process does them again."""
    modules = "overclaim.reports.command_line.running, overclaim.audit.plans.ledger, overclaim.reports.record"
    code = f"import sys, {modules}\nprint(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


#: Runs a command of ours, and prints how many of our modules it loaded in its last line.
COUNTED = """
import sys
from overclaim.reports.command_line.cli import main
main(sys.argv[1:], standalone_mode=False)
print(sum(name.partition(".")[0] == "overclaim" for name in sys.modules))
"""


@pytest.mark.slow(reason="two commands")
@pytest.mark.parametrize(
    ("words", "most"),
    [
        (["scores", "scores.csv", "--design", "one-run", "--epsilon", "1"], 120),
        (["check", "own.py:noisy", "--epsilon", "1", "--left", "[0]", "--right", "[1]", "--runs", "500"], 205),
    ],
    ids=["scores", "check"],
)
def test_a_command_loads_what_its_kind_of_claim_needs(words, most, tmp_path):
    """All of 359 modules were loaded for a file of scores, whose certificate needs 28."""
    rows = "".join(f"{i % 7},{i % 2}\n" for i in range(40))
    (tmp_path / "scores.csv").write_text(f"score,included\n{rows}", encoding="utf-8")
    code = "def noisy(data, rng):\n    return data[0] + rng.laplace()\n"
    (tmp_path / "own.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-c", COUNTED, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) < most


def test_listed_packages_equal_those_on_disk():
    listed = project()["tool"]["setuptools"]["packages"]
    assert len(listed) == len(set(listed))
    assert set(listed) == packages_on_disk()


def test_every_listed_package_has_an_init():
    for name in project()["tool"]["setuptools"]["packages"]:
        assert ROOT.joinpath(*name.split(".")[1:], "__init__.py").is_file(), name


@pytest.mark.lint
def test_files_that_the_glossary_and_the_contributors_page_name_exist():
    """A page names a file by its path from the root, from `audit/` or from `reports/`."""
    named = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|toml|md|html|yml))(?::[\w.]+)?`")
    gone = [
        f"{page.name}: {path}"
        for page in (ROOT / "docs" / "glossary.md", ROOT / "README.md", ROOT / "CONTRIBUTING.md")
        for path in named.findall(page.read_text(encoding="utf-8"))
        if not any((ROOT / room / path).exists() for room in ("", "audit", "reports")) and not path.startswith("out/")
    ]
    assert gone == []


@pytest.mark.lint
def test_every_private_constant_is_read_in_its_file():
    unread = [
        f"{place}: {names}"
        for place, text in sources()
        for names in re.findall(r"(?m)^(_[a-zA-Z]\w*(?:, _\w+)*)(?:: [^=\n]+)? = ", text)
        if all(len(re.findall(rf"\b{name}\b", text)) == 1 for name in names.split(", "))
    ]
    assert unread == []


@pytest.mark.lint
def test_every_tuned_number_of_an_audit_has_a_reason():
    """In a comment above it, or above the constants that it stands with, or on its own line."""
    bare = []
    for place, text in sources():
        lines = ["", *text.splitlines()]
        for statement in ast.parse(text).body if place.parts[0] == "audit" else ():
            names = ast.unparse(getattr(statement, "targets", [statement])[0]).strip("()")
            tuned = isinstance(statement, ast.Assign) and re.fullmatch(r"_?[A-Z][A-Z_\d]*(, _?[A-Z][A-Z_\d]*)*", names)
            if tuned and re.search(r"(?<![\w\[])\d+(\.\d+)?(?![\w\]])", ast.unparse(statement.value)):
                above = statement.lineno - 1
                while re.match(r"_?[A-Z][A-Z_\d]*(, _?[A-Z][A-Z_\d]*)* = ", lines[above]):
                    above -= 1
                if "#" not in lines[above] + lines[statement.end_lineno]:
                    bare.append(f"{place}:{statement.lineno}: {names}")
    assert bare == []


def holds(place, name):
    """Tell whether a file defines a name anywhere, or a room has a part of that name or names it in its first file."""
    text = (ROOT / place).read_text(encoding="utf-8")
    if place.name == "__init__.py":
        room = (ROOT / place).parent
        return (room / f"{name}.py").is_file() or (room / name).is_dir() or re.search(rf"\b{name}\b", text) is not None
    nodes = list(ast.walk(ast.parse(text)))
    return any(getattr(node, "name", None) == name and not isinstance(node, ast.alias) for node in nodes) or any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name for node in nodes
    )


@pytest.mark.lint
def test_what_docstrings_say_is_in_a_module_is_there():
    """`events.certify` stands for a file or a room of ours by its last name, and for something that it holds."""
    rooms = {"audit", "learners", "mechanisms", "reports", "testing"}
    own = [(place, text) for place, text in sources() if place.parts[0] in rooms]
    modules = {}
    for place, _ in own:
        modules.setdefault(place.parent.name if place.name == "__init__.py" else place.stem, []).append(place)
    gone = [
        f"{place}: {reference}"
        for place, text in own
        for reference in re.findall(r"`((?:\w+\.)+\w+)`", text)
        for module, name in [reference.split(".")[-2:]]
        if module in modules and not any(holds(candidate, name) for candidate in modules[module])
    ]
    assert gone == []


def functions(tree):
    return (node for node in statements(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def length(function):
    """Lines from `def` to the end, its docstring not counted."""
    docstring = function.body[0] if ast.get_docstring(function) else None
    own = docstring.end_lineno - docstring.lineno + 1 if docstring else 0
    return function.end_lineno - function.lineno + 1 - own


@pytest.mark.lint
def test_every_function_fits_a_screen():
    """50 lines at most."""
    long = [
        f"{file}: {function.name}: {length(function)}"
        for file, text in sources()
        for function in functions(ast.parse(text))
        if length(function) > 50
    ]
    assert long == []


@pytest.mark.lint
def test_every_test_of_a_later_tier_says_why():
    bare = re.compile(r"(?m)^ *@pytest\.mark\.(?:slow|nightly)(?:\(\))?$")
    assert [str(place) for place, text in sources() if bare.search(text)] == []


def test_version_is_the_same_everywhere():
    assert overclaim.__version__ == project()["project"]["version"] == version("overclaim")


@pytest.mark.parametrize("module", ["overclaim", "overclaim.reports.command_line.cli", "overclaim.reports.plugin"])
def test_import_loads_nothing_heavy(module):
    heavy = {"numpy", "scipy", "statsmodels", "sklearn", "matplotlib", "joblib", "jinja2", "optuna"}
    assert not loaded_by(f"import {module}") & heavy


def test_a_check_loads_no_part_of_scipy_that_takes_long():
    """Every process that audits pays for it: scipy.stats alone takes longer than all else that a check imports."""
    words = ["check", "agarwal-singh/reduction-threshold", "--rounds", "2", "--runs", "2000", "--jobs", "1"]
    code = (
        "import sys; from overclaim.reports.command_line.cli import main; main(sys.argv[1:], standalone_mode=False); "
        "print(*({'scipy.stats', 'scipy.optimize', 'scipy.sparse', 'pandas', 'sklearn', 'joblib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("FALSIFIED")
    assert done.stdout.split("\n")[-2] == ""


@pytest.mark.parametrize("name", overclaim.__all__)
def test_public_name_is_importable(name):
    assert getattr(overclaim, name) is not None
    assert name in dir(overclaim)


def test_the_name_of_the_clones_folder_hides_nothing():
    """Pytest would import the root as a package of that name, and a clone called numpy would hide NumPy."""
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    assert {n for n, file in files.items() if file and Path(file).resolve() == ROOT / "__init__.py"} <= {"overclaim"}


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'passed'"):
        _ = overclaim.passed


@pytest.mark.slow(reason="a whole command")
def test_a_bare_environment_and_an_awkward_path_are_enough(tmp_path):
    """No variables but PATH, a home that cannot be written, and a space and an umlaut in every path."""
    place = tmp_path / "ein Pfäd"
    place.mkdir()
    (place / "overclaim").symlink_to(ROOT, target_is_directory=True)
    (tmp_path / "no home").write_text("a file, in which nobody can make folders")
    (place / "plan.toml").write_text(
        '[[claims]]\ntarget = "agarwal-singh/reduction-threshold"\nepsilon = 1\nrounds = 2\nruns = 4000\n'
    )
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "no home" / "me"), "PYTHONPATH": str(place)}
    words = [sys.executable, "-m", "overclaim", "run", "plan.toml", "--jobs", "1"]
    done = subprocess.run(words, cwd=place, env=bare, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "1 claim: falsified" in done.stdout
    assert "<svg" in (place / "out" / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "no home").is_file()


@pytest.mark.slow(reason="it builds a wheel")
def test_a_wheel_installed_elsewhere_is_whole(tmp_path):
    """Every room and the report's templates are in it: it audits, renders, and brings its pytest plugin."""
    build = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"
    copy = tmp_path / "source"
    leave = shutil.ignore_patterns(".*", "out", "build", "dist", "*.egg-info", "__pycache__", "benchmarks", "tests")
    shutil.copytree(ROOT, copy, ignore=leave)
    words = [sys.executable, "-c", build, str(tmp_path)]
    subprocess.run(words, cwd=copy, capture_output=True, text=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    plan = '[[claims]]\ntarget = "agarwal-singh/reduction-threshold"\nepsilon = 1\nrounds = 2\nruns = 4000\n'
    (tmp_path / "plan.toml").write_text(plan)
    (tmp_path / "show.py").write_text("import overclaim\nprint(overclaim.__file__)\n")

    def python(*words):
        return subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert python("show.py").stdout.startswith(str(tmp_path / "site"))
    done = python("-m", "overclaim", "check", "agarwal-singh/reduction-threshold", "--rounds", "2", "--runs", "4000")
    assert (done.returncode, done.stdout.split()[0]) == (1, "FALSIFIED"), done.stderr
    assert python("-m", "overclaim", "run", "plan.toml", "--jobs", "1").returncode == 1
    assert "<svg" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    (info,) = (tmp_path / "site").glob("*.dist-info")
    assert "overclaim.reports.plugin" in (info / "entry_points.txt").read_text()


@pytest.mark.lint
def test_every_address_is_that_of_one_file():
    urls = project()["project"]["urls"]
    read = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("mkdocs.yml", "README.md", "CITATION.cff")}
    assert urls["Documentation"] == HOME
    assert f"site_url: {PAGES}/\n" in read["mkdocs.yml"]
    assert f"]({PAGES}/ruler.svg)" in read["README.md"]
    assert f"url: {HOME}\nrepository-code: {urls['Repository']}\n" in read["CITATION.cff"]
    named = [str(place) for place, text in sources() if "overclaim.readthedocs" in text]
    assert sorted(named) == ["addresses.py", "tests/test_package.py"]


@pytest.mark.lint
def test_the_citation_is_of_this_version():
    assert f"\nversion: {project()['project']['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
