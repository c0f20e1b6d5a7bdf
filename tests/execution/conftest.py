"""What the tests of a cluster share."""

import pytest

from overclaim.tests.support.machines import PLAN, Machines
from overclaim.tests.support.own_code import COIN


@pytest.fixture(scope="package")
def machines(tmp_path_factory):
    started = Machines(tmp_path_factory.mktemp("machines"))
    yield started
    started.kill_all()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "mine.py").write_text(COIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path
