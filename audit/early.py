"""Audits that stop early: guess run by run, learn the attack on the way, end when the claim is falsified."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import expit

from ..mechanisms.draws import Stage
from . import sequential
from .attacks import Attack, SequenceRatio, applicable
from .events import Certificate, Counts, Event, count
from .pairs import Pair
from .play import Transcripts, blocks, concatenate
from .stages import MOST, SEARCH, Audit, Choice

#: Runs spent on finding the pair, where there is no exact ranking; guesses begin after this many more runs.
SEARCH_RUNS, FIRST = 2000, 32
#: Runs that must be left after the search: the first ten serve to learn an attack.
FEWEST = 20


def until_falsified(audit: Audit, options: Sequence[Pair]) -> tuple[Choice, int, Certificate, float, float]:
    """Guess run by run until the claim is falsified or the runs are spent.

    Runs come in epochs that double; the attack and event of an epoch are chosen on the runs before it, so every
    guess is fixed before its run. Only the search, and the first few runs where an attack is learned, are spent on
    choosing.

    Returns
    -------
    Choice
        Of the last epoch.
    int
        Runs in which nothing was guessed yet.
    Certificate
        Of all guesses, whatever their event.
    float, float
        The smallest epsilon that the whole budget would have caught, and the largest it could have certified.
    """
    pair, best, searched = _find_pair(audit, options)
    claimed, budget = audit.claim.epsilon, audit.runs - searched
    if budget < FEWEST:
        many = f"choosing among {len(options)} pairs takes {searched}"
        raise ValueError(f"runs must be at least {searched + FEWEST}, got {audit.runs}: {many}")
    made = applicable(audit.learner, pair, audit.claim.surface)[0]
    known = made is SequenceRatio  # the laws of all outcomes: nothing to learn
    choice = None if made.trained else _choose_unseen(audit, pair, best)
    first = min(FIRST, max(10, budget // 4)) if made.trained else 0
    bets = sequential.Bets(claimed, audit.claim.delta)
    past: list[Transcripts] = []
    counts, bound, number, spent = Counts(), 0.0, 0, 0
    while spent < budget and bound <= claimed:
        epoch = min(max(first or FIRST, spent), budget - spent)
        sizes = [(number + i, size) for i, size in blocks(epoch)]
        number, spent = number + len(sizes), spent + epoch
        for played in _played(audit, pair, best, sizes):
            if not known and sum(p.runs for p in past) < MOST:
                past.append(played)
            if choice is None:
                continue
            counts, falsified = _bet(audit.alpha, bets, choice, counts, played)
            wrong = counts.guesses - counts.right
            bound = max(bound, bets.epsilon_lower(counts.right, wrong, counts.runs, audit.alpha))
            if falsified:
                bound = max(bound, math.nextafter(claimed, math.inf))
                break
        if choice is None or not (known or bound > claimed or spent > 2 * MOST):
            choice = _choose(audit, pair, best, concatenate(past))
    assert choice is not None
    certificate = Certificate(bound, "anytime", audit.claim.delta, audit.alpha, counts, 0.0)
    power = {"delta": audit.claim.delta, "alpha": audit.alpha}
    detectable = sequential.detectable_epsilon(claimed, budget - first, **power)
    ceiling = sequential.ceiling_epsilon(claimed, budget - first, **power)
    return choice, searched + first, certificate, detectable, ceiling


def _played(audit: Audit, pair: Pair, index: int, sizes: Sequence[tuple[int, int]]) -> Iterator[Transcripts]:
    """Yield the transcripts of blocks in order, as many at a time as there are processes."""
    for i in range(0, len(sizes), audit.jobs):
        yield from audit.play_blocks(pair, index, Stage.CERTIFY, sizes[i : i + audit.jobs])


def _find_pair(audit: Audit, options: Sequence[Pair]) -> tuple[Pair, int, int]:
    """Return the pair to audit on, its index, and the runs that it took to find it: few, since few may decide."""
    return replace(audit, runs=min(audit.runs, round(SEARCH_RUNS / SEARCH))).find_pair(options)


def _choose_unseen(audit: Audit, pair: Pair, index: int) -> Choice:
    """Return an exact likelihood ratio with its event before any run was played."""
    claim = {"epsilon": audit.claim.epsilon, "delta": audit.claim.delta}
    attack: Attack = applicable(audit.learner, pair, audit.claim.surface)[0].fit(audit.learner, pair, None)
    if isinstance(attack, SequenceRatio):
        scores, p, q = attack.laws
        event = sequential.choose_growing_event(scores, p / 2, q / 2, seen=None, **claim)
    else:  # guess where the odds are beyond what the claim allows
        event = Event(-audit.claim.epsilon, audit.claim.epsilon, "guess")
    return Choice(pair, attack, event, index)


def _choose(audit: Audit, pair: Pair, index: int, past: Transcripts) -> Choice:
    """Return the attack and event of the next epoch, from all runs so far."""
    claim = {"epsilon": audit.claim.epsilon, "delta": audit.claim.delta}
    best: tuple[float, Choice] | None = None
    for made in applicable(audit.learner, pair, audit.claim.surface):
        half = past.runs // 2 if made.trained else 0
        attack: Attack = made.fit(audit.learner, pair, past[:half] if made.trained else None)
        fresh = past[half:]
        scores = attack.score(fresh)
        if made.trained:
            p, q, seen = fresh.left / fresh.runs, ~fresh.left / fresh.runs, fresh.runs
        else:  # the score is a likelihood ratio and tells the odds of the labels, with less noise than the labels do
            p, q, seen = expit(scores) / fresh.runs, expit(-scores) / fresh.runs, None
        event = sequential.choose_growing_event(scores, p, q, seen=seen, **claim)
        worth = audit.promise(event, count(event, scores, fresh.left))
        if best is None or worth > best[0]:
            best = worth, Choice(pair, attack, event, index)
    assert best is not None
    return best[1]


def _bet(
    alpha: float, bets: sequential.Bets, choice: Choice, counts: Counts, transcripts: Transcripts
) -> tuple[Counts, bool]:
    """Return the counts after these runs, or after the first that falsifies the claim, and whether one did."""
    scores, left, event = choice.attack.score(transcripts), transcripts.left, choice.event
    upper, lower = scores >= event.upper, scores <= event.lower
    right = counts.right + np.cumsum((upper & left) | (lower & ~left))
    wrong = counts.guesses - counts.right + np.cumsum((upper & ~left) | (lower & left))
    runs = counts.runs + np.arange(1, left.size + 1)
    end = sequential.first_crossing(bets, right, wrong, runs, alpha)
    seen = slice(None if end is None else end + 1)
    return counts + count(event, scores[seen], left[seen]), end is not None
