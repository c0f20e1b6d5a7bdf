"""What a claim asks, which claims of two records ask the same, and what claims of one target are called."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, cast

from ..audit.plans.targets import literal
from ..audit.play.data import UnreadableDataError, to_json
from ..audit.play.json_text import canonical_text, digest_of
from ..audit.record_types import SIDES, ClaimRecord, Said
from ..audit.statistics.measure_words import LEVELS, claimed_words
from .reading import is_mechanism, kind_words, measure_of, relation_words

if TYPE_CHECKING:
    from ..audit.plans.tasks import Task
    from ..audit.record_types import MeasureJson

#: What of a task is no part of its question: what it may spend, words, and what stands in the question otherwise.
_EXCLUDED = frozenset(
    {
        *("budget", "note", "measure", "epsilon", "delta", "canaries", "trainings", "pair", "left", "right"),
        *("input_schema", "scores", "inserted", "held_out", "parameters"),
    }
)
#: What a question takes from the record: there it is complete.
_OF_RECORD = ("surface", "raising", "neighbours", "losses", "rounds", "arms", "mechanism", "calibration", "design")
#: What an audit may spend more of without being another.
POWER = ("runs", "canaries", "trainings")
#: Letters of a fact that tells claims apart, at most: an input may be a table.
_MAX_LETTERS = 60


def parameter(value: object) -> object:
    """Return a parameter as a record has it: of one that is given as text what it spells, where JSON can hold that."""
    try:
        return to_json(literal(value))
    except UnreadableDataError:
        return to_json(value)


def question_of(task: Task, claim: ClaimRecord) -> dict[str, object]:
    """Return what a claim asks, as canonical JSON: everything that is asked of its audit but seed, engine and words.

    Parameters
    ----------
    task : Task
    claim : dict
        Its record.
    """
    worlds = {side: pair[side] for side in SIDES if side in (pair := claim.get("pair") or {})}
    schema = claim.get("inputs")
    question: dict[str, object] = {
        **{name: value for name, value in vars(task).items() if name not in _EXCLUDED},
        **{name: value for name in _OF_RECORD if (value := cast("Mapping[str, object]", claim).get(name)) is not None},
        "parameters": {name: _number(value) for name, value in (claim.get("parameters") or {}).items()},
        "noise": None if ":" in task.target or task.of_scores else [task.epsilon, task.delta],
        "given": worlds if claim.get("pair_given") else None,
        "inputs": None if schema is None else digest_of(schema),
        "scores": [name for name in ("scores", "inserted", "held_out") if getattr(task, name) is not None],
        "stop": task.budget.stop,
        "measure": measure(claim),
        "runs": task.budget.runs,
        "canaries": (claim.get("scores") or {}).get("canaries"),
        "trainings": task.trainings,
    }
    canonical: dict[str, object] = json.loads(canonical_text(question))
    return canonical


def _number(value: object) -> object:
    read = parameter(value)
    # And not the other way round: a float has no room for every whole number.
    return int(read) if isinstance(read, float) and read.is_integer() else read


def measure(claim: ClaimRecord) -> MeasureJson:
    """Return how a claim counts privacy, with its kind; epsilon and delta where the record says nothing else."""
    recorded = dict(claim.get("measure") or claim["claimed"])
    if not recorded.keys() - {"kind", "epsilon", "delta"}:
        recorded = {"delta": 0.0, **recorded, "kind": "approximate"}
    floats = {name: float(value) for name, value in recorded.items() if isinstance(value, int)}  # 1 is 1.0
    return cast("MeasureJson", {"kind": None, **recorded, **floats})


def same_unit(new: Mapping[str, object], old: Mapping[str, object]) -> bool:
    """Tell whether two measures, as `measure` returns them, differ in levels alone: their bounds are of one kind."""
    return all(new.get(name) == old.get(name) for name in {**new, **old} if name not in LEVELS)


def mark(claim: ClaimRecord) -> str:
    """Return a short hash of what a claim asks, whatever its audit may spend."""
    return digest_of({name: value for name, value in claim["question"].items() if name not in POWER})


class Difference(NamedTuple):
    """A field in which a claim asks other than the accepted one, and both values as text."""

    field: str
    accepted: str
    asked: str

    def __str__(self) -> str:
        return f"{self.field} - {self.accepted} + {self.asked}"


def differences(claim: ClaimRecord, accepted: ClaimRecord) -> list[Difference]:
    """Return in which fields a claim asks other than an accepted one, or less of it: nothing where it asks as much."""
    new, old = claim["question"], accepted["question"]
    return [
        Difference(name, _short(old.get(name)), _short(new.get(name)))
        for name in sorted({**old, **new})
        if new.get(name) != old.get(name) and not _asks_more(name, new.get(name), old.get(name))
    ]


def _asks_more(name: str, new: object, old: object) -> bool:
    """Tell whether a field has more power than was accepted, or smaller levels of the same measure."""
    if name in POWER:
        return isinstance(new, int) and isinstance(old, int) and new >= old
    if name != "measure" or not isinstance(new, dict) or not isinstance(old, dict) or new.keys() != old.keys():
        return False
    levels = (*LEVELS, "delta")
    if any(new[key] != old[key] for key in new if key not in (*levels, "points")):
        return False
    if any(new[key] > old[key] for key in new if key in levels):
        return False
    return all(
        any(epsilon <= point[0] and delta <= point[1] for epsilon, delta in new["points"])
        for point in old.get("points", ())
    )


class Matching(NamedTuple):
    """The claims of two records: those that continue an accepted one, with what they ask otherwise, and the others."""

    pairs: list[tuple[ClaimRecord, ClaimRecord, list[Difference]]]
    added: list[ClaimRecord]
    missing: list[ClaimRecord]


def matched(new: Sequence[ClaimRecord], old: Sequence[ClaimRecord]) -> Matching:
    """Return which claim continues which accepted one of its target: those that differ least first."""
    candidates = [
        (differences(claim, accepted), i, j)
        for i, claim in enumerate(new)
        for j, accepted in enumerate(old)
        if claim["name"] == accepted["name"]
    ]
    partners: dict[int, tuple[int, list[Difference]]] = {}
    assigned: set[int] = set()
    for changes, i, j in sorted(candidates, key=lambda candidate: (len(candidate[0]), *candidate[1:])):
        if i not in partners and j not in assigned:
            partners[i] = j, changes
            assigned.add(j)
    pairs = [(new[i], old[j], changes) for i, (j, changes) in sorted(partners.items())]
    added = [claim for i, claim in enumerate(new) if i not in partners]
    return Matching(pairs, added, [claim for j, claim in enumerate(old) if j not in assigned])


def names(claims: Sequence[ClaimRecord]) -> list[str]:
    """Return the names of claims, each with its measure and setting, and what tells those apart that are alike."""
    return settings(claims, list(map(_name, claims)), " ")


def settings(claims: Sequence[ClaimRecord], texts: Sequence[str], separator: str = ", ") -> list[str]:
    """Return words on each claim, and where a target has several alike, the first facts that tell these apart."""
    labels = list(texts)
    keys = [(claim["name"], text) for claim, text in zip(claims, texts, strict=True)]
    for key in [key for key, count in Counter(keys).items() if count > 1]:
        traits = {i: _traits(claims[i]) for i, other in enumerate(keys) if other == key}
        prefixes: list[list[str]] = [[]]
        for name in dict.fromkeys(chain(*traits.values())):
            if len({trait.get(name) for trait in traits.values()}) > 1:
                prefixes.append([*prefixes[-1], name])
        enough = max(prefixes, key=lambda names: len({tuple(map(trait.get, names)) for trait in traits.values()}))
        for i, trait in traits.items():
            labels[i] = separator.join(
                filter(None, [labels[i], *(f"{name}={trait[name]}" for name in enough if name in trait)])
            )
    return labels


def _name(claim: ClaimRecord) -> str:
    # A mechanism has neither losses nor surfaces, and a relation only where one was asked for.
    of_learner = [str(word) for word in map(claim.get, ("losses", "surface", "neighbours")) if word]
    kind = [kind_words(claim)] if claim.get("scores") else []
    setting = [claim.get("calibration"), *kind, *([relation_words(claim)] if is_mechanism(claim) else of_learner)]
    suffix = f" ({', '.join(filter(None, setting))})" if any(setting) else ""
    return f"{claim['name']} {claimed_words(measure_of(claim))}{suffix}"


def _traits(claim: ClaimRecord) -> dict[str, str]:
    """Return what else may tell two claims apart, as text."""
    pair = (claim.get("pair") or {}) if claim.get("pair_given") else {}
    worlds = {side: canonical_text(pair[side]) for side in SIDES if side in pair}
    traits: dict[str, object] = {
        "T": claim.get("rounds"),
        "arms": claim.get("arms"),
        **(claim.get("parameters") or {}),
        "raising": None if claim.get("raising") == "error" else claim.get("raising"),
        "losses": "adaptive" if not is_mechanism(claim) and _adapts(pair.get("left")) else None,
        **{side: text for side, text in worlds.items() if len(text) <= _MAX_LETTERS},
        "runs": claim.get("budget") or claim.get("runs"),
        "stop": claim.get("stop"),
    }
    return {key: str(value) for key, value in traits.items() if value is not None}


def _adapts(world: object) -> bool:
    return isinstance(world, list) and any(isinstance(loss, dict) and loss.get("loss") == "switch" for loss in world)


def told_apart(findings: Sequence[Said], *sides: Sequence[ClaimRecord]) -> list[Said]:
    """Return findings with the names of their claims where a target alone, on either side, does not tell which."""
    several = {name for claims in sides for name, count in Counter(c["name"] for c in claims).items() if count > 1}
    labels: dict[tuple[str, str], str] = {}
    for claims in sides:
        siblings = [claim for claim in claims if claim["name"] in several]
        labels |= {(mark(claim), claim["replay"]): name for claim, name in zip(siblings, names(siblings), strict=True)}
    return [f | {"label": labels[f["claim"], f["replay"]]} if f["name"] in several else f for f in findings]


def called(finding: Said) -> str:
    """Return what to call the claim of a finding."""
    return finding.get("label") or finding["name"]


def _short(value: object) -> str:
    text = canonical_text(value)
    return text if len(text) <= 2 * _MAX_LETTERS else f"{text[:_MAX_LETTERS]}... (SHA-256 {digest_of(value)})"
