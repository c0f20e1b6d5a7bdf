"""Upper bounds: the largest cost of a path, on a pair and on every pair, and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...learners.problems.losses import Linear, loss_set
from ...learners.protocol import Learner
from ...mechanisms.claim import Claim
from ...mechanisms.draws import Floats
from ...mechanisms.view import View
from ..play.pairs import Pair, differing_losses
from .branches import SAMPLED, Branches, branches
from .costs import composed_epsilon, laplace_shifts, path_cost
from .coupling import Twin
from .parting import Leak
from .replay import Trace, playing, trace, traces
from .tape import Escape, Shown

#: Why every run of a target does the same.
ASKS_FOR_NONE = "no line asks for the value of a noisy number"
#: Runs of a block whose action is forced: paths that cost the same but for rounding.
_FORCED = 2
#: The most rounds times pairs times branches that are played for a bound on every pair.
_MOST_PAIRS = 20_000


@dataclass(frozen=True)
class Upper:
    """An upper bound on epsilon, in nats.

    Attributes
    ----------
    epsilon : float
        inf where no finite one is known.
    scope : {"pair", "claim"}
        For the traced pair, or for every pair of the claim.
    how : {"maximised", "bounded", "sampled"}
        Whether it is the largest cost of all paths, a bound on it, or only the largest that was sampled: then another
        path may cost more, and it bounds nothing.
    rests_on : tuple of str
    """

    epsilon: float
    scope: str
    how: str
    rests_on: tuple[str, ...]

    @property
    def binds(self) -> bool:
        """Whether it is a bound, given what it rests on."""
        return self.how != "sampled" and math.isfinite(self.epsilon)


@dataclass(frozen=True)
class Tracing:
    """What traces of a target on a pair show.

    Attributes
    ----------
    traces : list of Trace
    leak : Leak or None
        The first that was found; then there is no bound.
    pair_upper : Upper or None
    claim_upper : Upper or None
        Where the extreme pairs of the claim are known and few enough.
    worst : Trace
        The path of the largest cost.
    run : int
        Its run.
    """

    traces: list[Trace]
    leak: Leak | None
    pair_upper: Upper | None
    claim_upper: Upper | None
    worst: Trace
    run: int

    @property
    def upper(self) -> Upper | None:
        """The bound for the claim where there is one, else that for the pair."""
        return self.claim_upper or self.pair_upper


def tracing(
    target: Any, pair: Any, claim: Claim, *, seed: int = 0, every_pair: bool = True, twin: Twin | None = None
) -> Tracing:
    """Trace a learner or a mechanism on a pair, and bound its epsilon from above where nothing leaks.

    Parameters
    ----------
    twin : Twin, optional
        Of the target, made before it was played.

    Raises
    ------
    UntraceableError
        If the target draws in a way that is not watched.
    LearnerError
        If it raises.
    """
    with nullcontext(twin) if twin is not None else closing(Twin(target)) as plain_plays:
        return _coupled(
            plain_plays, target, pair, claim, traced(target, pair, claim, seed=seed, every_pair=every_pair)
        )


def _coupled(twin: Twin, target: Any, pair: Any, claim: Claim, untested: Tracing) -> Tracing:
    """Return a tracing whose bound, where it is one of forms, plain plays have tested."""
    upper = untested.pair_upper
    if upper is None or not upper.binds or ASKS_FOR_NONE not in upper.rests_on:
        return untested
    coupled = twin.coupled(pair, claim.view, untested.traces[0])
    if coupled.fault:
        rests = tuple(coupled.fault if part == ASKS_FOR_NONE else part for part in upper.rests_on)
        return replace(untested, pair_upper=replace(upper, how="sampled", rests_on=rests), claim_upper=None)
    plays = f"left with moved noise gave what right gave in {coupled.agreed} of {coupled.plays} plays"
    rests = tuple(
        part
        for assumption in upper.rests_on
        for part in ((assumption, plays) if assumption == ASKS_FOR_NONE else (assumption,))
    )
    return replace(untested, pair_upper=replace(upper, rests_on=rests))


def traced(target: Any, pair: Any, claim: Claim, *, seed: int = 0, every_pair: bool = False) -> Tracing:
    """Return what `tracing` does, but that no plain plays have tested it: a bound ranks pairs, and is none yet."""
    replays = traces(target, pair, seed=seed, view=claim.view)
    leaks = [replay for replay in replays if replay.leak is not None]
    leaks.sort(key=lambda replay: replay.leak is not None and not replay.leak.bypass)
    if leaks:
        return Tracing(replays, _counted(leaks, replays), None, None, leaks[0], 0)
    epsilon, branching, worst, run, gap = _largest(target, pair, claim, replays, seed)
    if not any(replay.calls for replay in replays):
        return Tracing(replays, None, None, None, worst, run)
    branching = branching if gap is None else Branches("sampled", gap)
    on_pair = Upper(epsilon, "pair", branching.how, _rests_on(branching, replays))
    for_every_pair = every_pair and isinstance(pair, Pair) and gap is None
    on_all = _claim_upper(target, pair, claim, seed, replays) if for_every_pair else None
    return Tracing(replays, None, on_pair, on_all, worst, run)


def _counted(leaking: list[Trace], replays: list[Trace]) -> Leak:
    """Return the first leak, counted in all replayed runs: of a plain target each is a trace of its own."""
    leaks = [leaking_trace.leak for leaking_trace in leaking if leaking_trace.leak is not None]
    same_leaks = sum(leak.runs for leak in leaks if (leak.what, leak.bypass) == (leaks[0].what, leaks[0].bypass))
    return replace(leaks[0], runs=same_leaks, tried=sum(leaking_trace.runs for leaking_trace in replays))


def _largest(
    target: Any, pair: Any, claim: Claim, replays: list[Trace], seed: int, *, composed: bool = True
) -> tuple[float, Branches, Trace, int, str | None]:
    """Return the largest epsilon of a path, how it was found, the path that costs most, and what was not compared.

    Parameters
    ----------
    composed : bool
        Whether Laplace noise may be composed exactly at a delta.
    """
    branching = branches(target, pair)
    if branching is SAMPLED:
        branching = _of_forms(replays)
    if isinstance(pair, Pair) and pair.shows_nothing(claim.view):
        branching = Branches("maximised", "the last round is not learned from")
    if branching.both and not _both_played(replays[0], pair):
        branching = Branches("sampled", "the paths were sampled")
    paths = list(replays)
    if branching.choices:
        paths = _forced(target, pair, claim.view, branching, seed)
    costs = [path_cost(path.calls, path.runs) for path in paths]
    values = [path_total.epsilon(claim.delta) for path_total in costs]
    epsilon = float(max(value.max() for value in values))
    if not claim.measure.is_epsilon:  # which path costs most in its own measure
        levels = [path_total.level(claim.measure) for path_total in costs]
        values = values if any(level is None for level in levels) else [level for level in levels if level is not None]
    dearest = int(np.argmax([value.max() for value in values]))
    if composed and claim.delta and branching.how == "maximised":
        epsilon = _composed(paths, claim.delta, epsilon)
    if branching.bound is not None:
        epsilon = float(branching.bound.epsilon(claim.delta)[0])
    return epsilon, branching, paths[dearest], int(values[dearest].argmax()), _gap([*replays, *paths])


def _of_forms(replays: list[Trace]) -> Branches:
    """Return on what the cost of a path depends, where noise was followed through the target's own code."""
    if all(replay.exact for replay in replays):
        rounded = [replay.rounded for replay in replays if replay.rounded is not None]
        if rounded:
            return replace(SAMPLED, reason=f"rounding of {max(rounded):.2g} is not small beside the noise")
        return Branches("maximised", ASKS_FOR_NONE)
    escaped = escape_of(replays)
    if escaped is None:
        return SAMPLED
    return replace(SAMPLED, reason=f"{SAMPLED.reason}: {escaped}")


