"""The pytest plugin: privacy claims as tests. Nothing of an audit is imported until a test asks for it.

    def test_promise(falsify):
        falsify(MyLearner, Claim(epsilon=1.0), rounds=8).require_survived()

Budget and seed come from the call, else from the marker `overclaim(runs=..., seed=...)`, else from `--overclaim-runs`
and `--overclaim-seed`; `fast=True` or `--overclaim-fast` plays on compiled kernels.
"""

from __future__ import annotations

import argparse
import inspect
import math
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..audit.certification.verdict import Result

OPTIONS = ("runs", "seed", "confidence", "stop", "fast", "weaken")
MARKER = f"overclaim({', '.join(OPTIONS)}): budget, seed and engine of the audits in this test."


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the command line."""
    group = parser.getgroup("overclaim", "privacy audits")
    for name, least, told in (
        ("runs", 20, "Runs of each audit that does not say how many."),
        ("seed", 0, "Seed of each audit that does not say which.  [default: 0]"),
    ):
        group.addoption(f"--overclaim-{name}", metavar=name.upper(), type=_at_least(least), help=told)
    fast = "Play on compiled kernels, where a learner has one."
    group.addoption("--overclaim-fast", action="store_const", const=True, help=fast)


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, got {text}")
        return int(text)

    return number


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", MARKER)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what the command line changes of every audit, so that a log tells how to repeat it."""
    given = [name if value is True else f"{name} {value}" for name, value in _given(config).items()]
    return f"overclaim: {', '.join(given)}" if given else None


def _given(config: pytest.Config) -> dict[str, Any]:
    values = {name: config.getoption(f"--overclaim-{name}") for name in ("runs", "seed", "fast")}
    return {name: value for name, value in values.items() if value is not None}


@pytest.fixture
def falsify(request: pytest.FixtureRequest) -> Callable[..., AuditedResult]:
    """Return `overclaim.falsify`, with the options of this test's marker and of the command line."""
    chosen = _given(request.config)
    for marker in reversed(list(request.node.iter_markers("overclaim"))):
        unknown = sorted(marker.kwargs.keys() - set(OPTIONS))
        if marker.args or unknown:
            got = ", ".join([*map(repr, marker.args), *unknown])
            raise pytest.UsageError(f"the marker overclaim takes {', '.join(OPTIONS)} by name, got {got}")
        chosen |= marker.kwargs

    def run(learner: Any, claim: Any, **options: Any) -> AuditedResult:
        """Audit a claim; see `overclaim.falsify`."""
        from ..audit.certification.falsify import falsify as audit

        return AuditedResult(audit(learner, claim, **{**chosen, **options}), learner, request.node.nodeid)

    return run


class AuditedResult:
    """A result whose failed requirement reads like a bug report; everything else is the result's own."""

    def __init__(self, result: Result, learner: Any, test: str) -> None:
        self.result, self.learner, self.test = result, learner, test

    def __getattr__(self, name: str) -> Any:
        if name == "result":  # while it is copied or unpickled
            raise AttributeError(name)
        return getattr(self.result, name)

    def __repr__(self) -> str:
        return str(self.result)

    def __bool__(self) -> bool:
        """Refuse, as a verdict does."""
        return bool(self.result)

    def require_survived(self) -> None:
        """Fail the test unless the claim survived an audit that could have falsified it."""
        __tracebackhide__ = True
        spot = self.result.blind_spot
        if self.result.verdict.value != "SURVIVED" or (spot is not None and spot.untested):
            pytest.fail(self.report(), pytrace=False)

    def require_falsified(self) -> None:
        """Fail the test unless the claim was falsified: for twins that are broken on purpose."""
        __tracebackhide__ = True
        if self.result.verdict.value != "FALSIFIED":
            pytest.fail(self.report(), pytrace=False)

    def report(self) -> str:
        """Return what was claimed, what was found, on what evidence, and how to see it again."""
        from .record import counted
        from .sanitise import counted_words

        result = self.result
        claim, pair, t0 = result.claim, result.pair, result.pair.t0
        counts = {"method": result.certificate.method, **counted(result)}
        at = f" at delta {claim.delta:g}" if claim.delta else ""
        world = pair.to_json()
        found = {
            "FALSIFIED": f"epsilon is at least {result.epsilon_lower:.4g}{at} ({result.confidence:.4g} confidence)",
            "SURVIVED": f"nothing beyond the claim; epsilon is at least {result.epsilon_lower:.4g}{at}",
            "UNDERPOWERED": "undecided: even a perfect attack could not falsify this claim with so few runs",
        }[result.verdict.value]
        caught = f"epsilon {result.detectable_epsilon:.4g} from {result.runs:,} runs, 9 times in 10"
        caught = caught if math.isfinite(result.detectable_epsilon) else f"nothing in {result.runs:,} runs"
        fast = " --overclaim-fast" if result.engine == "numba" else ""
        rows = [
            ("learner", f"{_name(self.learner)}{_place(self.learner)}"),
            (
                "claimed",
                f"epsilon {claim.epsilon:g}{at}, {claim.neighbours}, losses {claim.losses}, on {claim.surface}",
            ),
            ("found", found),
            ("evidence", f"{result.attack}, {counted_words(counts)}"),
            ("at best", caught),
            *([("blind spot", str(result.blind_spot))] if result.blind_spot is not None else []),
            ("two worlds", f"differ in round {t0 + 1} of {pair.rounds}"),
            ("  left", _short(world["left"])),
            ("  right", _short(world["right"])),
        ]
        body = "\n".join(textwrap.fill(f"{k:<12}{v}", 110, subsequent_indent=" " * 12) for k, v in rows)
        replay = f'replay      pytest "{self.test}" --overclaim-seed {result.seed}{fast}'  # in one line, to be copied
        return f"{result.verdict}: {_name(self.learner)}\n{body}\n{replay}"


def _name(learner: Any) -> str:
    return learner.__name__ if inspect.isclass(learner) or inspect.isroutine(learner) else type(learner).__name__


def _place(learner: Any) -> str:
    """Return where a learner is written, as ` (file:line)`; nothing where Python cannot tell."""
    from ..audit.plans.targets import source_place

    where = source_place(learner)
    return "" if where is None else f" ({where['file']}:{where['line']})"


def _short(losses: Any) -> str:
    text = str(losses)
    return text if len(text) <= 400 else f"{text[:397]}..."
