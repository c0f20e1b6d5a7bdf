"""Published statements about regret that are false as printed."""

import json

import pytest

from overclaim.audit.regret.false_regret_statements import false_utility_claims


def test_false_utility_claims_come_with_witnesses():
    claims = false_utility_claims()
    assert [claim.verdict for claim in claims] == ["FALSIFIED"] * 4
    for claim in claims:
        assert claim.witness["found"] > claim.witness["claimed"], claim.name
        json.dumps(claim.to_json(), allow_nan=False)
        assert claim.quotation
        assert claim.where
        assert claim.answer
    assert [claim.measured.partition(":")[0] for claim in claims] == ["VIOLATED", "UNDECIDED", "UNDECIDED", "VIOLATED"]
    condition = claims[1].witness
    assert 6 < condition["found"] / condition["claimed"] < 10
    # What the constant that suffices at T = 10,000 allows at 10^12: it grows as sqrt(ln T).
    rate = claims[2].witness
    assert rate["constant"] == pytest.approx(3.8079, abs=1e-4)
    assert rate["found"] / rate["claimed"] == pytest.approx(1.4963, abs=1e-4)
    # An expectation, not one run's regret: uniform play over ten arms, nine of which pay 2 more than the tenth.
    assert claims[3].witness["found"] == pytest.approx(1.8 * claims[3].witness["claimed"])
