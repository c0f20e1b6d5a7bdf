"""Which event is chosen where log odds are known and the best event is rare."""

import numpy as np
import pytest

from overclaim.audit.statistics.event_choice import choose
from overclaim.benchmarks.power import laws
from overclaim.mechanisms.one_shot.zoo import zoo


@pytest.mark.parametrize("pilot", [20_000, 6_000])
def test_a_rare_event_that_log_odds_promise_is_chosen(pilot):
    """svt6: the outcome of log odds 4.03 has 45 of 20,000 runs, .8 of the other world's, and is the best event.

    With its counts in doubt the choice was an event of three times as many runs and half the ratio, in every pilot;
    with .3 wrong guesses added to it, it still was in 3 of 10 of 6000 runs of either world.
    """
    specimen = zoo()["mechanisms/svt6"]
    law = laws.law(specimen.build(1.0), specimen.pairs[-1])
    odds = np.log(law[0]) - np.log(law[1])
    rng = np.random.default_rng(0)
    left = np.repeat([True, False], pilot)
    rarest = 0
    for _ in range(10):
        seen = np.concatenate([rng.choice(odds.size, pilot, p=world / world.sum()) for world in law])
        event, worth = choose(
            odds[seen], left, delta=0.0, alpha=0.05, runs=200_000, doubt=1.2, log_odds=True, judged=True
        )
        rarest += (event.upper > 3.5) + (event.lower < -3.5)
        assert worth < 3.6  # a perfect attack is expected to certify 3.47
    assert rarest >= 17
