"""The headline of a record: how many published statements are false, and what else was falsified, counted apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..learners.catalogue.statements import PUBLISHED, STANDINGS
from .record_types import Fields
from .sanitise import is_untested

#: The name under which falsified claims without a standing are counted: those of a user's own targets.
OWN = "claims"


def headline(claims: Sequence[Fields]) -> dict[str, int]:
    """Return how many are false, by standing: statements for `theorem` and `proof`, claims for the others.

    A statement counts once, however many claims of the record falsify it. `untested` counts the claims that survived
    an audit which catches nothing.
    """
    false = [claim for claim in claims if claim["verdict"] == "FALSIFIED"]
    counts = {
        standing: len({c["source"] for c in false if c.get("standing") == standing})
        if standing in PUBLISHED
        else sum(c.get("standing") == standing for c in false)
        for standing in STANDINGS
    }
    documented = {"documented": sum(c.get("standing") == "documented" for c in false)}
    counts |= documented if any(claim.get("standing") == "documented" for claim in claims) else {}
    return {**counts, OWN: sum(not c.get("standing") for c in false), "untested": sum(map(is_untested, claims))}


def headline_words(record: Fields) -> str:
    """Return the headline in one sentence."""
    claims = record["claims"]
    if not claims:
        return "No claim was audited."
    verdicts = [claim["verdict"] for claim in claims]
    if "FALSIFIED" in verdicts and any(claim.get("standing") in PUBLISHED for claim in claims):
        return _published_words(headline(claims))
    false, total = verdicts.count("FALSIFIED"), len(claims)
    if "documented" in (counts := headline(claims)):
        false = counts["documented"]
        if not false:
            return "No documented claim of a library was falsified."
        return f"{false} documented claim{'s' * (false != 1)} of libraries {'is' if false == 1 else 'are'} false."
    if false:
        noun = "claim" if total == 1 else "claims"
        return f"{false} of {total} privacy {noun} {'is' if false == 1 else 'are'} false."
    if "SURVIVED" in verdicts:
        return f"No privacy claim was falsified; {verdicts.count('SURVIVED')} of {total} survived."
    return "No privacy claim could be decided with so few runs."


def _published_words(counts: Mapping[str, int]) -> str:
    false, steps = counts["theorem"], counts["proof"]
    if not false + steps:
        return "No published statement was falsified."
    proofs = f"{steps} step{'s' * (steps != 1)} of proofs"
    if not false:
        return f"No published statement was falsified, but {proofs} {'is' if steps == 1 else 'are'} false."
    verb = "statement is" if false == 1 else "statements are"
    return f"{false} published {verb} false{f' (and {proofs})' if steps else ''}."


def beside_words(counts: Mapping[str, int]) -> str:
    """Return what was falsified beside published statements, counted apart; nothing if nothing was."""
    names = {"reading": "reading", "variant": "variant", "control": "control", OWN: "claim of no standing"}
    apart = [f"{counts[key]} {_plural(name, counts[key])}" for key, name in names.items() if counts.get(key)]
    if not apart or not any(counts[key] for key in STANDINGS):
        return ""
    listed = " and ".join([", ".join(apart[:-1]), apart[-1]] if len(apart) > 1 else apart)
    return f"Falsified beside them, and not counted: {listed}."


def _plural(name: str, count: int) -> str:
    first, _, rest = name.partition(" ")
    return name if count == 1 else f"{first}s {rest}".strip()
