"""The pytest plugin: privacy claims as tests. Nothing of an audit is imported until a test asks for it.

    def test_promise(falsify):
        falsify(MyLearner, Claim(epsilon=1.0), rounds=8).require_survived()

Budget and seed come from the call, else from the marker `overclaim(runs=..., seed=...)`, else from `--overclaim-runs`
and `--overclaim-seed`.
"""

from __future__ import annotations

import argparse
import inspect
import os
import shlex
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from ..audit.plans.options import OPTIONS, REMOVED, fits

if TYPE_CHECKING:
    from ..audit.regret.regret_audit import RegretAudit
    from ..audit.verdicts.verdict import Result
    from ..mechanisms.claim import Claim


#: A test, or what holds tests.
Node = pytest.Item | pytest.Collector
#: What the marker takes.
MARKED = {name: option for name, option in OPTIONS.items() if option.marker}


@dataclass(frozen=True, eq=False)
class Asker:
    """On whose behalf code runs: an attempt at a test, or one making of a fixture, with the owner of that."""

    node: Node
    fixture: str = ""


@dataclass(eq=False)
class Falsified:
    """A falsified result, for whom it was audited, which of theirs it is, and the test whose report names it."""

    asker: Asker
    place: int
    result: AuditedResult
    reporter: pytest.Item | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """The same in each attempt, and in each process."""
        return self.asker.node.nodeid, self.asker.fixture, self.place


#: Those on whose behalf code runs, the innermost last: a test, and the fixtures that are being made.
ASKING = pytest.StashKey[list[Asker]]()
#: All falsified results; whether an attempt at a test did not come to its end; what xdist's workers say at their end.
FALSE = pytest.StashKey[list[Falsified]]()
ENDED_EARLY = pytest.StashKey[bool]()
OF_WORKERS = pytest.StashKey[list[dict[str, Any]]]()
NOBODY_ASKED = (
    "a result is FALSIFIED, and the test requires nothing of it: call its require_survived(), or require_falsified() "
    "where that is expected"
)
MARKER = f"overclaim({', '.join(MARKED)}): budget and seed of the audits in this test."


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the command line."""
    group = parser.getgroup("overclaim", "privacy audits")
    for name, text in (
        ("runs", "Runs of each audit that does not say how many."),
        ("seed", "Seed of each audit that does not say which.  [default: 0]"),
    ):
        minimum = OPTIONS[name].schema["minimum"]
        group.addoption(f"--overclaim-{name}", metavar=name.upper(), type=_at_least(minimum), help=text)


def _at_least(minimum: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if int(text) < minimum:
            raise argparse.ArgumentTypeError(f"must be at least {minimum}, got {text}")
        return int(text)

    return number


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", MARKER)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what the command line changes of every audit, so that a log tells how to repeat it."""
    options = [f"{name} {value}" for name, value in _given(config).items()]
    return f"overclaim: {', '.join(options)}" if options else None


