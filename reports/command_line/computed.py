"""`overclaim power` and `overclaim exact`: what is computed, and nothing is played."""

from __future__ import annotations

import math
from typing import Any

import click

from ..sanitise import finite, json_text
from .console import Once, command, own_process, playing_command, say
from .options import CLAIMED, GAME, JSON, SURFACE, option
from .task_options import prepared_learner, task_of


@click.command(cls=Once)
@click.option("--epsilon", type=float, metavar="NUMBER", required=True, help="Claimed epsilon")
@click.option("--delta", type=float, metavar="NUMBER", default=0.0, help="Claimed delta")
@click.option("--runs", type=click.IntRange(1, 2**50), metavar="N", required=True, help="Runs of both inputs together")
@option("confidence")
@JSON
@command
def power(epsilon: float, delta: float, runs: int, confidence: float, as_json: bool) -> None:
    """Show the smallest epsilon of Laplace noise that a perfect attack detects from so many runs, 9 times in 10."""
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
    text = f"{runs:,} run{'s' * (runs != 1)}"
    caught, behind = caught_words(detectable, epsilon), f"behind a claim of {claimed.removeprefix('epsilon ')}"
    scope = "(perfect attack, Laplace noise, 90% power)"
    if finite(detectable) is not None:
        say(f"{text} detect a true epsilon of {caught} or more {behind} {scope}")
    elif ceiling > epsilon:
        say(f"{text} detect {caught} {behind}; a perfect attack may certify {at_least(ceiling, claim=epsilon)}")
    else:
        say(f"{text} cannot falsify {claimed}: a perfect attack certifies {at_least(ceiling)}")


@click.command(cls=Once)
@click.argument("target")
@CLAIMED
@GAME
@SURFACE
@option("pair")
@click.option("--gdp", is_flag=True, help="Add the exact mu of Gaussian DP")
@click.option("--zcdp", is_flag=True, help="Add the exact rho of zero-concentrated DP")
@JSON
@playing_command
def exact(target: str, gdp: bool, zcdp: bool, as_json: bool, **choices: Any) -> None:
    """Compute the exact epsilon of the learner TARGET at a small horizon, on the worst of the standard pairs."""
    from ...audit.laws.exact import DELTAS
    from ...audit.laws.exact_levels import exact_mu_and_rho
    from ...audit.search.exact_search import worst_exactly
    from ...audit.statistics.measure_words import written
    from ..formats.input_words import pair_words

    task = task_of(target=target, **choices)
    with own_process():
        prepared = prepared_learner(task, "exact computes the epsilon of")
        deltas = tuple(sorted({*DELTAS, prepared.claim.delta}))
        epsilons, pair, whys = worst_exactly(prepared.target, prepared.claim, prepared.rounds, prepared.pairs, deltas)
        names = [name for name, flag in (("mu", gdp), ("rho", zcdp)) if flag]
        levels = exact_mu_and_rho(prepared.target, pair, view=prepared.claim.view) if names else {}
    if as_json:
        epsilon_at = {written(d): finite(e) for d, e in epsilons.items()}
        infinite = [delta for delta, epsilon in epsilon_at.items() if epsilon is None]
        extras = {name: finite(levels[name]) for name in names}
        table = {"epsilon": epsilon_at, "infinite": infinite, **extras, "pair": pair.to_json(), "not_exact": len(whys)}
        say(json_text(table))
        return
    rows = [("delta", "epsilon"), *((written(delta), _number(epsilon)) for delta, epsilon in epsilons.items())]
    rows += [(name, _number(levels[name])) for name in names]
    worst = "" if prepared.pairs else " (the worst of the standard pairs)"
    rows.append(("Inputs", pair_words(pair.to_json(), of_data=False) + worst))
    if whys:
        rows.append(("Others", f"{len(whys)} standard pairs have no exact value, and may be worse: {whys[0]}"))
    width = max(len(label) for label, _ in rows) + 2
    say("\n".join(f"{label:<{max(8, width)}}{text}" for label, text in rows))


def _number(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "infinite"
