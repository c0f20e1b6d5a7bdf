"""The supply chain: what is locked, with hashes, and under which licence."""

import ast
import contextlib
import importlib.util
import re
import sys
import tomllib
from email.message import Message
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from overclaim.tests.support.syntax import statements

ROOT = Path(__file__).resolve().parents[1]
spec = importlib.util.spec_from_file_location("docs_dependencies", ROOT / "docs" / "dependencies.py")
dependencies = importlib.util.module_from_spec(spec)
spec.loader.exec_module(dependencies)
pytestmark = pytest.mark.lint
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
SITE_LOCK = (ROOT / "docs" / "requirements.lock").read_text(encoding="utf-8")


def test_the_page_is_what_the_lock_and_the_packages_say():
    """`make docs` writes it."""
    assert dependencies.page() == dependencies.PAGE.read_text(encoding="utf-8")


def test_what_runs_with_overclaim_has_a_compatible_licence():
    known = dependencies.shown()
    running = {name for name, use in dependencies.uses().items() if use != "development"}
    assert len(running) > 30
    assert not {name: known[name] for name in running if not dependencies.is_allowed(known[name])}


def needed(name):
    """The slow twin: what the installed packages themselves say they need here, however far down."""
    seen, waiting = set(), [name]
    while waiting:
        for text in requires(waiting.pop()) or ():
            need = Requirement(text)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                child = canonicalize_name(need.name)
                waiting += [child] * (child not in seen)
                seen.add(child)
    return seen


def test_everything_that_overclaim_needs_here_is_listed_as_such():
    running = {name for name, use in dependencies.uses().items() if use == "run time"}
    here = needed("overclaim")
    assert len(here) > 20
    assert here <= running


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MPL-2.0 AND MIT", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND (GPL-3.0-only OR ISC)", True),
        ("GPL-3.0-or-later", False),
        ("MIT AND LGPL-2.1-only", False),
        ("AGPL-3.0-only OR GPL-2.0-only", False),
        ("Proprietary", False),
    ],
)
def test_which_licences_are_compatible(expression, allowed):
    assert dependencies.is_allowed(expression) is allowed


def test_a_package_without_a_licence_is_an_error(monkeypatch):
    monkeypatch.setattr(dependencies, "metadata", lambda name: Message())
    with pytest.raises(ValueError, match="numpy does not tell its licence"):
        dependencies.licence("numpy", {})


@pytest.mark.parametrize("lock", [LOCK, SITE_LOCK], ids=["development", "site"])
def test_every_locked_package_has_its_hashes_and_no_address(lock):
    pinned = [part for part in re.split(r"\n(?=[a-z])", lock) if not part.startswith("#")]
    assert len(pinned) > 80
    for part in pinned:
        assert re.match(r"[a-z0-9-]+(\[[a-z,]+\])?==[^ ]+( ; [^\\\n]+)? \\\n    --hash=sha256:[0-9a-f]{64}\b", part), (
            part[:80]
        )
    assert not re.search(r"https?:|file:|--(extra-)?index|--find-links|@ ", lock)


def test_the_site_has_the_versions_of_development():
    """What both lock is one package: pages run and are built with the same code."""
    pins = [set(re.findall(r"(?m)^([a-z0-9-]+)(?:\[.*?\])?(==[^ ]+)", lock)) for lock in (LOCK, SITE_LOCK)]
    names = {name for name, _ in pins[0]}
    assert {name for name, _ in pins[1]} >= {"mkdocs", "mkdocs-material", "nbclient", "ipykernel"}
    assert {(name, pin) for name, pin in pins[1] if name in names} <= pins[0]
    assert dependencies.locked().keys() == names


def test_what_is_needed_with_an_extra_is_locked_with_it():
    """Else pip looks for the newest release with the extra, and refuses it for want of a hash."""
    extras = {
        name: set(filter(None, more.split(","))) for name, more in re.findall(r"(?m)^([a-z0-9-]+)\[(.*?)\]==", LOCK)
    }
    missing, found = {}, 0
    for name in dependencies.locked():
        with contextlib.suppress(PackageNotFoundError):  # locked for another Python or system
            for need in map(Requirement, requires(name) or ()):
                if need.extras and (need.marker is None or need.marker.evaluate({"extra": ""})):
                    found += 1
                    child = canonicalize_name(need.name)
                    missing |= {child: need.extras} if not need.extras <= extras.get(child, set()) else {}
    assert found
    assert missing == {}


@cache
def distributions():
    """Distributions by the modules that they install: it reads what each says of itself."""
    return packages_distributions()


def imported(folders):
    """Top-level modules that are neither ours nor Python's, by the files below some folders that import them."""
    importers = {}
    for file in (file for folder in folders for file in (ROOT / folder).rglob("*.py")):
        own = {other.stem for other in file.parent.glob("*.py")}
        for node in statements(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in {name.partition(".")[0] for name in names} - own - {"overclaim", *sys.stdlib_module_names}:
                importers.setdefault(name, []).append(str(file.relative_to(ROOT)))
    return importers


@pytest.mark.parametrize(
    ("folders", "groups"),
    [
        (
            ("audit", "learners", "mechanisms", "reports", "testing"),
            ("dependencies", "accounting", "cluster", "evidence", "figures"),
        ),
        (("tests", "docs"), ("dependencies", "cluster", "docs", "dev")),
        (("examples",), ("dependencies", "adapters", "trainings", "libraries")),
    ],
)
def test_what_is_imported_is_declared(folders, groups):
    """A package that another one happens to bring may be gone with the next version of that."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {"dependencies": project["dependencies"], **project["optional-dependencies"]}
    lists = [path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").glob("libraries*.txt")]
    declared["libraries"] = [line for text in lists for line in text.splitlines() if line and line[0] != "#"]
    allowed = {canonicalize_name(Requirement(need).name) for group in groups for need in declared[group]}
    allowed.add("pytest")  # the plugin is loaded by pytest alone
    places = {"snsql": ["smartnoise-sql"], "snsynth": ["smartnoise-synth"], **distributions()}
    undeclared = {
        name: files
        for name, files in imported(folders).items()
        if not {canonicalize_name(place) for place in places.get(name, [name])} & allowed
    }
    assert undeclared == {}


spec = importlib.util.spec_from_file_location("ci_versions", ROOT / ".ci" / "versions.py")
versions = importlib.util.module_from_spec(spec)
spec.loader.exec_module(versions)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("python", versions.PYTHONS)
def test_ci_installs_the_lowest_versions_that_are_allowed(python):
    """Each package once, at its own bound for this Python: `make lowest` fails if they do not go together."""
    pinned = dict(pin.split("==") for pin in versions.pins(PROJECT, python, "lowest"))
    names = {Requirement(need).name for need in PROJECT["dependencies"]}
    assert names < set(pinned)
    assert {"distributed", "pytest"} < set(pinned)
    assert pinned["numpy"] == {"3.11": "1.26", "3.13": "2.1"}[python]
    for need in versions.requirements(PROJECT, python):
        assert need.specifier.contains(pinned[need.name])
        assert f"{need.name}{need.specifier}" in versions.pins(PROJECT, python, "newest")


def test_ci_tries_the_lowest_nightly_the_newest_and_both_say_what_they_skip(monkeypatch):
    for file, tried in ((".ci/run", r"^step make .*\blowest$"), ("Makefile", r"^nightly: .*\bnewest$")):
        assert re.search(tried, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    monkeypatch.setattr(versions, "PYTHONS", ("2.6", f"{sys.version_info.major}.{sys.version_info.minor}"))
    (_, none), (_, here) = versions.interpreters()
    assert none is None
    assert here == sys.executable
