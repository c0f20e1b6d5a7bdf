"""Asi, Raman & Talwar 2025, Faster Rates for Private Adversarial Bandits: the catalogue's entries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...mechanisms.parameters import check_positive
from ...mechanisms.statement import Statement
from ..bandits.exp3 import Exp3
from ..bandits.exp4 import BatchedExp4, Exp4, SteadyExp4
from ..bandits.ftpl_bandit import FtplBandit
from ..bandits.htinf import SIGMA, Htinf
from ..checks import check_batch
from ..conversions.batched import BatchedLaplace
from ..conversions.expert_advice import ExpertAdvice
from ..entry import Case, Entry, FalsifiedCase, RegretClaim, Setting, Shared, SurvivingCase
from ..probes.ladder import Ladder
from ..probes.threshold import Threshold
from ..problems.advice import Advice, graded_advice
from ..problems.losses import Linear, Switch
from ..protocol import Learner
from . import statements as said


def conversion(setting: Setting, inner: Learner, batch: int) -> BatchedLaplace:
    """Return Algorithm 1 around `inner`: noise 1 / (tau epsilon); corrected for [-1, 1], twice that."""
    sensitivity = 1.0 if setting.published else setting.range
    return BatchedLaplace(inner=inner, epsilon=setting.epsilon, batch=batch, sensitivity=sensitivity)


def default_batch(setting: Setting) -> int:
    """Return tau = ceil(1 / epsilon), at most T (Corollary 2)."""
    return max(1, min(setting.rounds, math.ceil(1 / setting.epsilon)))


def chosen_batch(setting: Setting, batch: int | None) -> int:
    """Return tau as given, or the default."""
    if batch is None:
        return default_batch(setting)
    check_batch(batch)
    return batch


def exponential_rates(setting: Setting, batch: int, choices: int) -> tuple[float, float]:
    """Return eta and gamma for exponential weights over `choices` on losses with Laplace(1 / (tau epsilon)) noise.

    Our choice: eta balances ln(choices) / eta with eta n K (1 + 2 lambda^2), and gamma keeps eta times an
    importance-weighted loss above -1 but for a probability of (K T)^-2 a batch.
    """
    k, n = setting.arms, max(1, setting.rounds // batch)
    lam = 1 / (batch * setting.epsilon)
    eta = math.sqrt(math.log(max(choices, 2)) / (n * k * (1 + 2 * lam**2)))
    return eta, min(1.0, eta * k * (1 + 2 * lam * math.log(k * setting.rounds)))


def batched_exp3(
    setting: Setting, *, eta: float | None = None, gamma: float | None = None, batch: int | None = None
) -> BatchedLaplace:
    """Return the EXP3 conversion (Corollary 22) with mixing; eta and gamma are our choice where not given."""
    k, tau = setting.arms, chosen_batch(setting, batch)
    if eta is None:
        eta = exponential_rates(setting, tau, k)[0]
    if gamma is None:
        lam = 1 / (tau * setting.epsilon)
        gamma = min(1.0, eta * k * (1 + 2 * lam * math.log(k * setting.rounds)))
    return conversion(setting, Exp3(arms=k, eta=eta, gamma=gamma), tau)


def batched_htinf(setting: Setting, *, sigma: float = SIGMA, batch: int | None = None) -> BatchedLaplace:
    """Return the HTINF conversion (Corollary 2): sigma = sqrt(6), tau = ceil(1 / epsilon)."""
    tau = chosen_batch(setting, batch)
    return conversion(setting, Htinf(arms=setting.arms, sigma=sigma), tau)


def batched_ftpl(
    setting: Setting, *, eta: float | None = None, cap: int | None = None, batch: int | None = None
) -> BatchedLaplace:
    """Return the FTPL conversion (Corollary 24); eta as for EXP3 and cap = sqrt(K n) are our choice."""
    k, tau = setting.arms, chosen_batch(setting, batch)
    eta = exponential_rates(setting, tau, k)[0] if eta is None else eta
    cap = max(k, math.ceil(math.sqrt(k * max(1, setting.rounds // tau)))) if cap is None else cap
    return conversion(setting, FtplBandit(arms=k, eta=eta, cap=cap), tau)


def batched_threshold(setting: Setting, *, threshold: float = 1.0, batch: int | None = None) -> BatchedLaplace:
    """Return the conversion around the Threshold probe, which attains epsilon.

    With more than two arms it is the Ladder: equal rungs from the threshold down by the range of the losses.
    """
    tau = chosen_batch(setting, batch)
    if setting.arms <= 2:
        return conversion(setting, Threshold(arms=setting.arms, threshold=threshold), tau)
    rungs = np.linspace(threshold - setting.range, threshold, setting.arms - 1)
    return conversion(setting, Ladder(thresholds=tuple(rungs.tolist())), tau)


def advice_of(setting: Setting, experts: int | None) -> Advice:
    """Return the default advice of `experts` experts, 2 K where not given."""
    return graded_advice(2 * setting.arms if experts is None else experts, setting.arms)


def exp4_local(
    setting: Setting, *, eta: float | None = None, gamma: float | None = None, experts: int | None = None
) -> BatchedLaplace:
    """Return locally private EXP4 (Algorithm 6): the conversion with batches of 1; eta and gamma are our choice."""
    advice = advice_of(setting, experts)
    eta = exponential_rates(setting, 1, advice.experts)[0] if eta is None else eta
    if gamma is None:
        gamma = min(1.0, eta * setting.arms * (1 + 2 / setting.epsilon * math.log(setting.arms * setting.rounds)))
    return conversion(setting, SteadyExp4(advice=advice, eta=eta, gamma=gamma), 1)


def exp4_batched(
    setting: Setting,
    *,
    eta: float | None = None,
    gamma: float | None = None,
    batch: int | None = None,
    experts: int | None = None,
    constant: float = 3.0,
) -> BatchedExp4:
    """Return batched private EXP4 (Algorithm 2).

    Our choice where not given: tau and gamma make the noise on a mean about 1 and tau T ln N, (c T / tau)^2 equal,
    with c = 3 K sqrt(N ln(1 / delta)) / epsilon, which gives regret of order T^(2/3); `constant` is that 3.
    """
    check_positive("constant", constant)
    advice = advice_of(setting, experts)
    t, log_n = setting.rounds, math.log(max(advice.experts, 2))
    spread = math.sqrt(advice.experts * math.log(1 / setting.delta)) if 0 < setting.delta < 1 else 1.0
    c = constant * setting.arms * spread / setting.epsilon
    tau = max(1, min(t, math.ceil((c**2 * t / log_n) ** (1 / 3)))) if batch is None else batch
    check_batch(tau)
    if gamma is None and c == 0:
        raise ValueError("gamma must be given where epsilon is infinite: without noise there is none to choose it by")
    gamma = min(1.0, c / tau) if gamma is None else gamma
    check_positive("gamma", gamma)
    if eta is None:
        b = c / (gamma * tau)
        n = max(1, t // tau)
        moment = 1 + setting.arms / tau + 2 * b**2
        eta = min(math.sqrt(log_n / (n * moment)), 1 / (1 + b * math.log(advice.experts * n * t)))
    return BatchedExp4(
        advice=advice,
        eta=eta,
        gamma=gamma,
        tau=tau,
        epsilon=setting.epsilon,
        delta=setting.delta,
        sensitivity=1.0 if setting.published else setting.range,
        constant=constant,
    )


def exp3(setting: Setting, *, eta: float = 0.1, gamma: float = 0.1) -> Exp3:
    """Return plain EXP3 (Algorithm 3): no noise, so any finite epsilon is false at some horizon."""
    return Exp3(arms=setting.arms, eta=eta, gamma=gamma)


def htinf_bound(setting: Setting, learner: Learner) -> float:
    """Return tau 30 sigma sqrt(K (T / tau + 1)) + tau while sigma bounds the noisy losses' second moment, else T.

    It says less than T from a little above T = 5400 K tau on, at sigma = sqrt(6).
    """
    outer: Any = learner.inner if isinstance(learner, ExpertAdvice) else learner
    tau, inner = outer.batch, outer.inner
    if setting.losses != "unit" or 1 + 2 * outer.noise.scale**2 > inner.sigma**2:
        return setting.rounds * setting.range
    return float(tau * 30 * inner.sigma * math.sqrt(inner.arms * (setting.rounds / tau + 1)) + tau)


def exponential_bound(setting: Setting, learner: Any) -> float:
    """Return a bound for exponential weights in the conversion, derived from the second-order inequality.

    On the event that every noise is at most B = gamma / (eta K) in size, eta times an estimate is at least -1, the
    noise still has mean 0, and `tau (ln N / eta + eta n K (1 + 2 lambda^2) + gamma n) + tau` bounds the regret, with n
    batches and Laplace(lambda) noise; off it, of probability at most n exp(-B / lambda), T does.
    """
    tau, inner, lam = learner.batch, learner.inner, learner.noise.scale
    n, k = -(-setting.rounds // tau), inner.arms
    if setting.losses != "unit":
        return setting.rounds * setting.range
    choices = inner.advice.experts if isinstance(inner, Exp4) else k
    fail = n * math.exp(-inner.gamma / (inner.eta * k * lam)) if lam > 0 else 0.0
    radicand = math.log(choices) / inner.eta + inner.eta * n * k * (1 + 2 * lam**2) + inner.gamma * n
    return float(tau * radicand + tau + min(1.0, fail) * setting.rounds)


def batched_exp4_bound(setting: Setting, learner: BatchedExp4) -> float:
    """Return the same for batched EXP4: a batch mean has second moment 1 + K / tau + 2 b^2, noise Laplace(b).

    Estimates are non-negative, so eta times a noisy mean is at least -1 while the N n noises are at most 1 / eta.
    """
    if setting.losses != "unit":
        return setting.rounds * setting.range
    tau, eta, b = learner.tau, learner.eta, learner.noise.scale
    n, experts = -(-setting.rounds // tau), learner.advice.experts
    fail = experts * n * math.exp(-1 / (eta * b)) if b > 0 else 0.0
    radicand = math.log(experts) / eta + eta * n * (1 + learner.arms / tau + 2 * b**2) + learner.gamma * n
    return float(tau * radicand + tau + min(1.0, fail) * setting.rounds)


SHARP = {"eta": 2.0, "gamma": 0.02}
#: Of follow the perturbed leader: rates with which its noise shows in few rounds.
CAPPED = {"eta": 2.0, "cap": 8, "batch": 1}
PAPER = "Asi, Raman & Talwar 2025"
LEMMA = f"{PAPER}, Lemma 3"


def trivial_bound(setting: Setting, learner: Learner) -> float:
    """Return the largest regret there is: no better bound is known to us."""
    return setting.rounds * setting.range


EVERY_INNER: Shared = {"standing": "theorem", "statement": said.ART_LEMMA_3}
FED: Shared = {"standing": "proof", "statement": said.ART_PROOF_3}
#: Of Theorem 9, whose parameters and algorithm are lost in our text.
LOST: Shared = {
    "standing": "reading",
    "note": "our reading: independent Laplace noise of scale 1 / epsilon on every observed loss",
}


def survives(
    parameters: Mapping[str, object], stated: Shared = EVERY_INNER, fed: Shared = FED, **changes: Any
) -> tuple[Case, ...]:
    """Return the audits of a true claim: both surfaces as published, and corrected."""
    return (
        SurvivingCase(**stated, parameters=parameters, **changes),
        SurvivingCase(**fed, surface="release", parameters=parameters, **changes),
        SurvivingCase(standing="control", calibration="corrected", parameters=parameters, **changes),
    )


def fails_on_symmetric(parameters: Mapping[str, object], **changes: object) -> Case:
    """Return the audit of the published noise on losses outside the paper's set."""
    note = "losses in [-1, 1]; the paper's are in [0, 1], and its noise is for those"
    fields: dict[str, Any] = {"standing": "variant", "losses": "symmetric", "runs": 50_000, **changes}
    return FalsifiedCase(note=note, parameters=parameters, **fields)


