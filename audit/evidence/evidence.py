"""Evidence: what the figures of a report show about one audited claim, from a bounded sample of fresh runs.

Nothing here enters a verdict. The runs have a stage of their own; thresholds are fixed on the first third of them and
counted on the rest, so every band is an honest Clopper-Pearson interval, point by point.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...learners.abilities import batch_of, decisions
from ...learners.protocol import Learner
from ...mechanisms.claim import Claim
from ...mechanisms.draws import Draws, Floats, Stage
from ...mechanisms.measures.measure import Measure
from ...mechanisms.numerics import best, rounded
from ..attacks.learner_attacks import SequenceRatio, attack_of
from ..attacks.protocol import FittedAttack
from ..laws.exact import epsilon_from_laws
from ..laws.sequences import all_sequences
from ..pipeline.learner_stages import play_block
from ..play.data import DataPair
from ..play.mechanism_runs import join, run_block
from ..play.pairs import Pair
from ..play.transcripts import BLOCK, Transcripts, blocks, concatenate
from ..record_types import (
    ByRoundJson,
    EvidenceJson,
    GrowthJson,
    HistogramJson,
    ProfileJson,
    SequenceJson,
    TradeoffJson,
)
from ..statistics.bounds import binomial_bounds
from ..statistics.bounds.joint_cover import COARSE, MARGINS
from ..statistics.bounds.power import required_runs
from ..statistics.certificates import lower_of
from ..statistics.event_rule import choose_by_labels
from ..statistics.events import Counts, Event, bound_of, bounds_of, count
from ..verdicts.verdict import Result

#: At most this share of the certification runs, this many runs, and this many played numbers.
SHARE, MOST_RUNS, MOST_NUMBERS = 8, 4 * BLOCK, 8_000_000
#: Points of a trade-off curve, bins of a histogram, points of a profile, prefixes of rounds and of runs.
THRESHOLDS, BINS, PROFILE, ROUNDS, PREFIXES = 32, 40, 25, 8, 16
#: Deltas at which the exact privacy profile is tabulated, where an exact method covers the claim.
PROFILE_DELTAS = (1e-4, 1e-3, 1e-2, 0.05, 0.15, 0.4)
#: The most sequences that are shown for each side of an event.
SHOWN_SEQUENCES = 3

_Labels = NDArray[np.bool_]


def evidence(learner: Learner, result: Result) -> EvidenceJson:
    """Return the data of a claim's figures: JSON-serialisable, below 20 kB.

    Parameters
    ----------
    learner : Learner
        The batched learner that was audited.
    result : Result
        The outcome of the audit, with the attack that was certified. Where a fixed number of runs was certified the
        growth is that of its blocks, else it is shown on the evidence's own runs.

    Returns
    -------
    dict
        `tradeoff`, `profile`, `scores`, `by_round` (where computable), `growth`, and `telling` (the likeliest
        sequences of arms that the event names, where their laws are known).
    """
    claim, pair, event, attack = result.claim, result.losses, result.event, result.scorer
    alpha = result.certificate.alpha
    runs = affordable(result, pair.rounds * (pair.arms or 1))
    seen = _play(learner, claim, pair, result.seed, runs)
    figures = figures_of(result, attack.score(seen), seen.left)
    # In another measure a prefix would need an event of its own, chosen by that measure.
    by_round = _by_round(learner, claim, attack, pair, seen, alpha) if claim.measure.is_epsilon else None
    if by_round is not None:
        figures["by_round"] = by_round
    if isinstance(attack, SequenceRatio):
        figures["telling"] = _likeliest(learner, pair, attack, event)
    return figures


def evidence_of_data(mechanism: object, result: Result, pair: DataPair) -> EvidenceJson:
    """Return the data of a claim's figures, as `evidence` does, of a mechanism on its two inputs."""
    runs = affordable(result, 1)
    draws = (Draws(result.seed, Stage.EVIDENCE, 0, 0, number) for number, _ in blocks(runs))
    played = [
        run_block(mechanism, pair, run_draws, size) for run_draws, (_, size) in zip(draws, blocks(runs), strict=True)
    ]
    scores = result.scorer.score(join([block.outputs for block in played]))
    return figures_of(result, scores, np.concatenate([block.left for block in played]))


