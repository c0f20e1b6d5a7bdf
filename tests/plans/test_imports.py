"""A run is resumed only with the code it was begun with: users' files, all that they import, and our own."""

import hashlib
import shutil
import sys

import pytest

from overclaim.audit.execution.provenance import changed, digest_with_imports, environment, loaded_files
from overclaim.audit.plans.ledger import Ledger
from overclaim.audit.plans.lock import LedgerError
from overclaim.audit.plans.plan import Plan, read_plan
from overclaim.audit.plans.targets import resolve
from overclaim.audit.plans.tasks import Task

#: A target and what it imports, in every way there is.
FILES = {
    "target.py": """
import json, numpy
import helper
from package import member as renamed
from package.sub.deep import VALUE
import package.other as other
class Learner:
    def act(self):
        import lazy
        from importlib import import_module
        import_module("dynamic")
        __import__("builtin_way")
        load("by_path.py")
""",
    "helper.py": "import second\n",
    "second.py": "import helper  # a circle\n",
    "lazy.py": "",
    "dynamic.py": "",
    "builtin_way.py": "",
    "by_path.py": "",
    "package/__init__.py": "",
    "package/member.py": "from . import sibling\nfrom .sub import *\n",
    "package/sibling.py": "",
    "package/other.py": "try:\n    import absent\nexcept ImportError:\n    pass\n",
    "package/sub/__init__.py": "from ..uncle import UNCLE\n",
    "package/sub/deep.py": "VALUE = 1\n",
    "package/uncle.py": "UNCLE = 1\n",
    "spaced/inner.py": "",
}
STRANGERS = ("stranger.py", "package/stranger.py")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in {**FILES, **dict.fromkeys(STRANGERS, "")}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "target.py").write_text(FILES["target.py"] + "import spaced.inner\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.few(10)
@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_an_edit_of_whatever_is_imported_is_seen(folder, monkeypatch, name, by_name):
    monkeypatch.syspath_prepend(folder)
    place = "target" if by_name else "target.py"
    before = digest_with_imports(place)
    assert digest_with_imports(place) == before
    with (folder / name).open("a") as file:
        file.write("\nedited = True\n")
    assert digest_with_imports(place) != before
    assert not {"helper", "package", "lazy"} & set(sys.modules)  # read, not run


@pytest.mark.parametrize("name", STRANGERS)
def test_other_files_do_not_matter(folder, name):
    before = digest_with_imports("target.py")
    (folder / name).write_text("edited = True\n")
    (folder / "record.json").write_text("{}")
    assert digest_with_imports("target.py") == before


@pytest.mark.parametrize(
    "text", ["def (", "import \x00", "from . import x", "import .", "import_module(1)", "from .... import y"]
)
def test_what_is_no_code_has_a_hash_too(folder, text):
    (folder / "target.py").write_text(text)
    assert digest_with_imports("target.py")
    assert digest_with_imports("absent.py") != digest_with_imports("target.py")
    assert digest_with_imports("no.such.module")


def plan():
    return Plan((Task(target="target.py:Learner", epsilon=1.0),))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["helper.py", "package/uncle.py", "lazy.py"])
def test_a_resumed_run_meets_the_same_imports(folder, name):
    ledger = Ledger.begin(folder / "out", plan(), resume=False)
    ledger.keep_outcome(0, [None, None])
    assert Ledger.begin(folder / "out", plan(), resume=True).key == ledger.key
    (folder / name).write_text("edited = True\n")
    with pytest.raises(LedgerError, match="a target's file has changed, or one that it imports"):
        Ledger.begin(folder / "out", plan(), resume=True)


