"""The gate's p-values where nothing changed, in every measure: of a baseline's event, counted then and now."""

from dataclasses import replace
from functools import partial

import pytest
from scipy import stats

from overclaim import Claim, falsify_mechanism
from overclaim.audit.evidence.frozen import Frozen, freeze
from overclaim.mechanisms.measures.approximate import ApproxDP, Profile
from overclaim.mechanisms.measures.gaussian_dp import GDP
from overclaim.mechanisms.measures.renyi import RDP, ZCDP
from overclaim.reports.baseline import Again, compare

COMPARISONS, RUNS, RUNS_NOW = 400, 400, 300
#: Shares of p-values, each looked at: of an unchanged target so many are at most that.
SHARES = (0.05, 0.2, 0.5)
MEASURES = [
    ApproxDP(3.0),
    ApproxDP(1.0, 0.1),
    ApproxDP(0.0, 0.5),
    GDP(2.0),
    ZCDP(1.0),
    RDP(4.0, 2.0),
    Profile(((0.0, 0.5), (1.0, 0.1))),
]


def laplace(scale, data, draws, runs):
    return data + scale * draws.generator.laplace(size=runs)


def categories(kept, data, draws, runs):
    law = [0.5, 0.3, 0.2] if data else [0.2, 0.3, 0.5]
    return draws.generator.choice(3, size=runs, p=[kept * p + (1 - kept) / 3 for p in law])


def target(law, parameter):
    made = partial(law, parameter)
    made.batched = True
    return made


def p_values(measure, before, after):
    """Return those of as many comparisons of one event, each on counts of its own then and now."""
    claim = Claim(measure=measure)
    result = falsify_mechanism(before, claim, left=1, right=0, runs=2000, seed=3)
    frozen = freeze(before, result, budget=2000)
    record = {
        "claimed": {"epsilon": claim.epsilon, "delta": claim.delta},
        "measure": measure.to_json(),
        "epsilon_lower": result.epsilon_lower,
        "lower": result.lower,
        "method": result.certificate.method,
        "counts": result.certificate.counts.to_json(),
        "runs": result.runs,
        "mechanism": True,
    }
    old = []
    for i in range(COMPARISONS):
        then = replace(frozen, counts=frozen.again(before, result.pair, "actions", key=["then", i], runs=RUNS))
        old.append({**record, "name": f"claim {i}", "replay": f"claim {i}", "frozen": then.to_json()})

    def again(pairs):
        events = [Frozen.from_json(was["frozen"]) for _, was in pairs]
        return [Again(event.again(after, result.pair, "actions", key="now", runs=RUNS_NOW)) for event in events]

    new = [dict(claim) for claim in old]
    compare(new, {"claims": old}, alpha=0.05, again=again)
    return [claim["baseline"]["p_value"] for claim in new]


@pytest.mark.few(2, rest="nightly")
@pytest.mark.slow(reason="400 comparisons")
@pytest.mark.parametrize("law", [laplace, categories])
@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_p_values_of_an_unchanged_target_are_no_smaller_than_they_say(measure, law):
    """400 comparisons: a valid p-value fails a test with a chance of at most 3e-8, one of all of them with 5e-7."""
    found = p_values(measure, target(law, 1.0), target(law, 1.0))
    for share in SHARES:
        assert sum(p <= share for p in found) <= stats.binom.isf(1e-8, COMPARISONS, share)


@pytest.mark.few(2, rest="nightly")
@pytest.mark.slow(reason="400 comparisons")
@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_less_noise_has_smaller_p_values_in_every_measure(measure):
    """Half of the noise: of p-values that say nothing so many would be below .05 with a chance of less than 1e-6."""
    found = p_values(measure, target(laplace, 1.0), target(laplace, 0.5))
    assert sum(p <= 0.05 for p in found) > stats.binom.isf(1e-7, COMPARISONS, 0.05)
