"""Adversarial loss sequences on which regret is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ...learners.entry import Entry, Setting
from ...learners.problems.losses import LOSS_SETS, Family, Linear, Loss, Quadratic, check_lipschitz
from ...learners.protocol import Learner
from ...mechanisms.draws import Draws, Floats, Purpose, Stage
from ..assumptions.conformance import check_fresh
from ..play.pairs import Pair, World, lengths_of, radius_of, unlike
from ..spaces.loss_choices import alphabet_of
from .comparator import InBall, domain_of


def adversaries(losses: str, *, rounds: int, arms: int, seed: int = 0) -> dict[str, Floats]:
    """Return adversarial sequences in a loss set, by name, each (rounds, arms).

    A constant gap with the last arm best or the first, a small one with the middle arm best, the best arm going round,
    or held for sqrt(T) rounds, the leader losing, the best arm switching half-way or early, random signs, and for two
    arms the hard instance of Lemma 11 of Asi, Raman & Talwar 2025.
    """
    from ...learners.problems.instances import (
        alternating_losses,
        early_switch,
        held_losses,
        leader_loses,
        lemma_11_losses,
        switching_losses,
    )

    rng = Draws(seed, Stage.REGRET, block=rounds).stream(Purpose.ADVERSARY)
    sequences = {
        "constant gap": np.tile(np.arange(arms) < arms - 1, (rounds, 1)).astype(float),
        "constant gap, first arm best": np.tile(np.arange(arms) > 0, (rounds, 1)).astype(float),
        "small gap, middle arm best": np.tile(1 - 0.25 * (np.arange(arms) == arms // 2), (rounds, 1)),
        "alternating": alternating_losses(rounds, arms),
        "held": held_losses(rounds, arms),
        "leader loses": leader_loses(rounds, arms),
        "switching": switching_losses(rounds, arms),
        "early switch": early_switch(rounds, arms),
        "random signs": rng.integers(0, 2, (rounds, arms)).astype(float),
    }
    if arms == 2:
        sequences["Lemma 11"] = lemma_11_losses(rounds)
    kind = LOSS_SETS[losses]
    return {name: (kind.low + (kind.high - kind.low) * s) * kind.scale(arms) for name, s in sequences.items()}


def regret_losses(target: object, game: Setting, learner: Learner, seed: int) -> Mapping[str, World]:
    """Return the adversarial loss sequences by name: convex losses where an entry has them, else vectors."""
    opposites = convex_opposites(target, game, learner)
    if opposites is not None:
        return _alternatives(*opposites, game.rounds, seed)
    return adversaries(game.losses, rounds=game.rounds, arms=game.arms, seed=seed)


def convex_opposites(target: object, game: Setting, learner: Learner) -> tuple[Loss, Loss] | None:
    """Return the two extreme convex losses of an entry; None where its losses are vectors."""
    if not isinstance(target, Entry):
        return None
    claim = target.claim(game, epsilon=1.0)  # its losses count: without noise there is no epsilon to claim
    a, b = alphabet_of(learner, claim).differing[0]
    bound = getattr(learner, "bound", math.inf)
    if isinstance(a, Quadratic):  # tilt them: quadratics that differ in the offset alone cost no regret
        domain, rest = domain_of(learner), (0.0,) * (learner.arms - 1)
        assert isinstance(domain, InBall), "the domains of catalogue learners with convex losses are bounded"
        radius, curvature = domain.outer_radius, a.curvature
        size = max(min(1.0, bound / radius), curvature * radius)
        a, b = (Quadratic.steep((sign * size, *rest), curvature=curvature, radius=radius) for sign in (1.0, -1.0))
    if isinstance(a, Linear) and not any(a.slope):
        radius = getattr(domain_of(learner), "outer_radius", 1.0)
        size = min(1.0, bound / radius)
        a, b = (Linear(slope=(sign * size, *(0.0,) * (learner.arms - 1))) for sign in (1.0, -1.0))
    return (a, b) if hasattr(a, "gradient") else None


def _alternatives(a: Loss, b: Loss, rounds: int, seed: int) -> dict[str, list[Loss]]:
    coins = Draws(seed, Stage.REGRET, block=rounds).stream(Purpose.ADVERSARY).integers(0, 2, rounds)
    # Half of one, then the other and that one in turn: the sum so far is at its best where the next loss is worst.
    turns = [(b, a)[t % 2] for t in range(rounds - 1)]
    leader = {"leader loses": [Linear(slope=tuple(s / 2 for s in a.slope)), *turns]} if isinstance(a, Linear) else {}
    return {
        "constant": [a] * rounds,
        "constant, the opposite": [b] * rounds,
        "alternating": [(a, b)[t % 2] for t in range(rounds)],
        "held": [(a, b)[t // math.isqrt(rounds) % 2] for t in range(rounds)],
        **leader,
        "switching": [a] * (rounds // 2) + [b] * (rounds - rounds // 2),
        "early switch": [a] * (rounds // 4) + [b] * (rounds - rounds // 4),
        "random signs": [(a, b)[coin] for coin in coins],
    }


def check_runs(learner: Learner, game: Setting, seed: int) -> None:
    """Raise LearnerError if the runs of a user's learner share state or randomness: no interval counts them then."""
    kind = LOSS_SETS[game.losses]
    left = adversaries(game.losses, rounds=game.rounds, arms=learner.arms, seed=seed)["random signs"]
    right = left.copy()
    right[0] = (kind.low + kind.high) * kind.scale(learner.arms) - left[0]
    check_fresh(learner, Pair(left, right), seed)


def check_losses(sequences: Mapping[str, World], game: Setting, learner: Learner) -> None:
    """Raise ValueError unless every loss has the learner's arms and is one of those that its theorem is about.

    Vectors lie in the game's loss set; convex losses are 1-Lipschitz, and as strongly convex and small as it says.
    """
    allowed = getattr(learner, "loss_class", None)
    for name, losses in sequences.items():
        checked_keys: set[object] = set()  # a sequence repeats few losses
        for t, loss in enumerate(losses):
            key = loss.tobytes() if isinstance(loss, np.ndarray) else id(loss)
            if key in checked_keys:
                continue
            checked_keys.add(key)
            place = f"the loss of round {t + 1} of {name!r}"
            if lengths := lengths_of(loss) - {learner.arms}:
                raise unlike(f"{place} has", min(lengths), learner.arms)
            if isinstance(loss, np.ndarray):
                LOSS_SETS[game.losses].check(loss, place)
            elif isinstance(loss, Family):
                check_lipschitz(loss, radius_of(learner), name=place)
            if allowed is not None:
                allowed.check(loss, place)