def _given(config: pytest.Config) -> dict[str, object]:
    values = {name: config.getoption(f"--overclaim-{name}") for name in ("runs", "seed")}
    return {name: value for name, value in values.items() if value is not None}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note which test runs: `falsify` serves fixtures of any scope, and knows from this for whom it audits.

    Plugins may make several attempts. What the last one did not come to, as it failed or was skipped, is excused.
    """
    asking = item.config.stash[ASKING] = [Asker(item)]
    outcome = yield
    if item.stash.get(ENDED_EARLY, False):
        false = item.config.stash.get(FALSE, [])
        item.config.stash[FALSE] = [entry for entry in false if entry.asker is not asking[0]]
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Note whose fixture is made: the test's, or that of its class, module, package or session."""
    asking = request.config.stash.setdefault(ASKING, [])
    of_test = isinstance(request.node, pytest.Item) and asking
    asking.append(
        asking[0] if of_test else Asker(request.node, f"{fixturedef.argname}[{getattr(request, 'param_index', 0)}]")
    )
    try:
        return (yield)
    finally:
        asking.pop()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin an attempt at a test, which clears nothing of an earlier one; refuse a mistaken marker in one line."""
    item.stash[ENDED_EARLY] = False
    item.config.stash[ASKING][0] = Asker(item)
    for false in item.config.stash.get(FALSE, []):
        if false.reporter is item:
            false.reporter = None
    if mistake := _mistake(item):
        pytest.fail(mistake, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note that a test failed or was skipped: it may not have come to what it requires."""
    report = yield
    item.stash[ENDED_EARLY] = item.stash.get(ENDED_EARLY, False) or not report.passed
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Fail where a result is FALSIFIED and nobody asked: when what it was audited for is over, fixtures and all."""
    outcome = yield
    going_on: set[object] = set() if nextitem is None else set(nextitem.listchain())
    asker = item.config.stash[ASKING][0] if item.stash.get(ENDED_EARLY, False) else None
    false = [entry for entry in _unasked(item.config) if entry.asker.node not in going_on and entry.asker is not asker]
    if hasattr(item.config, "workerinput"):  # another process may ask for what a wide fixture made there
        false = [entry for entry in false if isinstance(entry.asker.node, pytest.Item)]
    if false:
        for entry in false:
            entry.reporter = item
        rest = f"\n... and {len(false) - 1} more" if false[1:] else ""
        pytest.fail(f"{NOBODY_ASKED}\n{false[0].result.report()}{rest}", pytrace=False)
    return outcome


def _unasked(config: pytest.Config) -> list[Falsified]:
    """Return the falsified results that nobody judged, in a later attempt neither, and that no report names."""
    false = config.stash.get(FALSE, [])
    judged = [(entry.key, entry.asker) for entry in false if entry.result.judged]
    return [
        entry
        for entry in false
        if not entry.result.judged
        and entry.reporter is None
        and not any(key == entry.key and asker is not entry.asker for key, asker in judged)
    ]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take in what a worker of xdist says at its end."""
    if report := getattr(node, "workeroutput", {}).get("overclaim"):
        node.config.stash.setdefault(OF_WORKERS, []).append(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session where a result is FALSIFIED, nobody asked, and no test's last report says so."""
    config = session.config
    false = config.stash.get(FALSE, [])
    report = {
        "left": [[list(entry.key), entry.result.report()] for entry in _unasked(config)],
        "judged": [list(entry.key) for entry in false if entry.result.judged],
    }
    if (of_worker := getattr(config, "workeroutput", None)) is not None:
        of_worker["overclaim"] = report
        return
    config.stash.setdefault(OF_WORKERS, []).append(report)
    if _left(config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what fails the session."""
    for report in _left(config):
        terminalreporter.section("FALSIFIED, and nobody asked", red=True)
        terminalreporter.write_line(f"{NOBODY_ASKED}\n{report}")


def _left(config: pytest.Config) -> list[str]:
    """Return the reports of the results that no process judged: each fixture of a worker's has its like in others."""
    workers = config.stash.get(OF_WORKERS, [])
    judged = [key for worker in workers for key in worker["judged"]]
    left = {tuple(key): report for worker in workers for key, report in worker["left"] if key not in judged}
    return [*left.values()]


def _mistake(node: Node) -> str:
    for marker in node.iter_markers("overclaim"):
        unknown = sorted(marker.kwargs.keys() - MARKED.keys())
        if marker.args or unknown:
            if removed := [name for name in unknown if name in REMOVED]:
                return f"the marker overclaim takes no {removed[0]}: {REMOVED[removed[0]]}"
            arguments = ", ".join([*map(repr, marker.args), *unknown])
            return f"the marker overclaim takes {', '.join(MARKED)} by name, got {arguments}"
        for name, value in marker.kwargs.items():
            option = MARKED[name]
            is_valid = name != "score" and fits(value, option.schema)
            if not (is_valid or (name in ("weaken", "score") and callable(value))):
                return f"the marker overclaim takes {option.marker} as {name}, got {value!r}"
    return ""


def _options(node: Node) -> dict[str, Any]:
    """Return the options of the command line and, above them, of a node's markers, the nearest first."""
    options = _given(node.config)
    for marker in reversed(list(node.iter_markers("overclaim"))):
        options |= marker.kwargs
    return options


@pytest.fixture(scope="session")
def falsify(pytestconfig: pytest.Config) -> Callable[..., AuditedResult]:
    """Return `overclaim.falsify`, with the options of the command line and of the asking test's marker.

    Fixtures of a class, a module, a package or the session may use it too: then the markers of that count.
    """

    def run(learner: Any, claim: Claim, **options: object) -> AuditedResult:
        """Audit a claim; see `overclaim.falsify`."""
        __tracebackhide__ = True
        from ..audit.pipeline.falsify import falsify as audit
        from ..learners.protocol import LearnerError

        node = pytestconfig.stash[ASKING][-1].node
        if mistake := _mistake(node):
            pytest.fail(mistake, pytrace=False)
        settings = {**_options(node), **options}
        try:
            result = audit(learner, claim, **settings)
        except LearnerError as error:  # it says in a line what our frames would in a hundred
            crash = error.with_traceback(None)
        else:
            command = _command(node, result)
            return _noted(pytestconfig, AuditedResult(result, learner, command, seeded=not settings.get("os_random")))
        raise crash from None

    return run


@pytest.fixture(scope="session")
def audit_scores(pytestconfig: pytest.Config) -> Callable[..., AuditedResult]:
    """Return `overclaim.audit_scores`, with seed and confidence of the command line and of the asking test."""

    def run(scores: object = None, **options: object) -> AuditedResult:
        """Audit a claim by scores of canaries; see `overclaim.audit_scores`."""
        __tracebackhide__ = True
        from ..audit.canaries.score_audit import audit_scores

        node = pytestconfig.stash[ASKING][-1].node
        if mistake := _mistake(node):
            pytest.fail(mistake, pytrace=False)
        defaults = {name: value for name, value in _options(node).items() if name in ("seed", "confidence")}
        audit: Callable[..., Result] = audit_scores
        result = audit(scores, **{**defaults, **options})
        return _noted(pytestconfig, AuditedResult(result, "scores", _command(node, result)))

    return run


def _noted(config: pytest.Config, audited: AuditedResult) -> AuditedResult:
    """Return a result; one that is FALSIFIED is remembered, as nobody may ask for its verdict."""
    if audited.result.verdict.value == "FALSIFIED":
        asker, false = config.stash[ASKING][-1], config.stash.setdefault(FALSE, [])
        false.append(Falsified(asker, sum(entry.asker is asker for entry in false), audited))
    return audited


@pytest.fixture(scope="session")
def check_regret(pytestconfig: pytest.Config) -> Callable[..., RegretAudit]:
    """Return `overclaim.check_regret`, with runs, seed and confidence of the command line and of the asking test."""

    def run(learner: object, bound: float | Callable[[int], float], **options: object) -> RegretAudit:
        """Fail the test unless the bound holds on all sequences played; see `overclaim.check_regret`."""
        __tracebackhide__ = True
        from ..audit.regret.check_regret import OpenBoundError
        from ..audit.regret.check_regret import check_regret as check
        from ..learners.protocol import LearnerError

        node = pytestconfig.stash[ASKING][-1].node
        if message := _mistake(node):
            pytest.fail(message, pytrace=False)
        defaults = {name: value for name, value in _options(node).items() if name in ("runs", "seed", "confidence")}
        try:
            return check(learner, bound, **{**defaults, **options})
        except (LearnerError, OpenBoundError) as error:
            message = "\n".join([str(error), *getattr(error, "__notes__", ())])
        pytest.fail(message, pytrace=False)  # not in the handler: pytest would show what was handled too

    return run


def _command(node: Any, result: Result) -> str:
    """Return the command that repeats an audit: in one line, to be copied into a shell."""
    config = node.config
    # Ids start from the root folder, mostly; the command is for the folder where pytest was started.
    place = [os.path.relpath(node.path, config.invocation_params.dir), *node.nodeid.split("::")[1:]]
    arguments = ["pytest", *(["::".join(place)] if node.nodeid not in ("", ".") else [])]
    if "runs" in _given(config):
        arguments += ["--overclaim-runs", str(config.getoption("--overclaim-runs"))]
    arguments += ["--overclaim-seed", str(result.seed)]
    return shlex.join(arguments)


class AuditedResult:
    """A result whose failed requirement reads like a bug report; everything else is the result's own.

    It is `judged` once a test required one of the two verdicts, or read which it is.
    """

    judged = False

    def __init__(self, result: Result, learner: object, replay: str, *, seeded: bool = True) -> None:
        self.result, self.learner, self.replay, self.seeded = result, learner, replay, seeded

    def __getattr__(self, name: str) -> object:
        if name == "result":  # while it is copied or unpickled
            raise AttributeError(name)
        self.judged = self.judged or name == "verdict"
        return getattr(self.result, name)

    def __copy__(self) -> AuditedResult:
        return self  # what is required of a copy is required of the result

    def __deepcopy__(self, memo: object) -> AuditedResult:
        return self

    def __repr__(self) -> str:
        return str(self.result)

    def __bool__(self) -> bool:
        """Refuse, as a verdict does."""
        return bool(self.result)

    def require_survived(self) -> None:
        """Fail the test unless the claim survived an audit that could have falsified it."""
        __tracebackhide__ = True
        self.judged = True
        if self.result.verdict.value != "SURVIVED":
            pytest.fail(self.report(), pytrace=False)

    def require_falsified(self) -> None:
        """Fail the test unless the claim was falsified: for twins that are broken on purpose."""
        __tracebackhide__ = True
        self.judged = True
        if self.result.verdict.value != "FALSIFIED":
            pytest.fail(self.report(), pytrace=False)

    def report(self) -> str:
        """Return what `overclaim check` says of a claim, in Python's words, with the test that audits it again."""
        import click

        from ..audit.play.learner_mechanism import RoundsPair
        from ..mechanisms.relations.relation import neighbours_words
        from .extras import Extras, cause_of
        from .formats.claim_lines import claim_lines
        from .notebook import record_of
        from .reading import missing_words
        from .sanitise import visible

        is_name = isinstance(self.learner, str)
        name = str(self.learner) if is_name else f"{_name(self.learner)}{_place(self.learner)}"
        record = record_of(self.result) | {"name": name, "replay": self.replay, "replayable": self.seeded}
        if isinstance(self.result.pair, RoundsPair):
            record |= {"mechanism": False, "relation": neighbours_words(self.result.claim.neighbours)}
        elif self.result.verdict.value == "FALSIFIED" and not is_name:
            extras = Extras([])
            record = extras.noted(
                {**record, **(extras.get("trace", lambda: cause_of(self.learner, self.result)) or {})}
            )
        lines = [click.unstyle(claim_lines(record, python=True)), *map(visible, missing_words(record))]
        return "\n".join(lines)


def _name(learner: object) -> str:
    return learner.__name__ if inspect.isclass(learner) or inspect.isroutine(learner) else type(learner).__name__


def _place(learner: object) -> str:
    """Return where a learner is written, as ` (file:line)`; nothing where Python cannot tell."""
    from ..audit.plans.targets import source_place

    where = source_place(learner)
    return "" if where is None else f" ({where['file']}:{where['line']})"