def figures_of(result: Result, scores: Floats, left: _Labels) -> EvidenceJson:
    """Return what scores of the evidence's runs show: the figures that every audit has."""
    claim, event, alpha, third = result.claim, result.event, result.certificate.alpha, left.size // 3
    grid = _thresholds(scores[:third])
    growth = _growth(claim.measure, event, result.blocks or _prefixes(event, scores, left), alpha)
    growth["source"] = "certification runs" if result.blocks else "evidence runs"
    return {
        "alpha": round(alpha, 12) or alpha,
        "runs": {"left": int(left[third:].sum()), "right": int((~left[third:]).sum())},
        "tradeoff": _tradeoff(grid, scores[third:], left[third:], alpha),
        "profile": _profile(grid, scores, left, third, max(claim.epsilon, result.epsilon_lower), alpha),
        "scores": _histogram(scores[:third], scores[third:], left[third:]),
        "growth": growth,
    }


def deciding_runs(claim: Claim, true: float | None, alpha: float) -> int | None:
    """Return the certification runs that would falsify the claim nine times in ten, were `true` the true epsilon.

    None where nothing would: the claim holds at `true`, or no feasible number of runs decides it.
    """
    if true is None or not claim.measure.is_epsilon or not true > claim.epsilon:
        return None
    try:
        return required_runs(claim.epsilon, true, delta=claim.delta, alpha=alpha)
    except ValueError:
        return None


