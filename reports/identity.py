"""What identifies a claim across records, and which claims of two records are the same one."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain
from typing import cast

from ..audit.plans.targets import literal
from ..audit.play.data import UnreadableDataError, to_json
from ..audit.record_types import SIDES, ClaimRecord, MeasureJson, Said
from ..audit.statistics.measure_words import LEVELS, claimed_words
from .reading import is_mechanism, kind_words, measure_of, relation_words

#: The game of a claim: claims of other games are never taken for each other.
_GAME = ("name", "calibration", "surface", "neighbours", "losses", "rounds", "arms")
#: The details that are of the audit, and not of what it asks.
_OF_AUDIT = ("stop", "confidence", "budget", "seed", "engine")
#: Letters of a fact that tells claims apart, at most: an input may be a table.
_MOST_LETTERS = 60


def parameter(value: object) -> object:
    """Return a parameter as a record has it: of one that is given as text what it spells, where JSON can hold that."""
    try:
        return to_json(literal(value))
    except UnreadableDataError:
        return to_json(value)


def game(claim: ClaimRecord) -> str:
    """Return the target of a claim and what is played, as text."""
    return _game(claim, claim.get("parameters") or {})


def _game(claim: ClaimRecord, parameters: Mapping[str, object]) -> str:
    own = [claim["design"]] if claim.get("design") else []  # of scores of canaries alone: marks stay what they were
    return _text([*(claim.get(name) for name in _GAME), is_mechanism(claim), parameters, *own])


def _asked(claim: ClaimRecord) -> str:
    """Return the same with every parameter as it reads: a plan may write one as 1, as 1.0 and as text."""
    return _game(claim, {name: _number(value) for name, value in (claim.get("parameters") or {}).items()})


def _number(value: object) -> object:
    read = parameter(value)
    # And not the other way round: a float has no room for every whole number.
    return int(read) if isinstance(read, float) and read.is_integer() else read


def measure(claim: ClaimRecord) -> MeasureJson:
    """Return how a claim counts privacy, with its kind; epsilon and delta where the record says nothing else."""
    stated = dict(claim.get("measure") or claim["claimed"])
    if not stated.keys() - {"kind", "epsilon", "delta"}:
        stated = {"delta": 0.0, **stated, "kind": "approximate"}
    floats = {name: float(value) for name, value in stated.items() if isinstance(value, int)}  # 1 is 1.0
    return cast("MeasureJson", {"kind": None, **stated, **floats})


def same_unit(now: Mapping[str, object], then: Mapping[str, object], levels: Sequence[str] = LEVELS) -> bool:
    """Tell whether two measures, as `measure` returns them, differ in levels alone: their bounds are of one kind."""
    return all(now.get(name) == then.get(name) for name in {**now, **then} if name not in levels)


def details(claim: ClaimRecord) -> dict[str, object]:
    """Return what else identifies a claim and its audit, what matters most first."""
    pair = (claim.get("pair") or {}) if _is_given(claim) else {}
    stated = measure(claim)
    words = (claim.get("replay") or "").split()
    return {
        "left": pair.get("left"),
        "right": pair.get("right"),
        "inputs": claim.get("inputs"),
        "bits": bool(claim.get("bits", "--bits" in words)),
        **({} if claim.get("raising") in (None, "error") else {"raising": claim["raising"]}),
        **{name: value for name, value in stated.items() if name not in LEVELS},
        **{name: value for name, value in stated.items() if name in LEVELS},
        "stop": claim.get("stop"),
        "confidence": claim.get("confidence"),
        "budget": claim.get("budget"),
        "seed": claim.get("seed"),
        "engine": claim.get("engine", "numpy"),
    }


def mark(claim: ClaimRecord) -> str:
    """Return a short hash of what a claim asks, which no other audit of it changes."""
    asked = {name: value for name, value in details(claim).items() if name not in _OF_AUDIT}
    return hashlib.sha256(f"{game(claim)}/{_text(asked)}".encode(errors="replace")).hexdigest()[:16]


def names(claims: Sequence[ClaimRecord]) -> list[str]:
    """Return the names of claims, each with its measure and setting, and what differs between those still alike."""
    alike = [_name(claim) for claim in claims]
    told = list(alike)
    for facts, differing in _alike(claims, alike):
        for i, fact in facts.items():
            told[i] = " ".join([alike[i], *(f"{key}={fact[key]}" for key in differing if key in fact)])
    return told


def settings(claims: Sequence[ClaimRecord], words: Sequence[str], separator: str = ", ") -> list[str]:
    """Return words on each claim, and where a target has several alike, the first facts that tell these apart."""
    told = list(words)
    for facts, differing in _alike(claims, [(claim["name"], word) for claim, word in zip(claims, words, strict=True)]):
        prefixes = [differing[:n] for n in range(len(differing) + 1)]
        enough = max(prefixes, key=lambda keys: len({tuple(map(fact.get, keys)) for fact in facts.values()}))
        for i, fact in facts.items():
            told[i] = separator.join(filter(None, [told[i], *(f"{key}={fact[key]}" for key in enough if key in fact)]))
    return told


def _alike(
    claims: Sequence[ClaimRecord], keys: Sequence[Hashable]
) -> Iterator[tuple[dict[int, dict[str, str]], list[str]]]:
    """Yield the places of claims with the same key, each with its facts, and which facts differ among them."""
    for key in [key for key, count in Counter(keys).items() if count > 1]:
        facts = {i: _facts(claims[i]) for i, other in enumerate(keys) if other == key}
        names = dict.fromkeys(chain(*facts.values()))
        yield facts, [name for name in names if len({fact.get(name) for fact in facts.values()}) > 1]


def _name(claim: ClaimRecord) -> str:
    # A mechanism has neither losses nor surfaces, and a relation only where one was asked for.
    of_learner = [str(word) for word in map(claim.get, ("losses", "surface", "neighbours")) if word]
    own = [kind_words(claim)] if claim.get("scores") else []
    setting = [claim.get("calibration"), *own, *([relation_words(claim)] if is_mechanism(claim) else of_learner)]
    within = f" ({', '.join(filter(None, setting))})" if any(setting) else ""
    return f"{claim['name']} {claimed_words(measure_of(claim))}{within}"


def _facts(claim: ClaimRecord) -> dict[str, str]:
    """Return what else may tell two claims apart, as text."""
    pair = (claim.get("pair") or {}) if _is_given(claim) else {}
    worlds = {side: _text(pair[side]) for side in SIDES if side in pair}
    facts: dict[str, object] = {
        "T": claim.get("rounds"),
        "arms": claim.get("arms"),
        **(claim.get("parameters") or {}),
        "raising": None if claim.get("raising") == "error" else claim.get("raising"),
        "losses": "adaptive" if not is_mechanism(claim) and _adapts(pair.get("left")) else None,
        **{side: text for side, text in worlds.items() if len(text) <= _MOST_LETTERS},
        "runs": claim.get("budget") or claim.get("runs"),
        "stop": claim.get("stop"),
    }
    return {key: str(value) for key, value in facts.items() if value is not None}


def _adapts(world: object) -> bool:
    """Tell whether the losses of a world answer the actions."""
    return isinstance(world, list) and any(isinstance(loss, dict) and loss.get("loss") == "switch" for loss in world)


def told_apart(findings: Sequence[Said], *sides: Sequence[ClaimRecord]) -> list[Said]:
    """Return findings with the names of their claims where a target alone, on either side, does not tell which."""
    several = {name for claims in sides for name, count in Counter(c["name"] for c in claims).items() if count > 1}
    labels: dict[tuple[str, str], str] = {}
    for claims in sides:
        siblings = [claim for claim in claims if claim["name"] in several]
        labels |= {(mark(one), one["replay"]): name for one, name in zip(siblings, names(siblings), strict=True)}
    return [f | {"label": labels[f["claim"], f["replay"]]} if f["name"] in several else f for f in findings]


def called(finding: Said) -> str:
    """Return what to call the claim of a finding."""
    return finding.get("label") or finding["name"]


def _is_given(claim: ClaimRecord) -> bool:
    """Tell whether the two worlds were the user's, and not found by a search; older records say it in their replay."""
    words = (claim.get("replay") or "").split()
    return bool(claim.get("pair_given", "--left" in words or "--pair" in words))


