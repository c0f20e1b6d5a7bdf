"""Published statements about regret that are false as printed."""

import json

import pytest

from overclaim.audit.regret.false_regret_statements import false_utility_claims


def test_false_utility_claims_come_with_witnesses():
    claims = false_utility_claims()
    assert [claim.verdict for claim in claims] == ["FALSIFIED"] * 3
    for claim in claims:
        assert claim.witness["found"] > claim.witness["claimed"], claim.name
        json.dumps(claim.to_json(), allow_nan=False)
        assert claim.quotation
        assert claim.where
        assert claim.answer
    assert [claim.measured.partition(":")[0] for claim in claims] == ["VIOLATED", "UNDECIDED", "VIOLATED"]
    condition = claims[1].witness
    assert 6 < condition["found"] / condition["claimed"] < 10
    # An expectation, not one run's regret: uniform play over ten arms, nine of which pay 2 more than the tenth.
    assert claims[2].witness["found"] == pytest.approx(1.8 * claims[2].witness["claimed"])
