"""Published statements about regret that are false as printed."""

import json
import math
import shlex

import pytest
from click.testing import CliRunner

from overclaim.reports.command_line.cli import main
from overclaim.reports.false_regret_statements import false_utility_claims, one_dimension, walk_interval


@pytest.mark.slow(reason="ten seconds; `make audit` searches for the same witnesses")
def test_false_utility_claims_come_with_witnesses():
    claims = false_utility_claims()
    assert [claim.verdict for claim in claims] == ["FALSIFIED"] * 8
    for claim in claims:
        assert claim.witness["found"] > claim.witness["claimed"], claim.name
        json.dumps(claim.to_json(), allow_nan=False)
        assert claim.quotation
        assert claim.where
        assert claim.answer
    measured = [claim.measured.partition(":")[0] == "VIOLATED" for claim in claims]
    assert measured == [True, False, False, False, True, False, False, False]
    first, second, condition = (claim.witness for claim in claims[:3])
    low, high = first["certified"]  # wrong with probability 1 %, at this seed fixed before
    assert first["claimed"] < low < first["interval"][0] < first["interval"][1] < high
    assert second["claimed"] == pytest.approx(2295.6, abs=0.1)
    assert second["interval"] == pytest.approx([2310.92, 2310.92], abs=0.01)
    assert 6 < condition["found"] / condition["claimed"] < 10
    # What the constant that suffices at T = 10,000 allows at 10^12: it grows as sqrt(ln T).
    rate = claims[3].witness
    assert rate["constant"] == pytest.approx(3.8079, abs=1e-4)
    assert rate["found"] / rate["claimed"] == pytest.approx(1.4963, abs=1e-4)
    # An expectation, not one run's regret: uniform play over ten arms, nine of which pay 2 more than the tenth.
    assert claims[4].witness["found"] == pytest.approx(1.8 * claims[4].witness["claimed"])


def test_the_interval_of_a_walk_holds_its_expected_distance():
    """Exact for few steps, from the binomial law; the bounds are those that the page prints for many."""
    for steps in (2, 4, 10, 100):
        low, high = walk_interval(steps)
        exact = sum(abs(2 * k - steps) * math.comb(steps, k) for k in range(steps + 1)) / 2**steps
        assert low < exact < high
    with pytest.raises(ValueError, match="steps must be even and at least 2, got 3"):
        walk_interval(3)


def test_one_dimension_refutes_theorem_3_1_from_two_to_the_23_rounds_on():
    for power in range(2, 40):
        claimed, (low, high) = one_dimension(2**power)
        assert (low > claimed) == (high > claimed) == (power >= 23)
    claimed, (low, _) = one_dimension(1024, math.inf)  # Theorem 3.4, no noise
    assert (claimed, low) == pytest.approx((22.6274, 25.5198), abs=1e-4)


def test_one_round_refutes_theorem_3_4_by_the_command_that_replays_it():
    """The first point is 0, the loss 1 and the best point -1: regret 1, where sqrt(1 / 2) is claimed."""
    words = shlex.split(false_utility_claims()[0].replay)
    done = CliRunner().invoke(main, [*words[1:], "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["interval"][0] > math.sqrt(0.5)
