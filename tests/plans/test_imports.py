"""A run goes on only with what it was begun with: the files that its claims read, what is installed, our own code."""

import hashlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from overclaim.audit.execution.file_reads import collected
from overclaim.audit.execution.provenance import environment
from overclaim.audit.plans.ledger import Ledger
from overclaim.audit.plans.lock import LedgerError
from overclaim.audit.plans.plan import Plan
from overclaim.audit.plans.targets import resolve
from overclaim.audit.plans.tasks import Task

#: A target and what it reads, in every way there is.
FILES = {
    "target.py": """
import json, numpy
import helper
from package import member
with open("table.json") as file:
    DATA = json.load(file)
class Learner:
    def act(self):
        import lazy
        __import__("strang" + "er")
        return numpy.load("weights.npy")
""",
    "helper.py": "import second\n",
    "second.py": "import helper  # a circle\n",
    "package/__init__.py": "",
    "package/member.py": "from . import sibling\n",
    "package/sibling.py": "",
    "lazy.py": "",
    "stranger.py": "",
    "table.json": "[1]",
    "unread.py": "",
}
READ = sorted({*FILES, "weights.npy"} - {"unread.py"})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    np.save(tmp_path / "weights.npy", [1.0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


def plan():
    return Plan((Task(target="target.py:Learner", epsilon=1.0), Task(target="mechanisms/laplace")))


def begun(folder):
    """Return the ledger of a run whose claims have kept a block each, the first with all that it reads."""
    ledger = Ledger.begin(folder / "out", plan(), resume=False)
    with collected():
        resolve("target.py:Learner")().act()
        ledger.page(0).keep_totals("certify", 0, [1.0])
    ledger.page(1).keep_totals("certify", 0, [1.0])
    return ledger


@pytest.mark.few(1)
@pytest.mark.parametrize("name", READ)
def test_a_claim_whose_files_have_changed_is_begun_anew(folder, name):
    ledger = begun(folder)
    read = {Path(path) for path in ledger.files()[0] if path.startswith(str(folder))}
    assert {path.relative_to(folder).as_posix() for path in read} == set(READ)
    assert Ledger.begin(folder / "out", plan(), resume=True).edited == ()
    with (folder / name).open("a") as file:
        file.write("\n")
    resumed = Ledger.begin(folder / "out", plan(), resume=True)
    assert (resumed.key, resumed.edited) == (ledger.key, ((0, str(folder / name)),))
    assert [resumed.page(claim).recall_totals("certify") for claim in (0, 1)] == [{}, {0: [1.0]}]
    assert Ledger.begin(folder / "out", plan(), resume=True).edited == ()  # what it is now


def test_other_files_do_not_matter(folder):
    begun(folder)
    (folder / "unread.py").write_text("edited = True\n")
    assert Ledger.begin(folder / "out", plan(), resume=True).edited == ()


def installed(site, name, version, files, record="RECORD"):
    """Put a distribution into a folder of what is installed, as pip does; `record` is what it leaves of itself."""
    about = site / f"{name}-{version}.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"{about.name}/METADATA,,"]
    for path, text in files.items():
        (site / path).write_text(text)
        lines.append(f"{path},sha256={hashlib.sha256(text.encode()).hexdigest()},{len(text)}")
    if record is not None:
        (about / record).write_text("\n".join(lines) + "\n")
    return about


def upgrade(site):
    shutil.rmtree(site / "dependency-1.0.dist-info")
    installed(site, "dependency", "1.1", {"dependency.py": "SCALE = 2\n", "table.bin": "1"})


def rebuild(site):
    """What is compiled, or a table, is another one: of the same version."""
    installed(site, "dependency", "1.0", {"dependency.py": "SCALE = 1\n", "table.bin": "2"})


def remove(site):
    shutil.rmtree(site / "dependency-1.0.dist-info")


def add(site):
    installed(site, "another", "1.0", {"another.py": ""})


@pytest.mark.few(1)
@pytest.mark.parametrize("change", [upgrade, rebuild, remove, add])
def test_a_resumed_run_meets_what_was_installed(folder, monkeypatch, change):
    """A package was upgraded, and its claims survived still by what they had before."""
    site = folder / "venv" / "site-packages"
    installed(site, "dependency", "1.0", {"dependency.py": "SCALE = 1\n", "table.bin": "1"})
    monkeypatch.syspath_prepend(site)
    ledger = Ledger.begin(folder / "out", plan(), resume=False)
    ledger.keep_outcome(0, [None, None])
    assert Ledger.begin(folder / "out", plan(), resume=True).key == ledger.key
    change(site)
    name = "another" if change is add else "dependency"
    with pytest.raises(LedgerError, match=rf"of another environment \({name} changed\)"):
        Ledger.begin(folder / "out", plan(), resume=True)


@pytest.mark.parametrize("record", [None, "RECORD"])
def test_an_edited_installed_source_is_seen(folder, monkeypatch, record):
    """No RECORD tells of it, and some distributions have none."""
    site = folder / "venv" / "site-packages"
    installed(site, "edited_dependency", "1.0", {"edited_dependency.py": "SCALE = 1\n"}, record)
    monkeypatch.syspath_prepend(site)
    ledger = Ledger.begin(folder / "out", plan(), resume=False)
    with collected():
        __import__("edited_dependency")
        ledger.keep_outcome(0, [None, None])
    assert Ledger.begin(folder / "out", plan(), resume=True).kept == 1
    (site / "edited_dependency.py").write_text("SCALE = 2\n")
    resumed = Ledger.begin(folder / "out", plan(), resume=True)
    assert (resumed.kept, resumed.edited) == (0, ((0, str(site / "edited_dependency.py")),))


def test_an_interpreter_of_another_build_is_another_environment(folder, monkeypatch):
    ledger = Ledger.begin(folder / "out", plan(), resume=False)
    ledger.keep_outcome(0, [None, None])
    monkeypatch.setattr(sys, "version", f"{sys.version} rebuilt")
    with pytest.raises(LedgerError, match=r"of another environment \(the interpreter changed\)"):
        Ledger.begin(folder / "out", plan(), resume=True)


def test_no_metadata_is_too_broken_for_a_run(tmp_path, monkeypatch):
    """Neither what an editable installation leaves, nor no text, nor nothing."""
    monkeypatch.syspath_prepend(tmp_path)
    known = environment()
    (tmp_path / "old.egg-info").mkdir()
    (tmp_path / "old.egg-info" / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: old\n")
    (tmp_path / "empty-1.0.dist-info").mkdir()
    installed(tmp_path, "latin", "1.0", {})
    (tmp_path / "latin-1.0.dist-info" / "RECORD").write_bytes("é,,\n".encode("latin-1"))
    assert environment().keys() - known.keys() == {"old", "latin", "without a name"}


def test_of_two_distributions_with_one_name_the_first_on_the_path_counts(tmp_path, monkeypatch):
    for version in ("1.0", "1.1"):
        installed(tmp_path / version, "twice", version, {})
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "1.0"), str(tmp_path / "1.1")])
    known = environment()["twice"]
    monkeypatch.setattr(sys, "path", [*sys.path[:-2], *reversed(sys.path[-2:])])
    assert environment()["twice"] == " ".join(reversed(known.split()))