def answered(rounds: int, parameters: Mapping[str, object]) -> tuple[Case, ...]:
    """Return the audits, both calibrations, against an adversary that sees the actions.

    The worlds' first losses are 1 and 0; later the arm just played has loss 1 and the other 0.
    """
    first, second = (Linear(slope=slope) for slope in ((1.0, 0.0), (0.0, 1.0)))
    later_losses = [Switch(below=first, above=second, threshold=0.5, lag=1)] * (rounds - 1)
    pair = tuple([np.full(2, first), *later_losses] for first in (1.0, 0.0))
    note = "the later losses answer the actions: Section 2.4 says that the privacy guarantees hold against such too"
    fields: dict[str, Any] = {"expected": "survived", "parameters": parameters, "pair": pair, "runs": 100_000}
    return (
        Case(standing="reading", note=note, **fields),
        Case(standing="control", calibration="corrected", note="the later losses answer the actions", **fields),
    )


#: HTINF skips large losses and moves little in a round: its actions show next to nothing, with hardly any noise
#: (`docs/catalogue.md`); what it is fed is audited.
SKIPPED = SurvivingCase(**FED, surface="release", parameters={"batch": 2}, runs=100_000)


def hidden(statement: Statement) -> Case:
    """Return the audit of what HTINF's actions show, which tests little."""
    note = "HTINF's actions hide its noise (docs/catalogue.md); what it is fed is audited beside this"
    later_losses = [[1.0, 1.0]] * 7
    pair = [[1.0, 1.0], *later_losses], [[0.0, 0.0], *later_losses]
    fields: dict[str, Any] = {"standing": "theorem", "statement": statement, "parameters": {"batch": 2}, "runs": 5_000}
    return SurvivingCase(pair=pair, untested="allowed", note=note, **fields)


