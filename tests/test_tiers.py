"""The mark `few`: of a parametrised test only some cases stay in its tier."""

from types import SimpleNamespace

import pytest


class Case:
    """An item of a parametrised test, as pytest collects it."""

    def __init__(self, case, *named, **rest):
        self.nodeid, self.callspec = f"tests/test_x.py::test_y[{case}]", SimpleNamespace(id=case)
        self.mark, self.tiers = pytest.mark.few(*named, **rest).mark, []

    def get_closest_marker(self, name):
        return self.mark if name == "few" else None

    def add_marker(self, mark):
        self.tiers.append(mark.name)


@pytest.fixture
def tiers(request):
    """Return a function of what `few` names: the tier of each of three cases that it adds."""
    conftest = request.config.pluginmanager.getplugin(str(request.config.rootpath / "tests" / "conftest.py"))

    def of(*named, asked=("tests",), **rest):
        items = [Case(case, *named, **rest) for case in "abc"]
        config = SimpleNamespace(args=asked, getoption=lambda name, default: default)
        conftest.pytest_collection_modifyitems(config, items)
        return [item.tiers for item in items]

    return of


def test_the_first_cases_stay_or_those_that_are_named(tiers):
    assert tiers(2) == [[], [], ["slow"]]
    assert tiers("b") == [["slow"], [], ["slow"]]
    assert tiers("a", "c", rest="nightly") == [[], ["nightly"], []]


def test_a_case_that_does_not_exist_is_an_error_unless_single_cases_are_asked_for(tiers):
    """Else a test whose cases have new names would leave the quick tests without a word."""
    with pytest.raises(pytest.UsageError, match="expected ids of cases"):
        tiers("b", "gone")
    assert tiers("gone", asked=["tests/test_x.py::test_y"]) == [["slow"]] * 3
