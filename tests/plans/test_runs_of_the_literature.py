"""The rule on the runs of falsified rows: from claim and exact law, before any run, with power to spare."""

import pytest

from overclaim.audit.plans.plan import FEWEST_FALSIFIED, SPARE, case_task, literature, runs_of
from overclaim.benchmarks.catalogue.exact_laws import falsified, law_of
from overclaim.learners.catalogue.entries import entries
from overclaim.learners.catalogue.exact_laws import EXACT_LAWS, key_of

ROWS = {key_of(entry, case): (entry, case) for entry, case in falsified()}
#: Rows whose law takes more than a tenth of a second.
SLOW = ("ftrl-experts actions", "reduction-exp2", "batched-exp3", "exp4-local", "ftrl-", "gaussian", "pftal")


def test_every_law_is_of_one_row_that_is_there():
    """A row that changes leaves its law behind: benchmarks/catalogue/exact_laws.py writes the table anew."""
    assert len(ROWS) == sum(1 for _ in falsified())
    assert EXACT_LAWS.keys() <= ROWS.keys()


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=[pytest.mark.slow] if any(s in key for s in SLOW) else []) for key in EXACT_LAWS]
)
def test_the_table_has_what_the_exact_law_says(key):
    excess, needed = EXACT_LAWS[key]
    computed = law_of(*ROWS[key], literature().alpha)
    assert computed is not None
    assert computed[0] == pytest.approx(excess, abs=2e-4)
    assert computed[1] == pytest.approx(needed, rel=0.02)  # rows that come or go change each certificate's error


def test_the_rule_never_adds_runs_and_is_for_falsified_rows_with_a_law():
    changed = 0
    for entry in entries().values():
        for case in entry.cases:
            runs = runs_of(entry, case)
            if case.expected != "falsified" or key_of(entry, case) not in EXACT_LAWS:
                assert runs == case.runs
            assert min(case.runs, FEWEST_FALSIFIED) <= runs <= case.runs
            changed += runs < case.runs
    assert 0 < changed <= len(EXACT_LAWS)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "key",
    [
        "agarwal-singh/ftpl-simplex publication replace symmetric T=2 K=1 (3, 0.1) base=2, theorem=A.1",
        "ene-nguyen-vladu/tree-aggregation publication replace l1-ball T=4 K=1 (1, 0)",
    ],
)
def test_a_row_by_the_rule_is_falsified(key, seed):
    """One with little to spare and one with much. Each misses once in a million, by the rule."""
    entry, case = ROWS[key]
    task = case_task(entry, case, seed, literature().confidence)
    assert task.budget.runs == max(FEWEST_FALSIFIED, SPARE * EXACT_LAWS[key][1]) < case.runs
    assert task.prepare().audit().verdict.value == "FALSIFIED"