def affordable(result: Result, numbers: int) -> int:
    """Return the number of runs that figures are drawn from; `numbers` is how many numbers a run plays."""
    return max(300, min(MOST_RUNS, result.certificate.counts.runs // SHARE, MOST_NUMBERS // max(1, numbers)))


def _play(learner: Learner, claim: Claim, pair: Pair, seed: int, runs: int) -> Transcripts:
    fixed = (learner, pair, seed, Stage.EVIDENCE, 0, claim.view, 0.5)
    return concatenate([play_block(*fixed, block) for block in blocks(runs)])


def _thresholds(scores: Floats) -> Floats:
    """Return the thresholds of a curve: every distinct score, or quantiles, dense towards both ends."""
    finite = np.unique(scores[~np.isnan(scores)])
    if finite.size <= THRESHOLDS:
        return finite
    shares = (1 - np.cos(np.linspace(0, math.pi, THRESHOLDS))) / 2
    return np.unique(np.quantile(scores[~np.isnan(scores)], shares, method="nearest"))


def _at_least(grid: Floats, scores: Floats) -> NDArray[np.int64]:
    ordered = np.sort(scores[~np.isnan(scores)])
    return np.asarray(ordered.size - np.searchsorted(ordered, grid, "left"), dtype=np.int64)


def _tradeoff(grid: Floats, scores: Floats, left: _Labels, alpha: float) -> TradeoffJson:
    """Return both errors of "left iff score >= threshold", with pointwise two-sided Clopper-Pearson intervals."""
    curve: TradeoffJson = {"threshold": [_finite(t) for t in grid]}
    p, q = int(left.sum()), int((~left).sum())
    if not p or not q:
        return curve
    positive, positive_low, positive_high = _rate(_at_least(grid, scores[~left]), q, alpha)
    negative, negative_low, negative_high = _rate(p - _at_least(grid, scores[left]), p, alpha)
    return {
        **curve,
        "false_positive": positive,
        "false_positive_low": positive_low,
        "false_positive_high": positive_high,
        "false_negative": negative,
        "false_negative_low": negative_low,
        "false_negative_high": negative_high,
    }


def _rate(k: NDArray[np.int64], n: int, alpha: float) -> tuple[list[float], list[float], list[float]]:
    """Return the shares of n runs, and both ends of their Clopper-Pearson intervals."""
    low = binomial_bounds.clopper_pearson_lower(k, n, alpha / 2)
    return _digits(k / n), _digits(low), _digits(binomial_bounds.clopper_pearson_upper(k, n, alpha / 2))


def _profile(grid: Floats, scores: Floats, left: _Labels, third: int, scale: float, alpha: float) -> ProfileJson:
    """Return delta(epsilon): the excess P(S) - e^epsilon Q(S) of the best threshold event, and its lower bound.

    For each epsilon the event is chosen on the first third and counted on the rest.
    """
    epsilons = np.linspace(0.0, 1.25 * min(scale, 20.0), PROFILE)
    estimate, lower = np.zeros(PROFILE), np.zeros(PROFILE)
    parts = []
    for part in (slice(None, third), slice(third, None)):
        s, world = scores[part], left[part]
        p, q = int(world.sum()), int((~world).sum())
        upper_counts = (_at_least(grid, s[world]), _at_least(grid, s[~world]))
        lower_counts = (_at_least(-grid, -s[~world]), _at_least(-grid, -s[world]))  # "score <= t" speaks for the right
        k = np.concatenate([upper_counts[0], lower_counts[0]])
        other = np.concatenate([upper_counts[1], lower_counts[1]])
        parts.append((k, np.repeat([p, q], grid.size), other, np.repeat([q, p], grid.size)))
    if grid.size and all(np.all(n) and np.all(m) for _, n, _, m in parts):
        (k, n, other, m), (hits, hit_runs, misses, miss_runs) = parts
        for i, epsilon in enumerate(epsilons):
            factor = math.exp(epsilon)
            index = best(k / n - factor * other / m)
            estimate[i] = max(0.0, hits[index] / hit_runs[index] - factor * misses[index] / miss_runs[index])
            at_least = binomial_bounds.clopper_pearson_lower(hits[index], hit_runs[index], alpha / 2)
            at_most = binomial_bounds.clopper_pearson_upper(misses[index], miss_runs[index], alpha / 2)
            lower[i] = max(0.0, float(at_least - factor * at_most))
    return {"epsilon": _digits(epsilons), "estimate": short(estimate), "lower": short(lower)}


def _histogram(pilot: Floats, scores: Floats, left: _Labels) -> HistogramJson:
    """Return counts of the score by world: at each value where there are few, else in bins, ends included."""
    finite = pilot[np.isfinite(pilot)]
    values = np.unique(finite)
    axis: HistogramJson
    if values.size <= BINS:
        axis = {"values": _digits(values)}
        edges = np.concatenate([[-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]]) if values.size else np.zeros(0)
    else:
        low, high = np.quantile(finite, [0.002, 0.998])
        if not high > low:
            low, high = values[0], values[-1]
        edges = np.linspace(low, high, BINS + 1)
        axis = {"edges": _digits(edges)}
    (in_left, left_ends), (in_right, right_ends) = (_binned(scores[world], edges) for world in (left, ~left))
    return {**axis, "left": in_left, "left_infinite": left_ends, "right": in_right, "right_infinite": right_ends}


def _binned(scores: Floats, edges: Floats) -> tuple[list[int], list[int]]:
    """Return how many scores are in each bin, those beyond the ends in the last; and how many are -inf, and inf."""
    finite = scores[np.isfinite(scores)]
    binned = np.histogram(np.clip(finite, edges[0], edges[-1]), edges)[0].tolist() if edges.size else []
    return binned, [int((scores == -np.inf).sum()), int((scores == np.inf).sum())]


def shown_rounds(first: int, last: int) -> list[int]:
    """Return the prefixes of rounds to look at, from the first that can tell to the last."""
    if last < first:
        return []
    spaced = np.round(np.geomspace(1, last - first + 1, ROUNDS)).astype(int) + first - 1
    return sorted({int(t) for t in spaced})


def _by_round(
    learner: Learner, claim: Claim, attack: FittedAttack[Transcripts], pair: Pair, seen: Transcripts, alpha: float
) -> ByRoundJson | None:
    """Return epsilon of what is released in the first t rounds; None where no attack covers a prefix.

    Exact where the law of the sequences is known; otherwise a lower bound of an event chosen for that prefix, on the
    evidence's runs, each at error alpha.
    """
    horizons = shown_rounds(pair.t0 + 2, pair.rounds)  # the losses differ at t0, which no action before it can tell
    rounds, epsilons = [pair.t0 + 1], [0.0]
    if isinstance(attack, SequenceRatio):
        _, p, q = attack.laws
        batch, arms = batch_of(learner), learner.arms
        for t in horizons:
            size = arms ** decisions(t, batch)
            start, end = (law.reshape(size, -1).sum(axis=1) for law in (p, q))
            rounds.append(t)
            epsilons.append(float(rounded(epsilon_from_laws(start, end, claim.delta))))
        return {"kind": "exact", "rounds": rounds, "epsilon": short(epsilons)}
    if seen.releases is not None and len(seen.releases) != pair.rounds - 1:
        return None
    third = seen.runs // 3
    left_world, right_world = (list(world) for world in (pair.left, pair.right))
    for t in horizons:
        prefix, head = Pair(left_world[:t], right_world[:t]), _cut(seen, t)
        kind = attack_of(attack.name, learner, prefix, claim.view)
        if kind is None:
            return None
        training = head[: third // 2] if kind.trained else None
        scores, left = kind.fit(learner, prefix, training).score(head), head.left
        chosen_on = slice(third // 2 if kind.trained else 0, third)
        event = choose_by_labels(
            scores[chosen_on], left[chosen_on], delta=claim.delta, alpha=alpha, runs=seen.runs - third, fair=True
        )
        counts = count(event, scores[third:], left[third:])
        rounds.append(t)
        epsilons.append(bound_of(event, counts, delta=claim.delta, alpha=alpha))
    return {"kind": "lower bound", "rounds": rounds, "epsilon": short(epsilons)}


def _cut(seen: Transcripts, rounds: int) -> Transcripts:
    releases = None if seen.releases is None or rounds < 2 else seen.releases[: rounds - 1]
    return Transcripts(seen.actions[:rounds], seen.left, releases)


def _likeliest(learner: Learner, pair: Pair, attack: SequenceRatio, event: Event) -> list[SequenceJson]:
    """Return the likeliest sequences that the event names, with their probability in both worlds."""
    table, p, q = attack.laws
    sequences = all_sequences(learner.arms, decisions(pair.rounds, batch_of(learner)))
    rows: list[SequenceJson] = []
    for side, members, law in (("left", table >= event.upper, p), ("right", table <= event.lower, q)):
        for i in np.argsort(-rounded(np.where(members, law, -1.0)), kind="stable")[:SHOWN_SEQUENCES]:
            if members[i]:
                arms = [int(a) + 1 for a in sequences[:, i]]
                rows.append({"arms": arms, "says": side, "left": _one(p[i]), "right": _one(q[i])})
    return rows


def _prefixes(event: Event, scores: Floats, left: _Labels) -> list[Counts]:
    """Return the counts of successive stretches, for learners whose certification kept no blocks."""
    if not scores.size:
        return []
    cuts = np.unique(np.geomspace(min(200, scores.size), scores.size, PREFIXES).astype(int))
    starts = [0, *cuts[:-1]]
    return [count(event, scores[a:b], left[a:b]) for a, b in zip(starts, cuts, strict=True)]


def _growth(measure: Measure, event: Event, parts: Sequence[Counts], alpha: float) -> GrowthJson:
    """Return the bound that each prefix of the runs would have given. Only the last one was meant to be read."""
    prefixes = list(_some_prefixes(parts, PREFIXES))
    before, last = prefixes[:-1], prefixes[-1:]
    if measure.is_epsilon and before:
        bounds = bounds_of(event, before, delta=measure.stated[1], alpha=alpha, margins=COARSE).tolist()
    else:
        bounds = [lower_of(measure, event, counts, alpha=alpha, margins=COARSE) for counts in before]
    bounds += [lower_of(measure, event, counts, alpha=alpha, margins=MARGINS) for counts in last]
    return {"runs": [counts.runs for counts in prefixes], "bound": short(bounds)}


def _some_prefixes(parts: Sequence[Counts], n_prefixes: int) -> Iterator[Counts]:
    if not parts:
        return
    ends = set(np.round(np.geomspace(1, len(parts), n_prefixes)).astype(int).tolist())
    total = Counts()
    for number, part in enumerate(parts, start=1):
        total = total + part
        if number in ends:
            yield total


def _one(value: float) -> float:
    return float(f"{value:.5g}")


def _digits(values: ArrayLike) -> list[float]:
    return [_one(v) for v in np.asarray(values, dtype=float).tolist()]


def short(values: ArrayLike) -> list[float | None]:
    """Return numbers of five digits, None for one that is not finite."""
    return [_finite(v) for v in np.asarray(values, dtype=float).tolist()]


def _finite(value: float) -> float | None:
    return _one(value) if math.isfinite(value) else None
