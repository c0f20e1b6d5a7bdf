"""Every row of the catalogue that survives can catch something, and every entry has one that catches little."""

from collections import defaultdict

import pytest

from overclaim.audit.plans.plan import literature
from overclaim.audit.plans.plan_schema import ALLOWED


@pytest.mark.slow  # audits the literature: a minute of processor time
def test_no_row_is_kept_that_sees_nothing_and_no_entry_without_one_that_sees_much():
    factors = defaultdict(list)
    for task in literature().tasks:
        if task.expected != "survived":
            factors[task.target].append(1.0)  # what is falsified was seen
            continue
        prepared = task.prepare()
        spot = prepared.audit().blind_spot
        if spot is None:
            assert prepared.weakening is False, task
            continue
        assert task.untested == ALLOWED or not spot.untested, (task, spot)
        assert task.untested == ALLOWED or spot.factor <= 10, (task, spot)
        factors[task.target].append(spot.factor or 1000.0)
    assert {name for name, found in factors.items() if min(found) > 1.5} == set()