def test_our_own_code_counts(folder, monkeypatch):
    ledger = Ledger.begin(folder / "out", plan(), resume=False)
    ledger.keep_outcome(0, [None, None])
    monkeypatch.setattr("overclaim.audit.plans.ledger.own_code", lambda: "another")
    with pytest.raises(LedgerError, match=r"this is overclaim .* code another: its blocks would not fit"):
        Ledger.begin(folder / "out", plan(), resume=True)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("inner", ["helper", "space.helper"])
def test_targets_that_import_modules_of_one_name_have_their_own(folder, monkeypatch, late, inner):
    """They were refused: a process holds one module of a name."""
    monkeypatch.syspath_prepend(folder)
    body = f"    from {inner} import SCALE\n    return SCALE\n"
    head = "" if late else f"from {inner} import SCALE\n"
    for place, scale in (("a", 1.0), ("b", 0.25), ("", 4.0)):
        path = folder / place / f"{inner.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"SCALE = {scale}\n")
        (folder / place / "mech.py").write_text(f"{head}def count():\n{body}")
    for place, scale in (("a/", 1.0), ("b/", 0.25), ("a/", 1.0), ("", 4.0), ("b/", 0.25)):
        assert resolve(f"{place}mech.py:count")() == scale
    assert resolve("mech:count")() == 4.0


def test_a_target_imports_from_its_own_folder_before_any_other(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "own_helper.py").write_text("SCALE = 0.25\n")
    (tmp_path / "a" / "own_helper.py").write_text("SCALE = 1.0\n")
    (tmp_path / "a" / "mech.py").write_text("from own_helper import SCALE\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])  # as with python -m, or by PYTHONPATH
    monkeypatch.setattr(sys, "modules", sys.modules.copy())
    assert resolve(f"{tmp_path}/a/mech.py:SCALE") == 1.0
