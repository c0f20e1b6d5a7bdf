"""Trainings in NumPy, sound and with a fault: which are found, by how many canaries."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from overclaim.audit.statistics.score_certificates import score_certificate
from overclaim.mechanisms.measures.approximate import ApproxDP
from overclaim.mechanisms.measures.gaussian_dp import GDP

ROOM = Path(__file__).resolve().parents[2] / "examples" / "trainings"
CLAIM, SMALL = GDP(0.5), ApproxDP(1.71, 0.01)
#: Training, design, claim, canaries of one training, trainings.
BROKEN = [
    ("dp_ftrl:tree_noise_kept", "one-run", CLAIM, 64, 1),
    ("dp_sgd:one_key", "one-run", CLAIM, 100, 1),
    ("dp_ftrl:banded_together", "one-run", CLAIM, 2000, 1),
    ("dp_sgd:clipped_per_tensor", "one-run", CLAIM, 250, 4),
    ("dp_sgd:accumulated", "one-run", CLAIM, 250, 1),
    ("dp_sgd:accumulated_mislabelled", "one-run", CLAIM, 250, 4),
    ("dp_sgd:sensitivity_of_presence", "independent", CLAIM, 1, 1000),
    ("dp_sgd:shuffled", "independent", SMALL, 8000, 1),
]
SOUND = [
    ("dp_sgd:sound", "one-run", CLAIM, 250, 8),
    ("dp_sgd:sound", "independent", CLAIM, 1, 1000),
    ("dp_sgd:sound_mislabelled", "one-run", CLAIM, 250, 8),
    ("dp_sgd:sound_replaced", "independent", CLAIM, 1, 1000),
    ("dp_ftrl:tree", "one-run", CLAIM, 256, 8),
    ("dp_ftrl:banded", "one-run", CLAIM, 2000, 1),
    ("dp_sgd:poisson", "independent", SMALL, 8000, 1),
]
#: Trainings by libraries, broken and sound, where these are installed, as `make libraries` finds them.
BY_LIBRARIES = {
    "jax_privacy": ("jax_sgd:clipped_per_tensor", "jax_sgd:sound"),
    "opacus": ("opacus_sgd:oversampled", "opacus_sgd:sound"),
}


def training(name):
    module, _, function = name.partition(":")
    spec = importlib.util.spec_from_file_location(module, ROOM / f"{module}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return getattr(loaded, function)


def certified(name, design, claim, canaries, trainings, *, alpha, seed=0):
    """The level that these trainings certify: their canaries are counted together."""
    rng, run = np.random.default_rng(seed), training(name)
    coins = rng.random((trainings, canaries)) < 0.5
    scores = np.concatenate([run(included, rng) for included in coins])
    return score_certificate(design, claim).lower(scores, coins.ravel(), alpha=alpha)


@pytest.mark.few(3)
@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case[0])
def test_broken_trainings_are_found_at_99_percent(case):
    assert certified(*case, alpha=0.01) > case[2].level


@pytest.mark.few("dp_ftrl:banded-one-run")
@pytest.mark.parametrize("case", SOUND, ids=lambda case: f"{case[0]}-{case[1]}")
def test_sound_trainings_are_not_found(case):
    """At 1 - 1e-6: so often a sound one is found all the same. Half of its level is seen at least, or nearly."""
    assert certified(*case, alpha=1e-6) <= case[2].level
    assert certified(*case, alpha=0.5) > 0.3 * case[2].level


@pytest.mark.parametrize("library", BY_LIBRARIES)
def test_a_broken_training_by_a_library_is_found_and_a_sound_one_is_not(library):
    pytest.importorskip(library)
    broken, sound = BY_LIBRARIES[library]
    assert certified(broken, "one-run", CLAIM, 250, 4, alpha=0.01) > CLAIM.level
    assert certified(sound, "one-run", CLAIM, 250, 4, alpha=1e-6) <= CLAIM.level


@pytest.mark.nightly(reason="ten audits of each")
@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case[0])
def test_broken_trainings_are_found_on_other_seeds(case):
    found = [certified(*case, alpha=0.01, seed=seed) > case[2].level for seed in range(1, 11)]
    assert sum(found) >= 8


def test_a_canary_is_clipped_and_its_score_grows_with_its_gradient():
    """What the sound claims rest on: with the same noise, one canary more moves its own score by just its gradient."""
    run, rng = training("dp_sgd:sound"), np.random.default_rng(3)
    included = rng.random(40) < 0.5
    scores = [run(coins, np.random.default_rng(4)) for coins in (included, included ^ (np.arange(40) == 7))]
    moved = (scores[0] - scores[1]) * (1 if included[7] else -1)
    assert np.argmax(np.abs(moved)) == 7
    assert moved[7] == pytest.approx(9 * np.sqrt(8) * 50 * 1e-4, rel=0.02)
