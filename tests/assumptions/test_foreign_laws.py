"""A learner of another author that declares its law and its scores: audited as ours are, and held to what it says."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from overclaim import Claim, Pair, falsify
from overclaim.audit.assumptions.declared_laws import check_stated
from overclaim.audit.laws.exact import NotExactError, exact_epsilon
from overclaim.audit.laws.exact_levels import exact_level
from overclaim.learners import Ftpl, Ftrl, LearnerError
from overclaim.learners.laws import OutcomeLaw
from overclaim.learners.problems.domains import Cube, Simplex
from overclaim.mechanisms.measures.gaussian_dp import GDP
from overclaim.mechanisms.noise import Gaussian, Laplace

ROUNDS = 4
PAIR = Pair([[1.0, 0.0]] + [[0.0, 0.0]] * (ROUNDS - 1), [[0.0, 1.0]] + [[0.0, 0.0]] * (ROUNDS - 1))
ARMS = Ftpl(domain=Simplex(2), rounds=ROUNDS, noise=Gaussian(0.5))
POINTS = Ftrl(domain=Cube(2), rounds=ROUNDS, eta=1.0, noise=Laplace(1.0))


@dataclass(frozen=True)
class Foreign:
    """A learner that no room of ours holds, with the law and the scores of one that it plays as."""

    played: Any
    declared: Any
    feedback: str = "full"
    arms: int = 2

    @property
    def plays(self):
        return self.declared.plays

    def start(self, runs, draws):
        return self.played.start(runs, draws)

    def act(self, state, draws):
        return self.played.act(state, draws)

    def update(self, state, actions, feedback, draws):
        self.played.update(state, actions, feedback, draws)

    def law(self, *args, **kwargs):
        return self.declared.law(*args, **kwargs)

    def score(self, *args):
        return self.declared.score(*args)


@pytest.mark.parametrize(
    ("ours", "attack"), [(ARMS, "sequence likelihood ratio"), (POINTS, "inverted coordinates")], ids=["law", "score"]
)
def test_what_a_foreign_learner_declares_finds_the_bound_that_ours_does(ours, attack):
    """The same runs by the same keys: every number is the same."""
    budget = {"pair": PAIR, "runs": 4000, "seed": 3}
    expected = falsify(ours, Claim(epsilon=0.2), **budget)
    result = falsify(Foreign(ours, ours), Claim(epsilon=0.2), **budget)
    assert result.attack == expected.attack == attack
    assert result.epsilon_lower == expected.epsilon_lower > 0.5
    assert result.certificate == expected.certificate


def test_a_declared_law_gives_the_exact_value():
    foreign = Foreign(ARMS, ARMS)
    assert exact_epsilon(foreign, PAIR) == exact_epsilon(ARMS, PAIR)
    assert check_stated(foreign, PAIR, 0)


def test_a_law_that_is_not_played_is_refused():
    """2,048 runs of each input; a true law is refused with probability 1e-9."""
    with pytest.raises(LearnerError, match="plays otherwise than its law says"):
        falsify(Foreign(replace(ARMS, noise=Gaussian(2.0)), ARMS), Claim(epsilon=0.2), pair=PAIR, runs=200)


def test_a_law_of_too_few_sequences_is_refused():
    longer = Pair([*PAIR.left.tolist(), [0.0, 0.0]], [*PAIR.right.tolist(), [0.0, 0.0]])
    short = ARMS.law(PAIR.left, PAIR.right, 0).laws()

    class Short(Foreign):
        def law(self, *args, **kwargs):
            return OutcomeLaw(lambda: short)

    learner = Short(replace(ARMS, rounds=ROUNDS + 1), ARMS)
    with pytest.raises(LearnerError, match="must give 32 probabilities"):
        falsify(learner, Claim(epsilon=0.2), pair=longer, runs=200)


def test_a_law_without_outcomes_is_believed_of_ours_alone():
    """Nothing that is played tells whether a privacy loss is right."""
    with pytest.raises(NotExactError):
        exact_level(Foreign(POINTS, POINTS), PAIR, GDP(1.0))


class Louder(Ftpl):
    """It plays otherwise than the class whose law it inherits."""

    def act(self, state, draws):
        return self.domain.minimise(state.noisy)


def test_an_inherited_law_of_overridden_methods_is_not_believed():
    learner = Louder(domain=Simplex(2), rounds=ROUNDS, noise=Gaussian(0.5))
    with pytest.raises(NotExactError):
        exact_epsilon(learner, PAIR)
    assert falsify(learner, Claim(epsilon=0.2), pair=PAIR, runs=400).attack != "sequence likelihood ratio"
