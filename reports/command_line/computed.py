"""`overclaim power` and `overclaim exact`: what is computed, and nothing is played."""

from __future__ import annotations

from typing import Any

import click

from ..sanitise import finite, json_text
from .console import Once, command, own_process, playing_command, say
from .options import CLAIMED, GAME, JSON, SURFACE, option
from .task_options import prepared_learner, task_of


@click.command(cls=Once)
@click.option("--epsilon", type=float, required=True, help="Claimed epsilon, in nats.")
@click.option("--delta", type=float, default=0.0, show_default=True)
@click.option(
    "--runs", type=click.IntRange(1, 2**50), required=True, help="All runs of an audit, both worlds together."
)
@option("confidence")
@JSON
@command
def power(epsilon: float, delta: float, runs: int, confidence: float, as_json: bool) -> None:
    """Say what a budget can at best catch: the least epsilon of Laplace noise a perfect attack falsifies, 9 in 10."""
    from ...audit.execution.execution import check_confidence
    from ...audit.statistics.bounds.power import ceiling_epsilon, detectable_epsilon
    from ...audit.statistics.digits import at_least
    from ...audit.statistics.measure_words import caught_words, claimed_words
    from ...mechanisms.claim import Claim

    claimed = claimed_words(Claim(epsilon=epsilon, delta=delta).measure.to_json())
    check_confidence(confidence)
    alpha = 1 - confidence
    detectable = detectable_epsilon(epsilon, runs, delta=delta, alpha=alpha)
    ceiling = ceiling_epsilon(runs, delta=delta, alpha=alpha)
    if as_json:
        say(json_text({"detectable_epsilon": finite(detectable), "ceiling_epsilon": finite(ceiling)}))
        return
    many = f"{runs:,} run{'s' * (runs != 1)}"
    caught, behind = caught_words(detectable, epsilon), f"behind a claim of {claimed}"
    if finite(detectable) is not None:
        say(f"{many} catch at best a true epsilon of {caught} {behind}, 9 times in 10")
    elif ceiling > epsilon:
        say(f"{many} catch {caught} {behind}, though a perfect attack may certify {at_least(ceiling, beyond=epsilon)}")
    else:
        say(f"{many} cannot falsify {claimed}: even a perfect attack certifies {at_least(ceiling)}")


@click.command(cls=Once)
@click.argument("target")
@CLAIMED
@GAME
@SURFACE
@option("pair")
@click.option("--gdp", is_flag=True, help="The exact mu of Gaussian DP of the same pair too.")
@click.option("--zcdp", is_flag=True, help="Its exact rho of zero-concentrated DP too.")
@JSON
@playing_command
def exact(target: str, gdp: bool, zcdp: bool, as_json: bool, **choices: Any) -> None:
    """Compute the exact epsilon of TARGET at a small horizon, on the standard pair worst at the largest delta."""
    from ...audit.laws.exact import DELTAS
    from ...audit.laws.exact_levels import exact_mu_and_rho
    from ...audit.search.exact_search import worst_exactly
    from ...audit.statistics.measure_words import written

    task = task_of(target=target, **choices)
    with own_process():
        prepared = prepared_learner(task, "exact computes the epsilon of")
        deltas = tuple(sorted({*DELTAS, prepared.claim.delta}))
        epsilons, pair, whys = worst_exactly(prepared.target, prepared.claim, prepared.rounds, prepared.pairs, deltas)
        asked = [name for name, wanted in (("mu", gdp), ("rho", zcdp)) if wanted]
        levels = exact_mu_and_rho(prepared.target, pair, view=prepared.claim.view) if asked else {}
    if as_json:
        epsilon_at = {written(d): finite(e) for d, e in epsilons.items()}
        infinite = [delta for delta, epsilon in epsilon_at.items() if epsilon is None]
        others = {name: finite(levels[name]) for name in asked}
        found = {"epsilon": epsilon_at, "infinite": infinite, **others, "pair": pair.to_json(), "not_exact": len(whys)}
        say(json_text(found))
        return
    for name in asked:
        say(f"{name} {levels[name]:.4g}")
    for delta, epsilon in epsilons.items():
        say(f"delta {written(delta):<8} epsilon {epsilon:.4f}")
    say(
        f"on the pair differing in round {pair.t0 + 1}: left {pair.to_json()['left']}, right {pair.to_json()['right']}"
    )
    if whys:
        say(f"another pair may be worse: {len(whys)} of the standard pairs have no exact value, for {whys[0]}")