#: With gamma = 1 every arm is as rare as the noise is made for, and many experts compose: the claim has least slack.
MEANS = SurvivingCase(
    standing="reading",
    surface="release",
    rounds=2,
    parameters={"eta": 1.0, "gamma": 1.0, "batch": 1, "experts": 12},
    runs=100_000,
    note="the paper leaves the constant of the noise open, 3 is ours; at 0.5 the claim is false in this game",
)
#: With the constant of `MEANS` so little leaks that some seeds certify nothing of 20,000 runs.
LESS_NOISE = replace(
    MEANS,
    parameters={**MEANS.parameters, "constant": 0.55},
    note="the paper leaves the constant of the noise open; at 0.5 the claim is false in this game",
)

ENTRIES = (
    Entry(
        name="asi-raman-talwar/batched-exp3",
        summary="batched conversion around EXP3",
        source=LEMMA,
        build=batched_exp3,
        rounds=4,
        regret=RegretClaim(
            bound=exponential_bound, exponent=0.5, source=f"{PAPER}, Corollary 22; the constant is derived"
        ),
        cases=(
            *survives({**SHARP, "batch": 1}),
            SurvivingCase(**EVERY_INNER, rounds=8, parameters={"eta": 1.0, "gamma": 0.05, "batch": 2}),
            fails_on_symmetric({**SHARP, "batch": 1}),
            *answered(4, {**SHARP, "batch": 1}),
        ),
        example=SurvivingCase(**EVERY_INNER, parameters={**SHARP, "batch": 1}),
    ),
    Entry(
        name="asi-raman-talwar/batched-htinf",
        summary="batched conversion around HTINF",
        source=f"{LEMMA} and Corollary 2",
        build=batched_htinf,
        rounds=8,
        regret=RegretClaim(
            bound=htinf_bound, exponent=0.5, source=f"{PAPER}, Lemma 4; Huang, Dai & Huang 2022, Theorem 4.1"
        ),
        cases=(SKIPPED, hidden(said.ART_COROLLARY_2)),
        example=SKIPPED,
    ),
    Entry(
        name="asi-raman-talwar/batched-ftpl",
        summary="batched conversion around follow the perturbed leader",
        source=f"{LEMMA} and Corollary 24",
        build=batched_ftpl,
        rounds=4,
        regret=RegretClaim(
            bound=trivial_bound,
            exponent=0.5,
            source=f"{PAPER}, Corollary 24, of unknown constant: the largest regret there is",
        ),
        cases=(
            *survives(CAPPED, runs=200_000),
            *answered(4, CAPPED),
        ),
        example=SurvivingCase(**EVERY_INNER, parameters=CAPPED),
    ),
    Entry(
        name="asi-raman-talwar/batched-threshold",
        summary="batched conversion around the Threshold probe, or the Ladder with three arms and more",
        source=LEMMA,
        build=batched_threshold,
        rounds=2,
        cases=(
            *survives({}),
            SurvivingCase(
                standing="theorem", statement=said.ART_THEOREM_1, rounds=4, parameters={"batch": 2, "threshold": 1.0}
            ),
            SurvivingCase(**EVERY_INNER, arms=3),
            fails_on_symmetric({}),
            fails_on_symmetric({}, arms=3),
            SurvivingCase(standing="control", calibration="corrected", losses="symmetric"),
        ),
    ),
    Entry(
        name="asi-raman-talwar/exp4-local",
        summary="locally private EXP4",
        source=f"{PAPER}, Theorem 9",
        build=exp4_local,
        rounds=4,
        regret=RegretClaim(
            bound=exponential_bound, exponent=0.5, source=f"{PAPER}, Theorem 9; the constant is derived"
        ),
        cases=(*survives(SHARP, LOST, LOST), fails_on_symmetric(SHARP), *answered(4, SHARP)),
        example=SurvivingCase(**LOST, parameters=SHARP),
    ),
    Entry(
        name="asi-raman-talwar/exp4-batched",
        summary="EXP4 with noisy batch means of every expert",
        source=f"{PAPER}, Theorem 10",
        build=exp4_batched,
        rounds=8,
        delta=1e-2,
        regret=RegretClaim(
            bound=batched_exp4_bound, exponent=2 / 3, source=f"{PAPER}, Theorem 10; the constant is derived"
        ),
        cases=(
            MEANS,
            LESS_NOISE,
        ),
        example=LESS_NOISE,
    ),
    Entry(
        name="asi-raman-talwar/exp3",
        summary="plain EXP3, no noise",
        source="none: Asi, Raman & Talwar 2025, Appendix G.1, show that it leaks",
        build=exp3,
        rounds=100,
        cases=(FalsifiedCase(standing="control", runs=4_000),),
    ),
)
