"""The figures of `docs/catalogue.md` about what cannot be seen, computed again."""

from functools import partial
from pathlib import Path

import pytest

from overclaim.audit.laws.exact import exact_epsilon
from overclaim.audit.pipeline.blind_spot_search import true_to
from overclaim.audit.play.pairs import Pair
from overclaim.audit.spaces.families import first_round
from overclaim.audit.spaces.loss_choices import alphabet_of
from overclaim.learners.bandits.htinf import Htinf
from overclaim.learners.catalogue.entries import lookup
from overclaim.learners.conversions.batched import MiniBatch
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.weakening import weakened

PAGE = " ".join((Path(__file__).resolve().parents[2] / "docs" / "catalogue.md").read_text(encoding="utf-8").split())


def ones(rounds, differing=1):
    left, right = ([[1.0, 1.0]] * rounds for _ in range(2))
    right[differing - 1] = [0.0, 0.0]
    return Pair(left, right)


def test_htinf_without_noise():
    def bare(sigma, rounds, differing=1):
        learner = MiniBatch(Htinf(arms=2, sigma=sigma), batch=1)
        return exact_epsilon(learner, ones(rounds, differing), deltas=(0.0, 0.01))

    assert all(bare(6**0.5, 8, t) == {0.0: 0.0, 0.01: 0.0} for t in range(1, 9))
    assert [t for t in range(1, 10) if bare(6**0.5, 9, t)[0.0] > 0] == [8]
    assert "the same on both inputs up to T = 8" in PAGE
    assert f"at T = 9 epsilon is {bare(6**0.5, 9, 8)[0.0]:.2f} where the inputs differ there" in PAGE
    six, nine = bare(7.0, 6), bare(7.0, 9)
    assert f"{six[0.0]:.2f} at T = 6 and {nine[0.0]:.2f} at T = 9, and {nine[0.01]:.2f} at delta = 0.01" in PAGE


@pytest.mark.slow(reason="exact laws of all standard pairs, with noise and without")
def test_exp2_explores_too_much_to_show_anything():
    entry = lookup("agarwal-singh/reduction-exp2")
    setting = entry.setting(rounds=8)
    learner = entry.build(setting)
    pairs = first_round(alphabet_of(learner, entry.claim(setting)), 8, 1)
    noisy, bare = (max(exact_epsilon(one, p, deltas=(0.0,))[0.0] for p in pairs) for one in (learner, learner.inner))
    assert f"at T = 8 epsilon is {noisy:.2f} on the standard pairs, and {bare:.2f} without any noise" in PAGE


@pytest.mark.few(1, rest="nightly")
@pytest.mark.slow(reason="exact laws at many noises")
@pytest.mark.parametrize(
    ("parameters", "rounds", "told"),
    [
        ({"eta": 2.0, "gamma": 0.1, "batch": 2}, 4, "At γ = 0.1 the claim stays true for noise {:.0f} times smaller"),
        ({"eta": 1.0, "gamma": 1.0, "batch": 1, "experts": 12}, 2, "with 12 experts for noise {:.1f} times smaller"),
    ],
)
def test_batched_exp4_has_slack(parameters, rounds, told):
    entry = lookup("asi-raman-talwar/exp4-batched")
    learner = entry.build(entry.setting(rounds=rounds), **parameters)
    claim = Claim(epsilon=1.0, delta=0.01, surface="release")
    slack, _ = true_to(claim, ones(rounds), partial(weakened, learner))
    assert told.format(int(slack * 10) / 10 if ".1f" in told else int(slack)) in PAGE


def test_private_bandit_adds_more_gaussian_noise_than_composition_needs():
    entry = lookup("ene-nguyen-vladu/private-bandit-gaussian")
    more = {
        t: entry.build(entry.setting(rounds=t)).noise.sigma
        / entry.build(entry.setting(rounds=t, calibration="corrected")).noise.sigma
        for t in (9, 16, 64)
    }
    assert f"{more[16]:.0f} times what composition over the nodes needs at T = 16" in PAGE
    assert f"{more[9]:.0f} times at T = 9 and {more[64]:.0f} times at T = 64" in PAGE
