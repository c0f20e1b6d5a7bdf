"""The summary for a pull request: what is false, what is unexpected, and where to look."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...audit.record_types import ClaimRecord, RunRecord, Said
from ...audit.statistics.digits import at_least, at_most
from ..headline import beside_words, headline_words
from ..identity import called
from ..reading import (
    by_holm,
    certified,
    exact_words,
    failing_bounds,
    is_failing,
    is_unexpected,
    legible,
    level,
    missing_words,
    replay_word,
)
from ..status import status_of
from ..upper_words import bypass_text
from . import ruler
from .html import VERDICTS
from .regret_lines import bound_line
from .terminal import number

#: Rows shown before the rest is folded away.
MAX_ROWS = 12


def render(record: RunRecord) -> str:
    """Return a short summary of a record in GitHub's Markdown; every value from the record is escaped."""
    record = legible(record)
    claims, errors = record["claims"], record["errors"]
    tally = {verdict: sum(c["verdict"] == verdict for c in claims) for verdict in VERDICTS}
    texts = {v: f"{tally[v]} {word}" for v, word in VERDICTS.items()}
    counts = ", ".join(text for v, text in texts.items() if tally[v] or v in ("FALSIFIED", "SURVIVED"))
    unexpected = [c for c in claims if is_unexpected(c)]
    settings = dict(zip(map(id, claims), ruler.settings(claims), strict=True))
    status = status_of(record)
    lines = [f"### {status.symbol} overclaim: {status.text}", "", f"**{status.name}**: {counts}.", ""]
    if unexpected:
        lines += [f"**{len(unexpected)} not as expected:**", "", *_table(unexpected, settings), ""]
        lines += [
            f"- {replay_word(c)}: {_code(c.get('replay', ''))}" for c in unexpected[:MAX_ROWS] if c.get("replay")
        ]
    lines += [
        f"- **not audited**: {_text(e.get('name', ''))}: {_text(e.get('message', ''))}" for e in errors[:MAX_ROWS]
    ]
    leaks = [(c["name"], text) for c in claims if (text := bypass_text(c))]
    lines += [f"- **without noise**: {_text(name)}: {_text(text)}" for name, text in leaks[:MAX_ROWS]]
    missing = [(c["name"], line) for c in claims for line in missing_words(c)]
    lines += [f"- {_text(name)}: {_text(line)}" for name, line in missing[:MAX_ROWS]]
    lines += _since_baseline(record["findings"])
    lines += [f"- {_text(bound_line(row))}" for row in failing_bounds(record)]
    lines += [f"- **skipped**: {_text(s['name'])}: {_text(s['reason'])}" for s in record["skipped"]]
    falsified = [c for c in claims if c["verdict"] == "FALSIFIED" and c not in unexpected]
    for title, rows in (("falsified, as expected" if unexpected else "falsified", falsified), ("all claims", claims)):
        if rows:
            lines += [
                "",
                f"<details><summary>{title}: {len(rows)}</summary>",
                "",
                *_table(rows, settings),
                "",
                "</details>",
            ]
    alpha = max((1 - c["confidence"] for c in claims), default=record["alpha"])
    if any(c.get("standing") for c in claims):
        lines += ["", f"**{headline_words(record)}** {beside_words(claims)}".strip()]
    lines += [
        "",
        f"Each certified bound is wrong with probability at most {at_most(alpha)}. Survived is not a proof: "
        "another attack, another pair or more runs may certify more. "
        f"overclaim {_text(record['overclaim'])}, seed {_text(record['seed'])}.",
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _since_baseline(findings: Sequence[Said]) -> list[str]:
    """Return what was found against the baseline: what fails the run first."""
    ordered = sorted(findings, key=lambda finding: not is_failing(finding))
    lines = [f"- **{_text(f['kind'])}**: {_text(called(f))}: {_text(f['message'])}" for f in ordered[:MAX_ROWS]]
    left = len(ordered) - MAX_ROWS
    return lines + ([f"- and {left} more since the baseline"] if left > 0 else [])


def _table(claims: Sequence[ClaimRecord], settings: Mapping[int, str]) -> list[str]:
    with_baseline = any(ruler.baseline_of(c) is not None for c in claims)
    with_standing = any(c.get("standing") for c in claims)
    standing_head = ["standing"] if with_standing else []
    head = ["verdict", "target", "setting", *standing_head, "claimed", "certified", "exact on its pair", "at best"]
    head += ["baseline"] if with_baseline else []
    n_texts = 3 + with_standing
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * n_texts + "---:|" * (len(head) - n_texts)]
    for claim in claims:
        reason = f" ({claim['reason']})" if claim["reason"] else ""
        cells = [f"{ruler.mark(claim)} {VERDICTS[claim['verdict']]}{reason}", _text(claim["name"])]
        standing = [_text(claim.get("standing") or "-")] if with_standing else []
        cells += [_text(settings[id(claim)]), *standing, number(level(claim))]
        suffix = f", above {at_least(level(claim))} by Holm" if by_holm(claim) else ""
        cells += [f"**{certified(claim)}**{suffix}", exact_words(claim, "∞")]
        cells += [number(claim["detectable_epsilon"])]
        cells += [at_least(ruler.baseline_of(claim))] if with_baseline else []
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _text(value: object) -> str:
    """Return text that Markdown shows as it is: no markup, no links, no mentions."""
    text = " ".join(str(value).replace("\u00a0", " ").split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*_{}\[\]|~#!])", r"\\\1", text)
    return re.sub(r"@|://|www\.", lambda m: f"{m[0][0]}<!-- -->{m[0][1:]}", text)


def _code(value: str) -> str:
    """Return a code span that no back-tick in the value can end."""
    longest = max((len(run) for run in re.findall(r"`+", value)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{' '.join(value.split())}{pad}{fence}"