def why_another(new: ClaimRecord, old: ClaimRecord) -> str | None:
    """Return what makes two claims of one game another question, in words; None if nothing does."""
    now, then = measure(new), measure(old)
    if now["kind"] != then["kind"]:
        return f"measure changed ({now['kind']}, was {then['kind']})"
    ours, theirs = details(new), details(old)
    asked = ["left", "right", "inputs", "bits", "raising", *(name for name in {**then, **now} if name not in LEVELS)]
    changed = [name for name in asked if ours.get(name) != theirs.get(name)]
    if not changed:
        return None
    return f"{' and '.join(changed)} changed{_from_to(changed, ours, theirs)}"


def _from_to(changed: Sequence[str], ours: Mapping[str, object], theirs: Mapping[str, object]) -> str:
    """Return the two values, where one short thing changed."""
    if len(changed) > 1:
        return ""
    now, then = (_text(side.get(changed[0])) for side in (ours, theirs))
    return f" ({now}, was {then})" if len(now) + len(then) < 60 else ""


def matched(
    new: Sequence[ClaimRecord], old: Sequence[ClaimRecord]
) -> tuple[list[tuple[ClaimRecord, ClaimRecord | None]], list[ClaimRecord]]:
    """Return every new claim with the old one that it continues, if any, and the old ones that none continues.

    Claims of one game are matched by all their details where that can be; those left over by the most of them, what
    matters most first. The order of the claims decides only between equal ones.
    """
    before: dict[str, list[int]] = defaultdict(list)
    for j, claim in enumerate(old):
        before[_asked(claim)].append(j)
    ours, theirs = [details(claim) for claim in new], [details(claim) for claim in old]
    alike = sorted(
        (_difference(ours[i], theirs[j]), i, j) for i, claim in enumerate(new) for j in before.get(_asked(claim), ())
    )
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for _, i, j in alike:
        if i not in partner and j not in taken:
            partner[i] = j
            taken.add(j)
    pairs = [(claim, old[partner[i]] if i in partner else None) for i, claim in enumerate(new)]
    return pairs, [claim for j, claim in enumerate(old) if j not in taken]


def _difference(a: Mapping[str, object], b: Mapping[str, object]) -> tuple[bool, ...]:
    """Return in which details two claims differ: those that are equal in what matters most come first."""
    return tuple(_text(a.get(name)) != _text(b.get(name)) for name in {**a, **b})


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
