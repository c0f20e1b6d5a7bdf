"""What a run exits with, and what its records decide: each rule from records of a few fields."""

import math

import pytest

from overclaim import Claim, Verdict
from overclaim.audit.statistics.bounds.joint_cover import MARGINS
from overclaim.audit.statistics.bounds.variational import StepFunction
from overclaim.audit.statistics.certificates import ceiling, certify_claim, lower_of, refutes
from overclaim.audit.statistics.events import UNUSED, Counts, Event, bound_of
from overclaim.audit.verdicts.verdict import decide, too_few
from overclaim.mechanisms.measures.gaussian_dp import GDP
from overclaim.mechanisms.measures.renyi import ZCDP
from overclaim.reports import reading
from overclaim.reports.status import BAD_INPUT, CRASHED, FALSIFIED, INTERNAL, OK, UNDERPOWERED, status_of

LOW, UNTESTED = "UNDERPOWERED", {"untested": True}
MINE = {"source": "your bound"}


def claimed(verdict, expected=None, **more):
    claim = {"name": "x", "claimed": {"epsilon": 1.0, "delta": 0.0}, "verdict": verdict, "expected": expected}
    return claim | {"epsilon_lower": 0.5, "surface": "actions"} | more


def test_a_claim_is_falsified_beyond_its_level_alone_and_no_test_where_nothing_could_exceed_it():
    claim = Claim(epsilon=1.0)
    assert [decide(claim, lower, 10_000, 0.05) for lower in (1.0, math.nextafter(1, 2))] == [
        Verdict.SURVIVED,
        Verdict.FALSIFIED,
    ]
    for most, verdict in ((1.0, Verdict.UNDERPOWERED), (math.nextafter(1, 2), Verdict.SURVIVED)):
        assert decide(claim, 0.5, 10_000, 0.05, ceiling=most) is verdict
        assert too_few(claim, 10_000, 0.05, ceiling=most) is (verdict is Verdict.UNDERPOWERED)
    assert decide(claim, 0.5, 10_000, 0.05, reason="low power") is Verdict.UNDERPOWERED
    assert decide(claim, 1.5, 10_000, 0.05, ceiling=0.1, reason="low power") is Verdict.FALSIFIED
    # Without a ceiling it is that of a perfect attack: at alpha 1/2 ten runs show more than at 1 %, and delta hides.
    assert [too_few(Claim(epsilon=2.0), 10, alpha) for alpha in (0.5, 0.01)] == [False, True]
    assert [too_few(Claim(epsilon=1.0, delta=delta), 30, 0.05) for delta in (0.0, 0.9)] == [False, True]
    mu = Claim(measure=GDP(2.0))
    assert [decide(mu, lower, 99, 0.05, ceiling=math.inf) for lower in (2.0, 2.1)] == [
        Verdict.SURVIVED,
        Verdict.FALSIFIED,
    ]


ONE_WORLD = Event(UNUSED, 1.0, "joint"), Counts(2000, 1000, left_upper=300, right_upper=60)
BOTH_WORLDS = Event(0.0, 1.0, "guess"), Counts(2000, 1000, 300, 50, 60, 310)


@pytest.mark.parametrize("game", [ONE_WORLD, BOTH_WORLDS], ids=["one world", "both"])
@pytest.mark.parametrize("claim", [{"delta": 0.0}, {"delta": 0.01}, GDP], ids=["epsilon", "delta", "mu"])
@pytest.mark.parametrize("margins", [MARGINS, ()], ids=["proved", "estimated"])
def test_what_refutes_a_claim_is_that_its_bound_is_above_it(game, claim, margins):
    def of(level):
        return Claim(measure=GDP(level)).measure if claim is GDP else Claim(epsilon=level, **claim).measure

    bound = lower_of(of(1.0), *game, alpha=0.05, margins=margins)
    certified = certify_claim(of(1.0), *game, alpha=0.05).lower
    if claim is GDP or margins:
        assert bound == certified > 0.5
    else:
        assert bound == bound_of(*game, **claim, alpha=0.05, margins=())
        assert (bound > certified) == (game is ONE_WORLD)  # what the proof of a joint bound costs
    told = [refutes(of(level), *game, alpha=0.05, margins=margins) for level in (bound * (1 - 1e-6), bound, 2 * bound)]
    assert told == [True, claim is GDP, False]  # a level's bound is the largest that is refuted
    if bound > certified:
        between = of((bound + certified) / 2)
        assert refutes(between, *game, alpha=0.05, margins=margins)
        assert not refutes(between, *game, alpha=0.05)


