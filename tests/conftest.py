"""What all tests share. No test fails because a machine is slow: hypothesis times its examples by default."""

import gc
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

#: Examples are the same every time; `pytest --hypothesis-profile=explore` draws new ones.
settings.register_profile("explore", settings(), deadline=None)
settings.register_profile("same", settings(), deadline=None, derandomize=True)
settings.load_profile("same")
#: Lines are broken alike whatever terminal the tests are started in.
os.environ["COLUMNS"] = "80"


class PlainRoot:
    """Pytest imports a package that it collects, and the root is one: under the name of the clone's folder.

    In a clone that is called as a dependency is, `dask` say, that name would hide the dependency from the tests.
    """

    def pytest_collect_directory(self, path, parent):
        return pytest.Dir.from_parent(parent, path=path) if path == ROOT else None


def pytest_configure(config):
    config.pluginmanager.register(PlainRoot())


@pytest.fixture(autouse=True, scope="module")
def what_is_kept():
    """Let no later collection of garbage walk through what is kept: statsmodels asks for one at each of Holm's.

    Nor one at the end of the process, which took ten seconds.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def pictures():
    """Draw no figures, most of a short run's time; a nearer fixture of this name draws them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("overclaim.reports.formats.figures.drawn", lambda item: [])
        yield


@pytest.fixture(autouse=True, scope="module")
def power_tests():
    """Leave power tests out where none is asked for: they double an audit's time. A nearer fixture makes them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("overclaim.audit.verdicts.blind_spot.usual_power", lambda: None)
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Move all cases of a test but those that its mark `few` names into the tier that it names."""
    seen, missing = Counter(), set()
    for item in items:
        mark = item.get_closest_marker("few")
        if mark is None:
            continue
        test, case = item.nodeid.partition("[")[0], item.callspec.id
        if test not in seen:
            missing |= {(test, name) for name in mark.args if isinstance(name, str)}
        seen[test] += 1
        first = mark.args[0] if isinstance(mark.args[0], int) else 0
        if case in mark.args or seen[test] <= first:
            missing.discard((test, case))
        else:
            tier = mark.kwargs.get("rest", "slow")
            item.add_marker(getattr(pytest.mark, tier)(reason="only its case differs from its siblings"))
    single = config.getoption("lf", default=False) or any("::" in word for word in config.args)
    if missing and not single:
        raise pytest.UsageError(f"mark few: expected ids of cases, got {sorted(missing)}")


@pytest.fixture
def uniform_class():
    """A user's class that plays every arm alike, whatever it is told: it has nothing to leak."""

    class Uniform:
        feedback = "bandit"

        def __init__(self, arms, rounds, rng):
            self.arms, self.rng = arms, rng

        def act(self):
            return int(self.rng.integers(self.arms))

        def update(self, feedback):
            pass

    return Uniform
