"""The headline of a record: how many published statements are false, and what else was falsified, counted apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..audit.record_types import ClaimRecord, RunRecord
from ..learners.entry import PUBLISHED, STANDINGS
from .reading import is_untested, verdict_of

#: The name under which falsified claims without a standing are counted: those of a user's own targets.
OWN_CLAIMS = "claims"
#: Relations under which all that one user gave differs, and not one round or record.
USER_LEVEL = ("user", "user-losses")


def headline(claims: Sequence[ClaimRecord]) -> dict[str, int]:
    """Return how many are false, by standing: statements for `theorem` and `proof`, claims for the others.

    A statement counts once, however many claims of the record falsify it. `untested` counts the audits
    that are UNDERPOWERED although their runs would do.
    """
    false = [claim for claim in claims if claim["verdict"] == "FALSIFIED"]
    counts = {
        standing: len({c.get("source") for c in false if c.get("standing") == standing})
        if standing in PUBLISHED
        else sum(c.get("standing") == standing for c in false)
        for standing in STANDINGS
    }
    documented = {"documented": sum(c.get("standing") == "documented" for c in false)}
    counts |= documented if any(claim.get("standing") == "documented" for claim in claims) else {}
    return {**counts, OWN_CLAIMS: sum(not c.get("standing") for c in false), "untested": sum(map(is_untested, claims))}


def headline_words(record: RunRecord) -> str:
    """Return the headline in one sentence: what is false of what counts most, which `beside_words` leaves out."""
    claims = record["claims"]
    if not claims:
        return "No claim was audited."
    verdicts = [claim["verdict"] for claim in claims]
    if "FALSIFIED" not in verdicts:
        survived = sum(verdict_of(claim) == "SURVIVED" for claim in claims)
        if survived:
            rest = f", {len(claims) - survived} underpowered" if survived < len(claims) else ""
            return f"No privacy claim was falsified; {survived} of {len(claims)} survived{rest}."
        return "No privacy claim could be tested: all audits are underpowered."
    counts, standings = headline(claims), _counted(claims)
    if standings == PUBLISHED:
        return _published_words(counts)
    if standings == ("documented",):
        false = counts["documented"]
        if not false:
            return "No documented claim of a library was falsified."
        return f"{false} documented claim{'s' * (false != 1)} of libraries {'is' if false == 1 else 'are'} false."
    if standings == (OWN_CLAIMS,):
        return _own_words([c for c in claims if not c.get("standing")], len(record.get("errors") or ()))
    return f"No published statement was audited; falsified: {_listed(counts, ())}."


def _own_words(claims: Sequence[ClaimRecord], unaudited: int) -> str:
    false = [claim for claim in claims if claim["verdict"] == "FALSIFIED"]
    users, n_claims = sum(map(_is_of_users, false)), len(claims) + unaudited
    total = f"{n_claims} privacy claim{'s' * (n_claims != 1)}"
    part = f", {users} of them" if users < len(false) else ","
    level = f"{part} at the level of users" if users else ""
    if not false:  # which is not to say that they are true
        return f"None of {total} was falsified."
    return f"{len(false)} of {total} {'are' if len(false) > 1 else 'is'} false{level}."


def _is_of_users(claim: ClaimRecord) -> bool:
    """Tell whether what one user gave may be in several rounds or rows of the worlds that are neighbours."""
    return str(claim.get("neighbours")).partition(":")[0] in USER_LEVEL


def _counted(claims: Sequence[ClaimRecord]) -> tuple[str, ...]:
    """Return the standings that the headline counts: the first of published, documented and own that a claim has."""
    standings = {claim.get("standing") or OWN_CLAIMS for claim in claims}
    return next((kind for kind in (PUBLISHED, ("documented",), (OWN_CLAIMS,)) if standings & set(kind)), ())


def _published_words(counts: Mapping[str, int]) -> str:
    false, steps = counts["theorem"], counts["proof"]
    if not false + steps:
        return "No published statement was falsified."
    proofs = f"{steps} step{'s' * (steps != 1)} of proofs"
    if not false:
        return f"No published statement was falsified, but {proofs} {'is' if steps == 1 else 'are'} false."
    verb = "statement is" if false == 1 else "statements are"
    return f"{false} published {verb} false{f' (and {proofs})' if steps else ''}."


def beside_words(claims: Sequence[ClaimRecord]) -> str:
    """Return what was falsified beside what the headline counts; nothing if nothing was."""
    standings = _counted(claims)
    listing = _listed(headline(claims), standings) if standings else ""
    return f"Falsified beside them, and not counted: {listing}." if listing else ""


def _listed(counts: Mapping[str, int], but: Sequence[str]) -> str:
    """Return the counts in words, but for these standings and for those of published statements."""
    names = {
        "documented": "documented claim of libraries",
        "reading": "reading",
        "variant": "variant",
        "control": "control",
        OWN_CLAIMS: "claim of no standing",
    }
    phrases = [
        f"{counts[key]} {_plural(name, counts[key])}"
        for key, name in names.items()
        if counts.get(key) and key not in but
    ]
    return " and ".join([", ".join(phrases[:-1]), phrases[-1]] if len(phrases) > 1 else phrases)


def _plural(name: str, count: int) -> str:
    noun = "claim" if "claim" in name else name
    return name if count == 1 else name.replace(noun, f"{noun}s")