def test_a_function_of_the_scores_refutes_by_its_own_bound():
    """Of the event that it has beside, few runs say less."""
    steps = StepFunction((0.0,), (-1.0, 1.0), 1.0)
    game = Event(UNUSED, 1.0, "variational", function=steps), Counts(2000, 1000, 2, 0, 1, 0, (200, 800, 800, 200))
    bound = certify_claim(ZCDP(0.1), *game, alpha=0.05).lower
    assert bound == lower_of(ZCDP(0.1), *game, alpha=0.05) > 0.3
    assert [refutes(ZCDP(level), *game, alpha=0.05) for level in (bound * (1 - 1e-6), bound)] == [True, False]


def test_a_perfect_attack_certifies_more_from_so_many_runs_on():
    """The fewest runs of a binomial test of one world's event that no run of the other shows."""
    assert [ceiling(GDP(1.0), runs, alpha=0.05) for runs in (15, 16)] == [1.0, math.inf]
    assert ceiling(GDP(0.1), 2, alpha=0.7) == 0.1


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({}, BAD_INPUT),
        ({"claims": [claimed("SURVIVED")]}, OK),
        ({"claims": [claimed("FALSIFIED")]}, FALSIFIED),
        ({"claims": [claimed("FALSIFIED", "falsified")]}, OK),
        ({"claims": [claimed("SURVIVED", "falsified")]}, FALSIFIED),
        ({"claims": [claimed("SURVIVED"), claimed(LOW)]}, UNDERPOWERED),
        ({"claims": [claimed(LOW, "falsified")]}, UNDERPOWERED),
        ({"claims": [claimed(LOW, **UNTESTED, untested_allowed=True)]}, OK),
        ({"claims": [claimed(LOW, untested_allowed=True)]}, UNDERPOWERED),
        ({"claims": [claimed(LOW, "falsified", **UNTESTED, untested_allowed=True)]}, UNDERPOWERED),
        ({"claims": [claimed(LOW), claimed("FALSIFIED")]}, FALSIFIED),
        ({"regret": [{"verdict": "VIOLATED"}]}, FALSIFIED),
        ({"regret": [{"verdict": "HOLDS"} | MINE, {"verdict": "UNDECIDED"}, {"verdict": None} | MINE]}, OK),
        ({"regret": [{"verdict": "UNDECIDED"} | MINE]}, UNDERPOWERED),
        ({"regret": [{"verdict": "VACUOUS"} | MINE], "claims": [claimed("SURVIVED")]}, UNDERPOWERED),
        ({"regret": None, "baseline": None, "claims": [claimed("SURVIVED")]}, OK),
        ({"claims": [claimed("SURVIVED")], "baseline": {"findings": []}}, OK),
        *(
            ({"claims": [claimed("SURVIVED")], "baseline": {"findings": [{"kind": kind}]}}, FALSIFIED)
            for kind in reading.FAILING
        ),
        ({"errors": ["bad input"], "claims": [claimed("FALSIFIED")]}, BAD_INPUT),
        ({"errors": ["bad input", "internal error"]}, INTERNAL),
        ({"errors": ["internal error", "crashed"], "claims": [claimed("FALSIFIED")]}, INTERNAL),
        ({"errors": ["bad input", "crashed"], "claims": [claimed("FALSIFIED")]}, CRASHED),
    ],
)
def test_the_exit_code_is_the_gravest_thing_that_a_record_says(record, code):
    errors = [{"kind": kind} for kind in record.get("errors", ())]
    assert status_of({"claims": [], **record, "errors": errors}).code == code


@pytest.mark.parametrize(
    ("claim", "verdict", "reason"),
    [
        (claimed("FALSIFIED", **UNTESTED), "FALSIFIED", None),
        (claimed("SURVIVED"), "SURVIVED", None),
        (claimed(LOW), LOW, "too few runs"),
        (claimed(LOW, **UNTESTED, reason="low power"), LOW, "low power"),
    ],
)
def test_a_claim_has_a_verdict_and_where_it_is_underpowered_a_reason(claim, verdict, reason):
    assert (reading.verdict_of(claim), reading.reason_of(claim)) == (verdict, reason)
    assert reading.is_untested(claim) == (verdict == LOW and reason != "too few runs")


@pytest.mark.parametrize(
    ("claim", "unexpected", "accepted"),
    [
        (claimed("SURVIVED"), False, False),
        (claimed("FALSIFIED"), True, False),
        (claimed(LOW), False, False),
        (claimed(LOW, "survived"), True, False),
        (claimed("FALSIFIED", "falsified"), False, False),
        (claimed("SURVIVED", "falsified"), True, False),
        (claimed(LOW, "survived", **UNTESTED, untested_allowed=True), False, True),
        (claimed(LOW, "falsified", **UNTESTED, untested_allowed=True), True, False),
        (claimed("FALSIFIED", "survived", **UNTESTED, untested_allowed=True), True, False),
        (claimed(LOW, "survived", **UNTESTED), True, False),
    ],
)
def test_what_was_not_expected_is_told_from_what_a_plan_allows(claim, unexpected, accepted):
    assert (reading.is_unexpected(claim), reading.is_accepted(claim)) == (unexpected, accepted)
