"""JUnit XML: every claim a test case, for dashboards that know nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

from ...audit.record_types import ClaimRecord, RegretJson, RunRecord, Said
from ..identity import called, names
from ..reading import (
    bound_words,
    due_verdict,
    failing_bounds,
    is_accepted,
    is_failing,
    is_unexpected,
    is_violated,
    legible,
    reason_words,
    regret_replay,
    replay_word,
)
from ..status import FALSIFIED, Status, status_of
from ..upper_words import bypass_text
from .regret_lines import bound_line

#: What XML 1.0 cannot hold, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(record: RunRecord) -> str:
    """Return a record as JUnit XML, in the schema of Apache Ant's reports.

    The case "gate" is the status of the run. A verdict that is not as expected is a failure, as is what got worse
    since the baseline; a claim that could not be decided or audited is an error: a skipped test would look green. What
    is skipped is of a library that is not installed, where no claim was asked for by its name.
    """
    record = legible(record)
    claims = record["claims"]
    cases = [_of_claim(claim, name) for claim, name in zip(claims, names(claims), strict=True)]
    cases += map(_of_regret, failing_bounds(record))
    cases += [_of_finding(f) for f in record["findings"] if is_failing(f)]
    cases += [_case(e["name"], 0.0, ("error", e["kind"], e["message"], e["replay"])) for e in record["errors"]]
    cases += [_case(s["name"], 0.0, ("skipped", "skipped", s["reason"], s["reason"])) for s in record["skipped"]]
    cases.append(_gate(status_of(record)))
    _number(cases)
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name="overclaim",
        package="overclaim",
        id="0",
        timestamp=record["created"][:19],
        hostname="localhost",
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
        skipped=str(len(record["skipped"])),
        time=f"{sum(claim['seconds'] or 0.0 for claim in record['claims']):.3f}",
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name in ("overclaim", "seed", "alpha", "command"):
        ElementTree.SubElement(properties, "property", name=name, value=_clean(str(record.get(name, ""))))
    suite.extend(cases)
    ElementTree.SubElement(suite, "system-out")
    ElementTree.SubElement(suite, "system-err")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _number(cases: Sequence[ElementTree.Element]) -> None:
    """Give no two cases one name, by which dashboards follow them: number those that are alike all the same."""
    seen: Counter[str] = Counter()
    for case in cases:
        name = case.attrib["name"]
        seen[name] += 1
        case.attrib["name"] = f"{name} #{seen[name]}" if seen[name] > 1 else name


def _gate(status: Status) -> ElementTree.Element:
    if not status.code:
        return _case("gate", 0.0, None)
    kind = "failure" if status.code == FALSIFIED else "error"
    return _case("gate", 0.0, (kind, status.name, status.text, str(status)))


def _of_claim(claim: ClaimRecord, name: str) -> ElementTree.Element:
    expected = due_verdict(claim)
    verdict, reason = claim["verdict"], reason_words(claim) or bypass_text(claim)
    if (not is_unexpected(claim) and verdict != "UNDERPOWERED") or is_accepted(claim):
        return _case(name, claim["seconds"] or 0.0, None)
    text = f"{verdict}, expected {expected}: {bound_words(claim)}" + (f"; {reason}" if reason else "")
    kind = "error" if verdict == "UNDERPOWERED" else "failure"
    details = f"{text}\n{replay_word(claim)}: {claim['replay']}"
    return _case(name, claim["seconds"] or 0.0, (kind, verdict, text, details))


def _of_regret(row: RegretJson) -> ElementTree.Element:
    line = bound_line(row)
    text = "\n".join(filter(None, [line, regret_replay(row)]))
    kind = "failure" if is_violated(row) else "error"
    return _case(f"regret of {row.get('name') or 'unnamed'}", 0.0, (kind, str(row["verdict"]), line, text))


def _of_finding(finding: Said) -> ElementTree.Element:
    return _case(
        f"{called(finding)} since the baseline",
        0.0,
        ("failure", finding["kind"], finding["message"], finding["message"]),
    )


def _case(name: str, seconds: float, outcome: tuple[str, str, str, str] | None) -> ElementTree.Element:
    """Return a test case; the outcome is its element, type, message and text."""
    # The schema's tokens hold no line breaks and no double spaces.
    attributes = {"name": " ".join(_clean(name).split()), "classname": "overclaim", "time": f"{seconds:.3f}"}
    case = ElementTree.Element("testcase", attributes)
    if outcome is not None:
        element, kind, message, text = map(_clean, outcome)
        child = ElementTree.SubElement(case, element, type=kind, message=message)
        child.text = text
    return case


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
