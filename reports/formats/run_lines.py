"""A run for a terminal: a table of its claims, what needs attention, and one paragraph of what came of it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Sequence

import click

from ...audit.record_types import ClaimRecord, RunRecord, Said
from ...audit.regret.verdicts import YOURS
from ...audit.statistics.digits import at_least, at_most
from ...audit.statistics.measure_words import is_epsilon, unit_of
from ...mechanisms.measures.measure import number_text
from ...mechanisms.view import VIEWS
from ..baseline import findings_by_title
from ..headline import beside_words, headline_words
from ..identity import settings
from ..reading import (
    bound_words,
    by_holm,
    certified,
    due_verdict,
    exact_words,
    is_mechanism,
    is_unexpected,
    is_violated,
    kind_words,
    level,
    lower,
    measure_of,
    missing_words,
    reason_of,
    verdict_of,
)
from ..sanitise import visible, visible_line
from ..status import claims_text, status_of
from ..upper_words import binding, bypass_text
from . import sentences
from .regret_lines import bound_line
from .terminal import bar, number, shorten, status_line, table, verdict_word

HEAD = ("verdict", "target", "setting", "claimed", "at least", "power")
VERBOSE_HEAD = ("exact for pair", "at most", "seconds")
VERDICTS = ("FALSIFIED", "BYPASS", "SURVIVED", "UNDERPOWERED")
#: What a claim without a bound is said to have.
UNSEEN = "nothing seen"
_LOSSES = {"unit": "[0, 1]", "symmetric": "[-1, 1]"}


def run_lines(record: RunRecord, *, files: str = "", verbose: bool = False, quiet: bool = False) -> str:
    """Return the table of a run, its blocks and its last paragraph, which ends with the status: that alone if `quiet`.

    Parameters
    ----------
    files : str
        Where the report and the record are.
    verbose : bool
        Add the ruler, exact values, bounds from above and seconds.
    """
    record = visible(record)
    if quiet:
        return status_line(status_of(record))
    parts = [_table(record, verbose=verbose), "\n".join(_blocks(record)), "\n".join(_ending(record, files))]
    return "\n\n".join(part for part in parts if part)


def setting(claim: ClaimRecord) -> str:
    """Return the game of a claim in a few words, but for what is usual: noise as in the paper, actions, replacing."""
    measure = measure_of(claim)
    if is_mechanism(claim):
        parts = [
            kind_words(claim) if claim.get("scores") else "searched inputs" if claim.get("searched") else "2 inputs"
        ]
    else:
        fixed = {"as_published": "", "corrected": "fixed noise", None: ""}
        losses = claim.get("losses") or ""
        parts = [_LOSSES.get(losses, losses), f"{claim['rounds']} rounds" if claim.get("rounds") else ""]
        parts.append(fixed.get(claim.get("calibration"), str(claim.get("calibration"))))
        view = VIEWS.get(claim.get("surface") or "actions")
        parts.append("" if claim.get("surface") in (None, "actions") else view.seen if view else str(claim["surface"]))
    parts.append("" if claim.get("neighbours", "replace") == "replace" else str(claim["neighbours"]))
    if measure.get("delta") and is_epsilon(measure):
        parts.append(f"delta {number_text(measure['delta'])}")
    if measure.get("order"):
        parts.append(f"Rényi order {number_text(measure['order'])}")
    return visible_line(", ".join(word for word in parts if word))


def _table(record: RunRecord, *, verbose: bool) -> str:
    claims, errors = record["claims"], record.get("errors") or ()
    if not claims and not errors:
        return ""
    labels = settings(claims, list(map(setting, claims)))
    rows = [_row(claim, its, verbose=verbose) for claim, its in zip(claims, labels, strict=True)]
    blank = ["-"] * (len(HEAD) - 2 + (len(VERBOSE_HEAD) + 1) * verbose)
    rows += [[error["kind"].upper(), visible_line(error["name"]), *blank] for error in errors]
    head = [*HEAD, *((*VERBOSE_HEAD, "0 to 2.5 times the claim") if verbose else ())]
    # What tells two claims apart is not cut off.
    suffix = max((len(its) - len(setting(claim)) for claim, its in zip(claims, labels, strict=True)), default=0)
    return table(head, _within(rows, head, max(12, suffix)))


def _within(rows: Sequence[list[str]], head: Sequence[str], shortest: int) -> list[list[str]]:
    """Return rows that fit the terminal: settings, then targets lose their beginnings; in a file nothing is cut."""
    columns = shutil.get_terminal_size((10_000, 24)).columns
    widths = [max(len(click.unstyle(row[i])) for row in [head, *rows]) for i in range(len(head))]
    excess = sum(widths) + 2 * len(widths) - 2 - columns
    for column, minimum in ((2, shortest), (1, 12)):
        if excess > 0:
            width = max(minimum, widths[column] - excess)
            excess -= widths[column] - width
            rows = [[*row[:column], shorten(row[column][::-1], width)[::-1], *row[column + 1 :]] for row in rows]
    return [list(row) for row in rows]


def _row(claim: ClaimRecord, its: str, *, verbose: bool) -> list[str]:
    measure = measure_of(claim)
    unit = unit_of(measure)
    claimed = number(level(claim)) if unit == "epsilon" else f"{unit} {number(level(claim))}"
    claimed = f"profile, {len(measure.get('points') or ())} points" if measure.get("kind") == "profile" else claimed
    cells = [verdict_word(verdict_of(claim)), visible_line(claim["name"]), visible_line(its), claimed]
    cells += [at_least_words(claim), sentences.power_text(claim)]
    if verbose:
        upper, seconds = binding(claim), claim.get("seconds")
        cells += [exact_words(claim), "-" if upper is None else at_most(upper), f"{seconds:.1f}" if seconds else "-"]
        cells.append(bar(claim, 20))
    return cells


def at_least_words(claim: ClaimRecord) -> str:
    """Return a claim's lower bound for a column; Holm's procedure may refute a claim beyond its own bound."""
    if by_holm(claim):
        return f"> {at_least(level(claim))}"
    return certified(claim) if lower(claim) > 0 else UNSEEN


def _blocks(record: RunRecord) -> list[str]:
    """Return what needs attention, each kind under its heading with a count."""
    claims = record["claims"]
    game = dict(zip(map(id, claims), settings(claims, list(map(setting, claims))), strict=True))
    names = {id(c): visible_line(f"{c['name']} ({game[id(c)]})" if _is_twin(c, claims) else c["name"]) for c in claims}
    blocks = [_block("Unexpected", ([*_unexpected(c, names[id(c)])] for c in claims if is_unexpected(c)))]
    for kind in dict.fromkeys(error["kind"] for error in record.get("errors") or ()):
        of_kind = [error for error in record["errors"] if error["kind"] == kind]
        blocks.append(_block(kind.capitalize(), map(_error, of_kind)))
    leaks = [(names[id(c)], text) for c in claims if verdict_of(c) == "BYPASS" and (text := bypass_text(c))]
    blocks.append(_block("Without noise", ([f"{name}: {visible_line(text)}"] for name, text in leaks)))
    blocks.append(_block("Falsified together", ([f"{names[id(c)]}: {bound_words(c)}"] for c in claims if by_holm(c))))
    for title, findings in findings_by_title(record):
        blocks.append(_block(title, findings))
    missing = [(c, visible_line(line.removeprefix("missing: "))) for c in claims for line in missing_words(c)]
    blocks.append(_block("Missing", ([f"{names[id(c)]}: {line}"] for c, line in missing)))
    failing = [row for row in record.get("regret") or () if row.get("source") == YOURS or is_violated(row)]
    blocks.append(_block("Regret", ([bound_line(row)] for row in failing)))
    blocks.append(_block("Skipped", _skipped(record)))
    return [block for block in blocks if block]


def _error(error: Said) -> list[str]:
    """Return what went wrong with a claim, where it did, and what to do."""
    message = error["message"].partition(" raised ")[2] if error["kind"] == "crashed" else ""
    where = f" ({error['where']})" if error.get("where") else ""
    first = f"{error['name']}: {message or error['message']}{where}"
    return [visible_line(first), *([f"hint: {visible_line(error['hint'])}"] if error.get("hint") else [])]


def _is_twin(claim: ClaimRecord, claims: Sequence[ClaimRecord]) -> bool:
    return sum(other["name"] == claim["name"] for other in claims) > 1


def _block(title: str, items: Iterable[Sequence[str]]) -> str:
    """Return a heading with a count, and items below it, whose further lines are indented once more."""
    listed = list(items)
    if not listed:
        return ""
    lines = [click.style(f"{title} ({len(listed)})", bold=True)]
    for first, *rest in listed:
        lines += [f"  {first}", *(f"    {line}" for line in rest)]
    return "\n".join(lines)


def _unexpected(claim: ClaimRecord, name: str) -> Iterable[str]:
    """Yield what was not expected, its cause, the simplest counterexample, and the command that shows it again."""
    note = f" ({reason})" if (reason := reason_of(claim)) else ""
    plan = f"but the plan expects {due_verdict(claim)}" if claim.get("expected") else "and the plan does not expect it"
    yield f"{name}: {verdict_word(verdict_of(claim))}{note}, {plan}"
    if cause := sentences.cause(claim):
        yield f"cause: {visible_line(cause)}"
    if pair := sentences.simplest(claim):
        yield f"simplest: {visible_line(pair)}"
    yield from sentences.survives_lines(claim)
    if claim.get("replay"):
        yield str(claim["replay"])


def _skipped(record: RunRecord) -> Iterable[Sequence[str]]:
    """Yield a line for every library that is not installed, or not in the version that is quoted."""
    rooms = Counter(
        (visible_line(s["name"]).rpartition("/")[0], visible_line(s["reason"])) for s in record.get("skipped") or ()
    )
    for (room, reason), count in rooms.items():
        yield [f"{room}: {count} of its entries: {reason}"]


def sum_line(record: RunRecord) -> str:
    """Return how many claims have which verdict, and how many of these were not expected."""
    claims, errors, skipped = record["claims"], record.get("errors") or (), record.get("skipped") or ()
    verdicts = list(map(verdict_of, claims))
    kinds = Counter(error["kind"] for error in errors)
    total = len(claims) + len(errors)
    counts = {**{v.lower(): verdicts.count(v) for v in VERDICTS if v in verdicts}, **kinds}
    listed = ", ".join(f"{count} {word}" if total > 1 else word for word, count in counts.items())
    text = f"{claims_text(total)}: {listed}" if total else "no claim was audited"
    surprises = sum(map(is_unexpected, claims))
    if surprises:
        text += f"; {surprises} verdict{'s were' if surprises > 1 else ' was'} not expected"
    return text + (f"; {len(skipped)} skipped, of which nothing is known" if skipped else "")


def _ending(record: RunRecord, files: str) -> Iterable[str]:
    """Yield the last paragraph: the sum, what is false of what is published, the error rate, the files, the status."""
    yield sum_line(record)
    if any(claim.get("standing") for claim in record["claims"]):
        yield " ".join(word for word in (headline_words(record), beside_words(record["claims"])) if word)
    tests = record.get("ledger_of_tests") or {}
    errors = [1 - claim["confidence"] for claim in record["claims"] if claim.get("confidence")]
    max_error = max(errors, default=record.get("alpha") or 0.01)
    if tests.get("method") == "Holm":
        percent = at_most(100 * tests["family_wise_error"], ".3g")
        kind = "privacy claim" if record.get("regret") else "claim"  # bounds of regret have errors of their own
        rate = f"at most {percent}% that this run falsifies any true {kind}"
    else:
        rate = f"at most {at_most(100 * max_error, '.3g')}% for each claim"
    yield f"Error rate: {rate}"
    if files:
        yield files
    yield status_line(status_of(record))


def finished_line(claim: ClaimRecord, width: int = 0) -> str:
    """Return one line of a claim that was audited just now, by itself: Holm's procedure comes in the end."""
    unit = unit_of(measure_of(claim))
    bound = f"{unit} >= {at_least_words(claim)}" if lower(claim) > 0 else UNSEEN
    line = f"{verdict_of(claim):<12}  {claim['name']:<{width}}  {bound}, claimed {number(level(claim))}"
    return str(visible(line)).rstrip() + "    unexpected" * is_unexpected(claim)
