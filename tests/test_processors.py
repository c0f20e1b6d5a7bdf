"""The same choices and counts on every processor: a plan and the documentation without what not every machine has.

Another processor is imitated by a process in which NumPy, OpenBLAS and libm use nothing beyond their baseline. On a
machine that has nothing beyond it, both processes are alike.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from optuna.samplers._tpe import parzen_estimator  # the module whose sorting the test disturbs

from overclaim.audit.execution.processor import one_thread, processor
from overclaim.audit.search.proposals import Proposals
from overclaim.audit.spaces.families import first_round
from overclaim.audit.spaces.pair_space import PairSpace
from overclaim.learners import BatchedLaplace, Exp3
from overclaim.mechanisms.claim import Claim
from overclaim.tests.support.processors import plain, python

ROOT = Path(__file__).resolve().parents[1]

#: Such claims differed between processors: by the pair, the share, the event or the attack.
PLAN = """
[[claims]]
target = "asi-raman-talwar/batched-threshold"
losses = "symmetric"
rounds = 2
arms = 3
runs = 20_000

[[claims]]
target = "asi-raman-talwar/exp4-local"
rounds = 4
runs = 4000

[[claims]]
target = "smith-thakurta/pftal-bandit"
surface = "release"
rounds = 4
runs = 20_000

[[claims]]
target = "ene-nguyen-vladu/private-bandit-laplace"
surface = "release"
rounds = 4
runs = 4000

[[claims]]
target = "agarwal-singh/reduction-scrible-simplex"
rounds = 2
runs = 8000

[[claims]]
target = "mechanisms/svt3"
runs = 8000
"""
#: What an audit chose and counted; reports, figures and witnesses take longer and choose nothing more of it.
RUN = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from overclaim.audit.plans.plan import read_plan
from overclaim.audit.execution.processor import processor
claims = []
for task in read_plan(Path(sys.argv[1])).without_blind_spots().tasks:
    result = task.prepare().audit()
    event, pair = repr(result.event), result.pair.to_json()
    chosen = {"target": task.target, "attack": result.attack, "event": event, "pair": pair}
    counted = {"verdict": result.verdict.value, "counts": asdict(result.certificate.counts)}
    claims.append({"same": chosen | counted, "epsilon_lower": result.epsilon_lower})
print(json.dumps({"claims": claims, "processor": processor()}))
"""
PAGE = """
import sys, tempfile
sys.path.insert(0, sys.argv[1])
import commands
page = commands.ROOT / "docs" / sys.argv[2]
text = page.read_text(encoding="utf-8")
with tempfile.TemporaryDirectory() as folder:
    printed = commands.Page(commands.Path(folder)).run(text)
differ = [pair for pair in zip(text.split("\\n"), printed.split("\\n")) if pair[0] != pair[1]]
assert printed == text, differ[:3]
"""


@pytest.mark.slow(reason="two whole runs")
@pytest.mark.skipif(not plain(), reason="nothing of this processor can be switched off")
def test_a_plan_has_the_same_counts_without_what_this_processor_has(tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    records = [json.loads(python(RUN, str(plan), environment=environment)) for environment in ({}, plain())]
    for whole, other in zip(*(record["claims"] for record in records), strict=True):
        assert whole["same"] == other["same"]
        assert whole["epsilon_lower"] == pytest.approx(other["epsilon_lower"], rel=1e-9)
    whole, other = (record["processor"] for record in records)
    assert set(other["numpy"]) <= set(whole["numpy"])
    if "NPY_DISABLE_CPU_FEATURES" in plain():
        assert whole["numpy"] != other["numpy"]  # the setting reaches NumPy


@pytest.mark.few("add-a-learner.md", rest="nightly")
@pytest.mark.skipif(not plain(), reason="nothing of this processor can be switched off")
@pytest.mark.slow(reason="every command of a page")
@pytest.mark.parametrize("page", ["mechanisms.md", "measures.md", "add-a-learner.md", "tutorial.md"])
def test_the_documentation_prints_the_same_without_what_this_processor_has(page):
    """`test_docs` compares the same pages with what this processor prints."""
    python(PAGE, str(ROOT / "docs"), page, environment=plain())


def test_the_processor_is_named():
    facts = processor()
    assert facts["machine"] == os.uname().machine
    assert all(isinstance(name, str) for name in (*facts["numpy"], *facts["blas"], facts["libc"]))


def test_threads_are_limited_once_and_again_when_more_is_loaded(monkeypatch):
    """Each time takes milliseconds, and a search fits hundreds of times; a library may come with a later import."""
    import threadpoolctl

    limited, real = [], threadpoolctl.threadpool_limits
    monkeypatch.setattr(threadpoolctl, "threadpool_limits", lambda limit: limited.append(limit) or real(limit))
    with one_thread():
        with one_thread():
            assert {pool["num_threads"] for pool in threadpoolctl.threadpool_info()} == {1}
        assert limited == [1]
        monkeypatch.setitem(sys.modules, "brings_a_library_of_its_own", sys)
        with one_thread():
            assert limited == [1, 1]
    with one_thread():
        assert limited == [1, 1, 1]


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
def test_proposals_do_not_hang_on_the_order_of_equal_numbers(seed, monkeypatch):
    """NumPy's unstable sort, with which the estimator orders coordinates, has another order of equals with AVX-512.

    Some pairs are among those of a search twice.
    """
    claim = Claim(epsilon=1.0)
    learner = BatchedLaplace(Exp3(arms=2, eta=0.5, gamma=0.1), epsilon=1.0, batch=1)
    space = PairSpace.of(learner, claim, 8)
    families = first_round(space.alphabet, 8, 1)

    def proposed():
        proposals, worth, pairs = Proposals(space, seed), np.random.default_rng(seed), []
        for pair in [*families, *families]:
            proposals.know(pair, round(float(worth.random()), 2))
        while len(pairs) < 40 and (pair := proposals.next()) is not None:
            pairs.append(repr(pair.to_json()))
            proposals.tell(round(float(worth.random()), 2))
        return pairs

    class Backwards:
        """NumPy with another order of equals."""

        def __getattr__(self, name):
            return getattr(np, name)

        @staticmethod
        def argsort(numbers, **how):
            return np.lexsort((-np.arange(len(numbers)), numbers))

    wanted = proposed()
    assert len(wanted) > 10
    monkeypatch.setattr(parzen_estimator, "np", Backwards())
    assert proposed() == wanted