def test_a_file_that_only_playing_loads_is_met_again(folder, monkeypatch):
    """Its name is computed: no reader of the code knows it."""
    monkeypatch.syspath_prepend(folder)
    ledger = Ledger.begin(folder / "out", plan(), resume=False)
    __import__("strang" + "er")
    try:
        ledger.page(0).keep_totals("certify", 0, [1.0])
        assert str(folder / "stranger.py") in loaded_files()
        assert Ledger.begin(folder / "out", plan(), resume=True).key == ledger.key
        (folder / "stranger.py").write_text("edited = True\n")
        assert changed(loaded_files()) == []
        with pytest.raises(LedgerError, match=r"stranger\.py' has changed since"):
            Ledger.begin(folder / "out", plan(), resume=True)
    finally:
        del sys.modules["stranger"]


def test_packages_without_a_file_are_followed_at_every_depth(tmp_path, monkeypatch):
    """Two of them, one in the other, ended `run` with an internal error; `check` took the same target."""
    monkeypatch.syspath_prepend(tmp_path)
    deep = tmp_path / "outer_space" / "inner" / "deep.py"
    deep.parent.mkdir(parents=True)
    (tmp_path / "uses_space.py").write_text("import outer_space.inner.deep\nfrom outer_space.inner import deep\n")
    seen = set()
    for text in ("VALUE = 1\n", "VALUE = 2\n"):
        deep.write_text(text)
        for place in (str(tmp_path / "uses_space.py"), "uses_space", "outer_space.inner.deep"):
            seen.add((place, digest_with_imports(place)))
    assert len(seen) == 6


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
    __import__("edited_dependency")
    try:
        ledger.keep_outcome(0, [None, None])
        assert Ledger.begin(folder / "out", plan(), resume=True).key == ledger.key
        (site / "edited_dependency.py").write_text("SCALE = 2\n")
        with pytest.raises(LedgerError, match=r"edited_dependency\.py' has changed since"):
            Ledger.begin(folder / "out", plan(), resume=True)
    finally:
        del sys.modules["edited_dependency"]


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
def test_targets_that_import_different_modules_of_one_name_are_refused(tmp_path, monkeypatch, late):
    body = "    from helper import SCALE\n" if late else "    pass\n"
    for folder, scale in (("a", 1.0), ("b", 0.25)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helper.py").write_text(f"SCALE = {scale}\n")
        (tmp_path / folder / "mech.py").write_text(f"{'' if late else 'import helper'}\ndef count(data, rng):\n{body}")
    monkeypatch.chdir(tmp_path)
    claim = '[[claims]]\ntarget = "{}/mech.py:count"\nepsilon = 1.0\nleft = [1]\nright = [0]\n'
    plan = tmp_path / "plan.toml"
    plan.write_text(claim.format("a") + claim.format("b"))
    with pytest.raises(ValueError, match=r"a/mech\.py and b/mech\.py import different modules called helper"):
        read_plan(plan)
    (tmp_path / "b" / "helper.py").write_text("SCALE = 1.0\n")  # the same text: nothing to mistake
    assert len(read_plan(plan).tasks) == 2


def test_modules_that_no_target_imports_may_share_a_name(tmp_path, monkeypatch):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for name in ("helper", "random"):
            (tmp_path / folder / f"{name}.py").write_text(f"# {folder}\n")
        (tmp_path / folder / "mech.py").write_text(f"# {folder}\nimport random\ndef count(data, rng): pass\n")
    monkeypatch.chdir(tmp_path)
    claim = '[[claims]]\ntarget = "{}/mech.py:count"\nepsilon = 1.0\nleft = [1]\nright = [0]\n'
    (tmp_path / "plan.toml").write_text(claim.format("a") + claim.format("b"))
    assert len(read_plan(tmp_path / "plan.toml").tasks) == 2


def test_a_target_imports_from_its_own_folder_before_any_other(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "own_helper.py").write_text("SCALE = 0.25\n")
    (tmp_path / "a" / "own_helper.py").write_text("SCALE = 1.0\n")
    (tmp_path / "a" / "mech.py").write_text("from own_helper import SCALE\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])  # as with python -m, or by PYTHONPATH
    monkeypatch.setattr(sys, "modules", sys.modules.copy())
    assert resolve(f"{tmp_path}/a/mech.py:SCALE") == 1.0
