"""Falsify a claim about a learner, a mechanism or a training: the keywords of every audit, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from ...mechanisms.claim import Claim, check_claim
from ...mechanisms.global_random import FRESH_SEEDS
from ..attacks.outputs.own_score import ScoreFunction
from ..canaries.training_audit import Training, audit_training
from ..execution.cluster import Cluster
from ..execution.execution import Budget, Execution, Memory
from ..execution.progress import DELAY, begin
from ..play.pairs import Pair
from ..verdicts.blind_spot import power_of
from ..verdicts.verdict import Result
from .audited import audited, refuse
from .blind_spot_search import WeakenChoice
from .given import Given


def falsify(
    target: object,
    claim: Claim,
    *,
    rounds: int | None = None,
    arms: int | None = None,
    pair: Pair | None = None,
    pairs: Iterable[Any] | None = None,
    left: object = None,
    right: object = None,
    inputs: object = None,
    canaries: int | None = None,
    trainings: int = 1,
    runs: int = 100_000,
    seed: int = 0,
    confidence: float = 0.99,
    stop: str = "budget",
    bits: bool = False,
    os_random: bool = False,
    global_random: bool = False,
    reseed: bool = False,
    call_limit: float | None = None,
    attributes: str | Sequence[str] | None = None,
    score: ScoreFunction | None = None,
    weaken: WeakenChoice = None,
    power: float | str | None = None,
    shrink: bool = True,
    jobs: int = 1,
    progress: bool = True,
    memory: Memory | None = None,
    cluster: Cluster | None = None,
) -> Result:
    """Try to falsify a privacy claim about a learner, a mechanism or a training.

    Parameters
    ----------
    target : Learner, a user's class, or a callable
        A batched learner; a class with `act` and `update` that is built as `cls(arms, rounds, rng)`; or a mechanism:
        `mechanism(data, rng)` with a numpy Generator, its only randomness, returns one output: a number, a vector, a
        text, None, or lists, tuples, sets, dictionaries and arrays of them (`encoding`). With a true attribute
        `batched` it is called as `mechanism(data, draws, runs)` and returns (runs,) or (dim, runs).
    claim : Claim
        What is promised. Of a mechanism's its losses, neighbours and surface stay as they are: which inputs are
        neighbours is said by left and right, pairs or inputs.
    rounds : int, optional
        A learner's horizon; that of the pair if one is given.
    arms : int, optional
        For a user's class; a batched learner knows its own.
    pair : Pair, optional
        The two loss sequences of a learner. By default the worst of the standard families is searched.
    pairs : iterable of Pair, or of (left, right), optional
        The pairs to search: of losses, or of a mechanism's inputs.
    left, right : optional
        Two neighbouring inputs: JSON, arrays or data frames of a mechanism; of a learner two sequences of rounds in
        its own terms (`audit.play.rounds`): loss vectors, convex losses, or `{"user": ..., "context": ..., "losses":
        ...}`, which may differ in as many rounds as the claim says.
    inputs : hypothesis strategy, optional
        Of the pairs to search: from `overclaim.testing.neighbours`, or any other strategy of pairs. Pairs on which the
        target raises are left out, and counted. What is falsified is shrunk to the smallest inputs that still are.
        The result's claim has the relation.
    canaries, trainings : int, optional
        Of a training, ``def training(included, rng) -> scores``: how many canaries each training has, and how many
        trainings are run. Fair coins decide which canaries are in the data (`included`, bool), and a score is returned
        for each, larger where the attack takes it for included (`canaries.training_audit`). Runs do not count then.
        Many trainings of one canary make independent scores, which certify more in other measures than epsilon.
    runs : int
        All runs of the audit, both worlds, search and pilot included.
    seed : int
        Non-negative.
    confidence : float
        1 - alpha of the certificate, in (0, 1).
    stop : {"budget", "early"}
        When to stop: after all the runs, or as soon as the claim is falsified. An early audit is anytime-valid, and
        learns its attack on the way; if nothing is wrong its bound is looser than that of a full budget. Inputs are
        searched before, on runs of their own. Not with `os_random`.
    bits : bool
        Whether the attack may read the low-order bits of a mechanism's floating-point outputs
        (`attacks.outputs.float_leaks`). A claim that is true in real arithmetic may be false in double precision.
    os_random : bool
        Whether a mechanism, or a plain class, has randomness that cannot be seeded, as that of the operating system.
        Then nothing is played twice, and the same seed gives other counts; the verdict is as valid. Whether runs
        depend on each other is tested all the same. All runs are played in this process: in others, or resumed, a
        generator that the target holds could draw the same again.
    global_random : bool
        Whether a mechanism, or a plain class, draws from `np.random`, `random` or generators made without a seed: they
        draw from the generator of its run then, and it may take none. Their state is restored afterwards.
    reseed : bool
        As `global_random`; and seeds that it sets itself, constants above all, are others in each run: equal ones of a
        run stay equal. That tests its calibration, and not what it releases as it is.
    call_limit : float, optional
        Seconds of processor time that one call of a mechanism may take while `inputs` are searched and shrunk: pairs
        on which it is slower are left out, and counted. Which these are depends on the machine. Certification waits.
    attributes : "fitted", "all" or names, optional
        Where a mechanism returns an object, such as a fitted model: what of it is the output. "fitted" are the
        attributes that end with an underscore, as scikit-learn names what was learned, "all" those that do not begin
        with one.
    score : callable, optional
        An attack of your own, ``score(output, left, right) -> float``: larger where the left input explains a
        mechanism's output better, nan where it does not guess. It is one more attack, and is not fitted.
    power : float or "off", optional
        A claim survives only where the audit catches so many times too little noise, 3 by default: weaker noise is
        planted in the target's own random numbers, and the audit made again (`pipeline.power_test`). "off" leaves it
        out: then a third of the claim has to be certified.
    weaken : str or callable, optional
        How noise is made weaker that cannot be reached so: the parameter that sets it, `"epsilon"` to be multiplied
        by the factor or `"1/scale"` to be divided (of a function, a keyword that has a default), or a function from
        the factor to the weaker target. False is the same as `power="off"`.
    shrink : bool
        Whether the inputs of a falsified claim are shrunk, where they were searched: up to 4 times the runs more.
    jobs : int
        Processes. The result does not depend on it.
    progress : bool
        Show a progress bar on stderr after two seconds, where that is a terminal or a notebook's.
    memory : Memory, optional
        Finished blocks of the same audit are taken from it, and new ones kept in it. It does not change the result.
    cluster : Cluster, optional
        Computes the blocks of certification, instead of processes here. It does not change the result.

    Returns
    -------
    Result

    Raises
    ------
    ValueError
        For parameters outside their range, what the target does not take, a pair outside the claim's loss set, or
        inputs that are missing, equal, no JSON or no neighbours.
    LearnerError
        If the target raises, returns what cannot be read, draws from something else than its generator, or has runs
        that depend on each other, whether seen before the audit, in its certification or after it.

    Examples
    --------
    Noise of scale 1/2 for each batch of one loss, where epsilon = 1 needs scale 1; and for a count:

    >>> from overclaim.learners import BatchedLaplace, Threshold
    >>> learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=2.0, batch=1)
    >>> result = falsify(learner, Claim(epsilon=1.0), rounds=2, runs=20_000)
    >>> result.verdict, round(result.epsilon_lower, 2)
    (<Verdict.FALSIFIED: 'FALSIFIED'>, 1.45)
    >>> def count(data, rng):
    ...     return len(data) + rng.laplace(scale=0.5)
    >>> result = falsify(count, Claim(epsilon=1.0), left=[0, 0], right=[0], runs=5_000)
    >>> result.verdict, 1.5 < result.epsilon_lower < 2.0
    (<Verdict.FALSIFIED: 'FALSIFIED'>, True)
    """
    check_claim(claim)
    game: dict[str, Any] = {"rounds": rounds, "arms": arms, "pair": pair, "pairs": pairs}
    worlds: dict[str, Any] = {"left": left, "right": right, "inputs": inputs}
    randomness: dict[str, Any] = {"os_random": os_random, "global_random": FRESH_SEEDS if reseed else global_random}
    read: dict[str, Any] = {"bits": bits, "call_limit": call_limit, "attributes": attributes, "score": score}
    tested = power_of(power, weaken)
    all_inputs = Given(**game, **worlds, **randomness, **read, weaken=weaken, power=tested, shrink=shrink)
    budget, execution = Budget(runs, seed, confidence, stop), Execution(jobs, progress, memory, cluster)
    if progress:
        begin(DELAY)
    if canaries is not None:
        refuse(target, "training", all_inputs)
        options: dict[str, Any] = {"canaries": canaries, "trainings": trainings, "power": tested}
        options["global_random"] = randomness["global_random"]
        return audit_training(cast(Training, target), claim, budget, execution, **options)
    return audited(target, claim, budget, execution, all_inputs)


#: The name that audits of mechanisms had.
falsify_mechanism = falsify
