"""What the figures show of a learner that was audited on two sequences of rounds, with epsilon of the first rounds."""

from __future__ import annotations

import numpy as np

from ...mechanisms.draws import Draws, Stage
from ..execution.execution import Budget
from ..pipeline.mechanism_stages import MechanismAudit
from ..play.learner_mechanism import Block, LearnerMechanism, RoundsPair
from ..play.mechanism_runs import Sample, join, some
from ..play.transcripts import blocks
from ..record_types import ByRoundJson, EvidenceJson
from ..statistics.events import bound_of, count
from ..verdicts.verdict import Result
from .evidence import affordable, figures_of, short, shown_rounds


def evidence_of_rounds(player: LearnerMechanism, result: Result, pair: RoundsPair) -> EvidenceJson:
    """Return the data of a claim's figures, as `evidence` does of a pair of losses."""
    runs = affordable(result, pair.rounds * (player.learner.arms or 1))
    played = [_played(player, pair, result.seed, *block) for block in blocks(runs)]
    left = np.concatenate([block.left for block in played])
    figures = figures_of(result, result.scorer.score(join([block.outputs() for block in played])), left)
    if result.claim.measure.is_epsilon:
        figures["by_round"] = _by_round(player, result, pair, played)
    return figures


def _played(player: LearnerMechanism, pair: RoundsPair, seed: int, number: int, runs: int) -> Block:
    draws = Draws(seed, Stage.EVIDENCE, 0, 0, number)
    block = Block(player.learner, player.view, (pair.left, pair.right), draws.labels(runs))
    block.play(draws)
    return block


def _by_round(player: LearnerMechanism, result: Result, pair: RoundsPair, played: list[Block]) -> ByRoundJson:
    """Return for each t a lower bound on epsilon of the view of the first t rounds; each prefix has its own event."""
    claim, alpha, first = result.claim, result.certificate.alpha, pair.places[0]
    left = np.concatenate([block.left for block in played])
    pilot = np.arange(left.size) < left.size // 3
    budget = Budget(runs=int((~pilot).sum()), seed=result.seed, confidence=1 - alpha)
    audit = MechanismAudit(mechanism=player, claim=claim, budget=budget)
    rounds, epsilons = ([first], [0.0]) if first else ([], [])
    for t in shown_rounds(first + 1, pair.rounds):
        seen = join([block.outputs(t) for block in played])
        choice, _ = audit.fit(pair, 0, [Sample(some(seen, pilot), left[pilot])], thorough=False)
        counts = count(choice.event, choice.attack.score(some(seen, ~pilot)), left[~pilot])
        rounds.append(t)
        epsilons.append(bound_of(choice.event, counts, delta=claim.delta, alpha=alpha))
    return {"kind": "lower bound", "rounds": rounds, "epsilon": short(epsilons)}