def escape_of(replays: list[Trace]) -> Escape | None:
    """Return where a trace first no longer follows what is random."""
    return next((replay.escaped for replay in replays if replay.escaped is not None), None)


def _gap(traces: list[Trace]) -> str | None:
    """Return why what some path shows is not all of its cost; None where it is."""
    for replay in traces:
        if replay.leak is not None:
            return f"a path that was forced leaks: {replay.leak.what}"
        if replay.bare or replay.lost:
            return replay.bare or replay.lost
    return None


def _composed(paths: list[Trace], delta: float, epsilon: float) -> float:
    """Return the largest epsilon at delta of Laplace noise composed exactly, path by path; else as it was."""
    costs = []
    for path in paths:
        run = int(path_cost(path.calls, path.runs).epsilon(0.0).argmax())
        shifts = laplace_shifts(path.calls, run, path.runs)
        if shifts is None:
            return epsilon
        costs.append(composed_epsilon(shifts, delta))
    return min(epsilon, max(costs))


def _forced(target: Learner, pair: Pair, view: View, branching: Branches, seed: int) -> list[Trace]:
    return [
        trace(playing(target, pair, _FORCED, view, forced=choice), seed, 0, _FORCED) for choice in branching.choices
    ]


def _both_played(replay: Trace, pair: Pair) -> bool:
    events = (event for event in replay.left if isinstance(event, Shown))
    actions = next(event.value for event in events if event.what == "action" and event.round == pair.t0 + 1)
    return len(np.unique(np.round(actions, 9), axis=-1).T) == 2


