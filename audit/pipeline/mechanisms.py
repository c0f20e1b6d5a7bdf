"""Falsify a claim about a mechanism: its pairs of inputs, the checks before and after, and what is certified."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from ...learners.blame import blaming, extra_or_reason, name_of
from ...learners.protocol import LearnerError
from ...mechanisms.claim import Claim, check_claim
from ...mechanisms.global_random import restored
from ...mechanisms.parameters import with_plain_numbers
from ...mechanisms.weakening import with_parameter
from ..assumptions.independence import check_independence, check_replay
from ..execution.cluster import Cluster
from ..execution.execution import HERE, Budget, Execution, Memory
from ..play.attributes import WithAttributes
from ..play.call_limit import check_limit
from ..play.mechanism_runs import DataPair, RefusedInputError, generator_as
from ..play.raising import CURE, Outcomes, outcome_of
from ..play.unseeded import OnGlobals, Unseeded, digest_of
from ..spaces.related import space_of
from .anytime import check_measure, until_falsified
from .blind_spot_search import WeakenChoice, weakening, with_blind_spot
from .early import AnytimeMechanism
from .frame import FEWEST_RUNS, Certified, all_runs, conclude, with_paired_runs
from .input_search import Searched, search_inputs
from .mechanism_stages import MechanismAudit
from .shrink_inputs import shrink_inputs
from .verdict import Result, Verdict


def falsify_mechanism(
    mechanism: Callable[..., object],
    claim: Claim,
    *,
    left: object = None,
    right: object = None,
    pairs: Iterable[tuple[object, object]] | None = None,
    inputs: object = None,
    runs: int = 100_000,
    seed: int = 0,
    confidence: float = 0.99,
    bits: bool = False,
    os_random: bool = False,
    global_random: bool = False,
    call_limit: float | None = None,
    attributes: str | Sequence[str] | None = None,
    jobs: int = 1,
    progress: bool = False,
    memory: Memory | None = None,
    cluster: Cluster | None = None,
    stop: str = "budget",
    weaken: WeakenChoice = None,
    shrink: bool = True,
) -> Result:
    """Try to falsify a privacy claim about a mechanism.

    Parameters
    ----------
    mechanism : callable
        `mechanism(data, rng)` with a numpy Generator, its only randomness, returns one output: a number, a vector, a
        text, None, or lists, tuples, sets, dictionaries and arrays of them (`encoding`). With a true attribute
        `batched` it is called as `mechanism(data, draws, runs)` and returns (runs,) or (dim, runs).
    claim : Claim
        Its epsilon and delta; the rest of a claim is about learners.
    left, right : JSON, arrays, data frames
        The two neighbouring inputs.
    pairs : iterable of (left, right)
        The pairs to search, where left and right are not given.
    inputs : hypothesis strategy
        Of the pairs to search, where none are given: from `overclaim.testing.neighbours`, or any other. Pairs on which
        the mechanism raises are left out, and counted. What is falsified is shrunk to the smallest data that still is.
    runs : int
        All runs of the audit, both worlds, search and pilot included.
    seed : int
        Non-negative.
    confidence : float
        1 - alpha of the certificate, in (0, 1).
    bits : bool
        Whether the attack may read the low-order bits of floating-point outputs (`attacks.outputs.float_leaks`). A
        claim that is true in real arithmetic may be false in double precision.
    os_random : bool
        Whether the mechanism has randomness of its own, which cannot be seeded, as that of the operating system. Then
        nothing is played twice, and the same seed gives other counts; the verdict is as valid. Whether runs depend on
        each other is tested all the same. All runs are played in this process: in others, or resumed, a generator
        that the mechanism holds could draw the same again.
    global_random : bool
        Whether the mechanism draws from `np.random`, `random` or generators made without a seed: they draw from the
        generator of its run then, and a mechanism may take the data alone. Their state is restored afterwards.
    call_limit : float, optional
        Seconds of processor time that one call may take while `inputs` are searched and shrunk: pairs on which the
        mechanism is slower are left out, and counted. Which these are depends on the machine. Certification waits.
    attributes : "fitted", "all" or names, optional
        Where the mechanism returns an object, such as a fitted model: what of it is the output. "fitted" are the
        attributes that end with an underscore, as scikit-learn names what was learned, "all" those that do not begin
        with one.
    jobs : int
        Processes. The result does not depend on it.
    progress : bool
        Show a progress bar on stderr.
    memory : Memory, optional
        Finished certification blocks of the same audit are taken from it, and new ones kept in it. It does not change
        the result.
    cluster : Cluster, optional
        Computes the blocks of certification, instead of processes here. It does not change the result.
    stop : {"budget", "early"}
        When to stop, as in `falsify`. The inputs are searched before, on runs of their own. Not with `os_random`.
    weaken : bool, str or callable, optional
        Measure the blind spot of an audit that survives, as in `falsify`; the parameter is a keyword of a function
        that has a default, or a field of a dataclass.
    shrink : bool
        Whether the inputs of a falsified claim are shrunk, where they were searched: up to 4 times the runs more.

    Returns
    -------
    Result

    Raises
    ------
    ValueError
        For parameters outside their range, a claim with losses, neighbours or a surface, or inputs that are missing,
        equal or no JSON.
    LearnerError
        If the mechanism raises, returns what cannot be read, draws from something else than its generator, or has runs
        that depend on each other, whether seen before the audit, in its certification or after it.

    Examples
    --------
    >>> def count(data, rng):
    ...     return len(data) + rng.laplace(scale=0.5)
    >>> result = falsify_mechanism(count, Claim(epsilon=1.0), left=[0, 0], right=[0], runs=5_000)
    >>> result.verdict, 1.5 < result.epsilon_lower < 2.0
    (<Verdict.FALSIFIED: 'FALSIFIED'>, True)
    """
    check_claim(claim)
    check_no_game(claim)
    _check_no_learner(mechanism)
    return audit_mechanism(
        mechanism,
        claim,
        Budget(runs, seed, confidence, stop),
        Execution(jobs, progress, memory, cluster),
        left=left,
        right=right,
        pairs=pairs,
        inputs=inputs,
        bits=bits,
        os_random=os_random,
        global_random=global_random,
        call_limit=call_limit,
        attributes=attributes,
        weaken=weaken,
        shrink=shrink,
    )


def _check_no_learner(mechanism: object) -> None:
    """Raise ValueError for what is to be played, round after round."""
    called = callable(mechanism) and not isinstance(mechanism, type)
    if not called and hasattr(mechanism, "act") and hasattr(mechanism, "update"):
        raise ValueError(f"{name_of(mechanism)} is a learner, and no mechanism: audit it by falsify")


def check_no_game(claim: Claim) -> None:
    """Raise ValueError where a claim says what is for learners alone: it would not be heeded."""
    usual = Claim(measure=claim.measure)
    said = [name for name in ("losses", "neighbours", "surface") if getattr(claim, name) != getattr(usual, name)]
    if said:
        raise ValueError(
            f"a mechanism's claim takes no {said[0]}, got {getattr(claim, said[0])!r}: that is for learners; which "
            "inputs are neighbours is said by left and right, pairs or inputs"
        )


@blaming
@restored()
def audit_mechanism(
    mechanism: Callable[..., object],
    claim: Claim,
    budget: Budget,
    execution: Execution = HERE,
    *,
    left: object = None,
    right: object = None,
    pairs: Iterable[tuple[object, object]] | None = None,
    inputs: object = None,
    bits: bool = False,
    os_random: bool = False,
    global_random: bool = False,
    call_limit: float | None = None,
    attributes: str | Sequence[str] | None = None,
    weaken: WeakenChoice = None,
    shrink: bool = False,
) -> Result:
    """As `falsify_mechanism`, whose keywords a budget and an execution hold."""
    began = time.perf_counter()
    budget.of_at_least(FEWEST_RUNS)
    check_limit(call_limit)
    _check_options(claim, budget, searches=inputs is not None, limited=call_limit is not None, os_random=os_random)
    mechanism = with_plain_numbers(mechanism)
    how = weakening(weaken, mechanism, partial(with_parameter, mechanism))
    if global_random and os_random:
        raise ValueError("give either os_random or global_random: one has no seed, the other has")
    for wrap in _wrappers(attributes, global_random=global_random, raising=claim.raising):
        mechanism, how = wrap(mechanism), how and how.through(wrap)
    target = Unseeded(mechanism) if os_random else mechanism
    if os_random:  # a generator of its own may begin anew elsewhere, and when an audit is resumed
        execution = replace(execution, memory=None, cluster=None)
    facts: Any = {"claim": claim, "budget": budget, "execution": execution}
    audit = MechanismAudit(mechanism=target, bits=bits, call_limit=call_limit, **facts)
    searched = space = None
    options = _pairs(left, right, pairs) if inputs is None else []
    if inputs is not None:
        _refuse_both(left, right, pairs)
        space = space_of(inputs, budget.seed)
        searched = search_inputs(audit, space)
        audit, options = replace(audit, index=searched.index, spent=searched.runs), [searched.pair]
    with _naming_the_cure(audit):
        certified = _checked(audit, options, None if os_random else mechanism)
    result = replace(conclude(audit, certified, began), searched=searched, outputs_digest=digest_of(certified.blocks))
    check_one_sided(searched, result, name_of(mechanism))
    if space is not None and shrink and claim.measure.is_epsilon and result.verdict is Verdict.FALSIFIED:
        shrunk, missing = extra_or_reason("shrunk inputs", partial(shrink_inputs, audit, space, result))
        result = replace(result, shrunk=shrunk, missing=(*result.missing, *missing))
    return with_paired_runs(audit, with_blind_spot(audit, result, how), certified.choice)


def _wrappers(
    attributes: str | Sequence[str] | None, *, global_random: bool, raising: str
) -> list[Callable[[Any], Callable[..., object]]]:
    """Return what reads, calls or catches the outputs of a mechanism for us, the innermost first."""
    asked: list[tuple[bool, Callable[[Any], Callable[..., object]]]] = [
        (attributes is not None, lambda one: WithAttributes(one, attributes or ())),
        (global_random, OnGlobals),
        (raising == "outcome", Outcomes),
    ]
    return [wrap for wanted, wrap in asked if wanted]


@contextmanager
def _naming_the_cure(audit: MechanismAudit) -> Iterator[None]:
    """Say how an exception of the mechanism is taken as an outcome, where it can be."""
    try:
        yield
    except RefusedInputError as error:
        known = getattr(audit.mechanism, "batched", False) or generator_as(audit.mechanism)
        if known or audit.claim.raising == "outcome" or outcome_of(error.__cause__) is None:
            raise
        raise RefusedInputError(f"{error}; {CURE}") from error.__cause__


def check_one_sided(searched: Searched | None, result: Result, name: str) -> None:
    """Raise LearnerError for a pair on which one side alone raises, unless another pair falsifies the claim."""
    if searched is not None and searched.one_sided is not None and result.verdict is not Verdict.FALSIFIED:
        raise LearnerError(f"{name} {searched.one_sided.words}")


def _checked(audit: MechanismAudit, options: Sequence[DataPair], seeded: object) -> Certified:
    """Return what an audit certifies, the runs' independence tested before it and after.

    Parameters
    ----------
    seeded
        The mechanism, if its randomness can be seeded; else None.
    """
    runs, seed = audit.budget.runs, audit.budget.seed
    before = None if seeded is None else check_replay(seeded, options[0], seed, runs)
    check_independence(audit.mechanism, options[0], seed, runs)
    early = audit.budget.stop == "early"
    certified = until_falsified(AnytimeMechanism(audit), options) if early else all_runs(audit, options)
    if seeded is not None:  # a memory may show only after many calls, or on another input
        check_replay(seeded, options[0], seed, runs, before)
        if certified.choice.index != audit.index:
            check_replay(seeded, certified.choice.inputs, seed, runs)
    return certified


def _check_options(claim: Claim, budget: Budget, *, searches: bool, limited: bool, os_random: bool) -> None:
    """Raise ValueError for options that do not go together."""
    if limited and not searches:
        raise ValueError("call_limit is for inputs that are searched: slow ones are left out")
    if budget.stop != "early":
        return
    check_measure(claim)
    if os_random:
        why = "it learns from runs that a resumed audit plays again, and these cannot be"
        raise ValueError(f"stop must be budget with os_random, got early: {why}")


def _pairs(left: object, right: object, pairs: Iterable[tuple[object, object]] | None) -> list[DataPair]:
    if pairs is not None:
        if left is not None or right is not None:
            raise ValueError("give either left and right, or pairs")
        if not isinstance(pairs, Iterable):
            raise ValueError(f"pairs must be pairs of inputs, (left, right) each, got {pairs!r}")
        options = [_pair(pair) for pair in pairs]
        if not options:
            raise ValueError("there is no pair of inputs to audit on")
        return options
    if left is None and right is None:
        raise ValueError("two neighbouring inputs must be given: left and right")
    return [DataPair(left, right)]


def _refuse_both(left: object, right: object, pairs: object) -> None:
    if left is not None or right is not None or pairs is not None:
        raise ValueError("give either inputs, a strategy of pairs, or left and right, or pairs")


def _pair(pair: object) -> DataPair:
    if not isinstance(pair, Sequence) or isinstance(pair, str | bytes) or len(pair) != 2:
        raise ValueError(f"a pair must be two inputs, (left, right), got {pair!r}")
    return DataPair(*pair)
