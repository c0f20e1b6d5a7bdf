"""The report: one self-contained page, rendered from the record alone."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from .terminal import number


def render(record: dict[str, Any]) -> str:
    """Return the HTML page of a record; every value is escaped."""
    environment = Environment(
        loader=PackageLoader(__package__ or "overclaim.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    return environment.get_template("report.html").render(record=record, tally=_tally(record))


def _tally(record: dict[str, Any]) -> dict[str, int]:
    verdicts = [claim["verdict"] for claim in record["claims"]]
    return {verdict: verdicts.count(verdict) for verdict in ("FALSIFIED", "SURVIVED", "UNDERPOWERED")}