def _rests_on(branching: Branches, replays: list[Trace]) -> tuple[str, ...]:
    runs = sum(replay.runs for replay in replays)
    min_calls, max_calls = (
        number(len(replay.calls) for replay in replays) for number in (min, max)
    )  # rejection draws again
    count = f"{max_calls} noisy" if min_calls == max_calls else f"{min_calls} to {max_calls} noisy"
    sentence = f"{count} call is all there is" if min_calls == max_calls == 1 else f"{count} calls are all there are"
    paths = branching.reason
    if branching.how == "sampled":
        same_inputs = " (the inputs were the same in all of them)" if _fixed_inputs(replays) else ""
        paths += f"{';' if ':' in paths else ':'} the largest of {runs}{same_inputs}, another may cost more"
    return (
        "the noise has the law that each call names",
        f"the {sentence}: {_seen(replays, runs)}",
        paths,
        "real arithmetic",
    )


def _seen(replays: list[Trace], runs: int) -> str:
    if any(replay.lost for replay in replays):
        return "whether anything else differs the replays do not tell"
    return f"nothing else differed in {'the paired run' if runs == 1 else f'{runs} replayed runs'}"


def _fixed_inputs(replays: list[Trace]) -> bool:
    """Tell whether every call's input was the same in all runs of a world."""
    first = [call for call, _ in replays[0].calls]
    return all(
        len(replay.calls) == len(first)
        and all(
            call.value.dtype != object and np.allclose(call.value, other.value[..., :1], rtol=1e-9, atol=0.0)
            for (call, _), other in zip(replay.calls, first, strict=True)
        )
        for replay in replays
    )


def _claim_upper(learner: Learner, pair: Pair, claim: Claim, seed: int, replays: list[Trace]) -> Upper | None:
    """Return the bound for every pair of a claim; None where its extreme pairs are not known or too many.

    A cost is a norm of the difference of the two losses of round t0, whatever the losses of other rounds: it is convex
    in both, so the largest is at extreme losses. For a box these are all coordinates at opposite ends, for the L1 ball
    single coordinates, for the L2 ball these and the diagonal (L1 norms). What Laplace noise costs at a delta when it
    is composed exactly is no norm: on a box it grows with every coordinate, but on a ball some may make it largest.
    """
    rows = _extremes(learner, claim, pair)
    if not rows or pair.rounds**2 * len(rows) * learner.arms > _MOST_PAIRS:
        return None
    grows = loss_set(claim.losses).box or learner.arms == 1
    largest, branching = 0.0, Branches("maximised", "")
    for t0 in range(claim.view.updates(pair.rounds)):  # the last round is not learned from
        for left, right in rows:
            worlds = [[_zero(left)] * pair.rounds for _ in range(2)]
            worlds[0][t0], worlds[1][t0] = left, right
            extreme = Pair(*worlds)
            pair_branching = branches(learner, extreme)
            if pair_branching.how == "sampled" or pair_branching.both:
                return None
            paths = [trace(playing(learner, extreme, _FORCED, claim.view), seed, 0, _FORCED)]
            epsilon, *_, gap = _largest(learner, extreme, claim, paths, seed, composed=grows)
            if gap is not None:
                return None
            largest = max(largest, epsilon)
            branching = pair_branching if pair_branching.how == "bounded" or branching.reason == "" else branching
    law, _, _, arithmetic = _rests_on(branching, replays)
    runs = sum(replay.runs for replay in replays)
    on_traced_pair = f"nothing but the noisy calls differed in {runs} replayed runs of the traced pair"
    over_pairs = f"{branching.reason}; every round and extreme loss of the set was tried"
    kind = branching.how
    if claim.losses == "lipschitz":
        kind, over_pairs = "bounded", "gradients of 1-Lipschitz losses are at most 1 long; every round was tried"
    return Upper(largest, "claim", kind, (law, on_traced_pair, over_pairs, arithmetic))


def _extremes(learner: Learner, claim: Claim, pair: Pair) -> Sequence[tuple[Linear | Floats, Linear | Floats]]:
    """Return the extreme pairs of losses of one round; none where they are not known."""
    n, opposite = learner.arms, 0.0 if claim.neighbours == "zero-out" else -1.0
    if claim.losses == "lipschitz":
        if getattr(learner, "summands", "") != "gradients":  # gradients are at most 1 long, in any direction
            return []
        # The longest in L2, and in L1, the norm of Laplace noise.
        slopes = [np.eye(n)[0], np.full(n, n**-0.5)]
        return [(Linear(slope=tuple(x.tolist())), Linear(slope=tuple((opposite * x).tolist()))) for x in slopes]
    if not isinstance(pair.left, np.ndarray) or not loss_set(claim.losses).bounded:
        return []
    rows = differing_losses(claim, n)
    if claim.losses in ("l1-ball", "l2-ball"):  # a node's cost is the same along every axis
        axes = np.eye(n)[:1] if getattr(learner, "summands", "") == "losses" else np.eye(n)
        rows = [*rows, *((axis, opposite * axis) for axis in axes)]
    points = getattr(getattr(learner, "inner", None), "points", None)
    return rows if points is None else rows + [pair for p in points.T for pair in _along(p, claim)]


def _along(point: Floats, claim: Claim) -> list[tuple[Floats, Floats]]:
    """Return the extreme neighbours that move the loss of a point the most; of the L1 ball the axes do."""
    losses = loss_set(claim.losses)
    if claim.losses == "l1-ball":
        return []
    if claim.losses == "l2-ball":
        top, bottom = point / np.linalg.norm(point), -point / np.linalg.norm(point)
    else:
        top, bottom = (np.where(sign * point > 0, losses.high, losses.low) for sign in (1.0, -1.0))
    nothing = np.zeros_like(point)
    return [(top, nothing), (bottom, nothing)] if claim.neighbours == "zero-out" else [(top, bottom)]


def _zero(loss: Linear | Floats) -> Linear | Floats:
    return Linear(slope=(0.0,) * len(loss.slope)) if isinstance(loss, Linear) else np.zeros(len(loss))
