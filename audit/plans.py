"""Plans: which claims to audit, with what budget, and what is expected."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..learners.catalogue import Case, Entry, Setting, entries, lookup, near_matches
from ..learners.protocol import Learner
from ..learners.scalar import recipe
from ..mechanisms.claim import LOSS_SETS, Claim
from ..mechanisms.zoo import Specimen
from .adversaries import regret_losses
from .blackbox import falsify_mechanism
from .cluster import Cluster
from .falsify import falsify
from .kernels import require_numba
from .pairs import Pair
from .plan_schema import CLAIM, EXPECTATIONS, PLAN
from .regret import Totals, measure
from .regret_audit import audit_regret
from .stages import Memory
from .targets import parse_parameters, resolve
from .verdict import Result

#: The epsilons at which the price of privacy is measured.
PRICED = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
#: For a user's learner, where nothing else says.
DEFAULT_ROUNDS, DEFAULT_ARMS, DEFAULT_RUNS = 8, 2, 100_000
#: The most losses in one sequence: larger ones do not fit into memory, as many times as an audit plays them.
MOST = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Task:
    """One claim to audit: a target, a setting, a budget, an expectation. What is None is the target's default."""

    target: str
    epsilon: float | None = None
    delta: float | None = None
    rounds: int | None = None
    arms: int | None = None
    losses: str | None = None
    neighbours: str = "replace"
    surface: str = "actions"
    runs: int = DEFAULT_RUNS
    seed: int = 0
    confidence: float = 0.99
    stop: str = "budget"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    pair: Pair | None = None
    left: Any = None
    right: Any = None
    bits: bool = False
    fast: bool = False
    expected: str | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.expected is not None and self.expected not in EXPECTATIONS:
            raise ValueError(f"expect must be one of {', '.join(EXPECTATIONS)}, got {self.expected!r}")
        for name, value in (("rounds", self.rounds), ("arms", self.arms)):
            if value is not None and not 1 <= value <= MOST:
                expected = "at least 1" if value < 1 else f"at most {MOST:,}"
                raise ValueError(f"{name} must be {expected}, got {value!r}")
        if self.fast:
            require_numba()
        if not self.runs < 2**53:
            raise ValueError(f"runs must be below 2^53, got {self.runs!r}")
        if (self.rounds or 1) * (self.arms or 1) > MOST:
            raise ValueError(f"rounds times arms must be at most {MOST:,}, got {self.rounds} times {self.arms}")
        if self.pair is not None and self.rounds not in (None, self.pair.rounds):
            raise ValueError(f"the pair has {self.pair.rounds} rounds, but rounds = {self.rounds} was asked for")

    def prepare(self) -> Prepared | PreparedMechanism:
        """Resolve the target and build everything that an audit needs.

        Raises
        ------
        ValueError
            For a target, parameter or value that does not fit.
        LearnerError
            If the user's learner cannot be built.
        """
        target = resolve(self.target)
        parameters = parse_parameters(target, self.parameters)
        if isinstance(target, Entry):
            self._refuse_inputs()
            return self._prepare_entry(target, parameters.setting, parameters.own)
        if isinstance(target, Specimen):
            return self._prepare_specimen(target, parameters.own)
        if self.epsilon is None:
            raise ValueError(f"epsilon must be given: {self.target} carries no claim of its own")
        if self.left is not None or self.right is not None:
            self._check_mechanism(target)
            claim = Claim(epsilon=self.epsilon, delta=self.delta or 0.0)
            return PreparedMechanism(self, target, claim, None, "")
        if _is_mechanism(target):
            raise ValueError(f"{self.target} is a mechanism: it needs its two inputs, left and right")
        claim = Claim(
            epsilon=self.epsilon,
            delta=self.delta or 0.0,
            losses=self.losses or "unit",
            neighbours=self.neighbours,
            surface=self.surface,
        )
        rounds = self.rounds or (self.pair.rounds if self.pair else DEFAULT_ROUNDS)
        arms = self.arms or (self.pair.arms if self.pair else None) or DEFAULT_ARMS
        learner = recipe(target, arms=arms, rounds=rounds, **parameters.own)
        return Prepared(self, learner, claim, rounds, self._given(), None, "")

    def _prepare_entry(self, entry: Entry, setting: Mapping[str, Any], own: Mapping[str, Any]) -> Prepared:
        rounds = self.rounds or (self.pair.rounds if self.pair else None)
        given = {"epsilon": self.epsilon, "delta": self.delta, "rounds": rounds, "arms": self.arms}
        changes = {"losses": self.losses, **given, **setting}
        chosen = entry.setting(**{name: value for name, value in changes.items() if value is not None})
        if chosen.losses not in LOSS_SETS:
            raise ValueError(f"losses must be one of {', '.join(LOSS_SETS)}, got {chosen.losses!r}")
        claim = entry.claim(chosen, neighbours=self.neighbours, surface=self.surface)
        if self.epsilon is not None:
            claim = replace(claim, epsilon=self.epsilon)
        learner = entry.build(chosen, **own)
        return Prepared(self, learner, claim, chosen.rounds, self._given(), chosen, entry.source)

    def _prepare_specimen(self, specimen: Specimen, own: Mapping[str, Any]) -> PreparedMechanism:
        try:
            made = specimen.build(self.epsilon, **own)
            claimed = specimen.claimed(self.epsilon, **own)
        except TypeError as error:
            raise ValueError(f"{self.target} cannot be built so: {error}") from None
        claim = Claim(epsilon=claimed, delta=self.delta or 0.0)
        pairs = None if self.left is not None or self.right is not None else specimen.pairs
        return PreparedMechanism(self, made, claim, pairs, specimen.source)

    def _check_mechanism(self, target: Any) -> None:
        """Raise ValueError for what a user's mechanism cannot be, and for the options of learners."""
        if self.left is None or self.right is None:
            missing = "left" if self.left is None else "right"
            raise ValueError(f"{self.target} needs two inputs, left and right; {missing} is missing")
        if inspect.isclass(target) or not callable(target):
            kind = "a class" if inspect.isclass(target) else f"{type(target).__name__} {target!r}"
            raise ValueError(f"left and right are for a mechanism, a function of (data, rng); {self.target} is {kind}")
        learners = {"rounds": self.rounds, "arms": self.arms, "losses": self.losses, "pair": self.pair}
        given = [name for name, value in learners.items() if value is not None]
        given += ["set"] if self.parameters else []
        given += [n for n, usual in (("surface", "actions"), ("neighbours", "replace")) if getattr(self, n) != usual]
        if given:
            raise ValueError(f"{self.target} is a mechanism: it takes no {', '.join(given)}")

    def _refuse_inputs(self) -> None:
        if self.left is not None or self.right is not None or self.bits:
            raise ValueError(f"left, right and bits are for mechanisms: {self.target} is a learner, give it a pair")

    def _given(self) -> tuple[Pair, ...] | None:
        return None if self.pair is None else (self.pair,)

    def command(self) -> str:
        """Return the command that replays this audit."""
        words = ["overclaim", "check", self.target]
        for name in ("epsilon", "delta", "rounds", "arms", "losses"):
            value = getattr(self, name)
            words += [] if value is None else [f"--{name}", _text(value)]
        words += ["--runs", str(self.runs), "--seed", str(self.seed)]
        for name, default in (
            ("surface", "actions"),
            ("neighbours", "replace"),
            ("confidence", 0.99),
            ("stop", "budget"),
        ):
            value = getattr(self, name)
            words += [] if value == default else [f"--{name}", _text(value)]
        for name, value in self.parameters.items():
            words += ["--set", f"{name}={_text(value)}"]
        for name in ("left", "right"):
            value = getattr(self, name)
            words += [] if value is None else [f"--{name}", json.dumps(value)]
        words += [f"--{name}" for name in ("bits", "fast") if getattr(self, name)]
        if self.pair is not None:
            sides = {side: value for side, value in self.pair.to_json().items() if side != "round"}
            words += ["--pair", json.dumps(sides, separators=(",", ":"))]
        return shlex.join(words)


def _is_mechanism(target: Any) -> bool:
    if not inspect.isfunction(target):
        return False
    names = inspect.signature(target).parameters.keys()
    return bool({"data", "rng"} & names) and not {"arms", "rounds"} & names


def _text(value: Any) -> str:
    """Return the shortest text that reads back as the value."""
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else repr(value)


@dataclass(frozen=True)
class Prepared:
    """A task with its target built."""

    task: Task
    learner: Learner
    claim: Claim
    rounds: int
    pairs: tuple[Pair, ...] | None
    setting: Setting | None  # of a catalogue entry
    source: str

    def audit(
        self,
        *,
        jobs: int = 1,
        progress: bool = False,
        memory: Memory | None = None,
        cluster: Cluster | None = None,
    ) -> Result:
        """Run the audit."""
        task = self.task
        return falsify(
            self.learner,
            self.claim,
            rounds=self.rounds,
            pairs=self.pairs,
            runs=task.runs,
            seed=task.seed,
            confidence=task.confidence,
            jobs=jobs,
            progress=progress,
            memory=memory,
            cluster=cluster,
            stop=task.stop,
            fast=task.fast,
        )


@dataclass(frozen=True)
class PreparedMechanism:
    """A task whose target is a mechanism: it answers once, on one of two inputs."""

    task: Task
    learner: Any  # the mechanism
    claim: Claim
    pairs: tuple[Any, ...] | None
    source: str
    rounds: int = 1
    setting: None = None

    def audit(
        self,
        *,
        jobs: int = 1,
        progress: bool = False,
        memory: Memory | None = None,
        cluster: Cluster | None = None,
    ) -> Result:
        """Run the audit."""
        task = self.task
        if task.stop != "budget":
            raise ValueError(f"mechanisms are audited with stop budget, got {task.stop!r}")
        return falsify_mechanism(
            self.learner,
            self.claim,
            left=task.left,
            right=task.right,
            pairs=self.pairs,
            runs=task.runs,
            seed=task.seed,
            confidence=task.confidence,
            bits=task.bits,
            jobs=jobs,
            progress=progress,
            memory=memory,
            cluster=cluster,
        )


@dataclass(frozen=True)
class RegretTask:
    """A catalogue entry's regret, to be measured on adversarial losses and held against its bound."""

    target: str
    rounds: int = 1024
    runs: int = 400
    seed: int = 0

    def measure(self, memory: Totals | None = None) -> dict[str, Any]:
        """Return the measurement: what `overclaim regret` prints, with the target's name."""
        entry = lookup(self.target)
        setting = entry.setting(rounds=self.rounds)
        found = audit_regret(entry, setting, runs=self.runs, seed=self.seed, memory=memory).to_json()
        price = [self._regret(entry, epsilon, memory) for epsilon in PRICED]
        return {"name": self.target, **found, "epsilons": list(PRICED), "price": price}

    def _regret(self, entry: Entry, epsilon: float, memory: Totals | None) -> float:
        """Return the mean regret at an epsilon, at a quarter of the horizon."""
        setting = entry.setting(rounds=max(1, self.rounds // 4), epsilon=epsilon)
        learner = entry.build(setting)
        return max(
            measure(
                learner, losses, runs=self.runs, seed=self.seed, label=i, memory=memory, part=f"epsilon {epsilon}"
            ).mean
            for i, losses in enumerate(regret_losses(entry, setting, learner, self.seed).values())
        )


@dataclass(frozen=True)
class Plan:
    """The tasks of a report.

    Attributes
    ----------
    tasks : tuple of Task
    seed : int
    confidence : float
        Of each certificate.
    report_alpha : float or None
        The chance that any true claim of the report is called false; None if each claim stands for itself.
    regret : tuple of RegretTask
        The utility claims to measure beside.
    """

    tasks: tuple[Task, ...]
    seed: int = 0
    confidence: float = 0.99
    report_alpha: float | None = None
    regret: tuple[RegretTask, ...] = ()

    @property
    def alpha(self) -> float:
        """The error of each certificate."""
        return 1 - self.confidence

    def faster(self) -> Plan:
        """Return the same plan on compiled kernels, where its learners have them."""
        return replace(self, tasks=tuple(replace(task, fast=True) for task in self.tasks))


def literature(seed: int = 0, alpha: float = 0.01) -> Plan:
    """Return the audit of the literature: every case and every regret claim of every catalogue entry.

    `alpha` is for the whole report: every certificate has error alpha / m, and Holm's procedure decides.
    """
    cases = [(entry, case) for entry in entries().values() for case in entry.cases]
    confidence = 1 - alpha / len(cases)
    tasks = tuple(replace(_of_case(entry, case, seed), confidence=confidence) for entry, case in cases)
    regret = tuple(RegretTask(entry.name, seed=seed) for entry in entries().values() if entry.regret is not None)
    return Plan(tasks, seed, confidence, alpha, regret)


def _of_case(entry: Entry, case: Case, seed: int) -> Task:
    chosen = {"calibration": case.calibration, **case.parameters}
    return Task(
        target=entry.name,
        # A claim that depends on T is the entry's own; any other is stated by the case.
        epsilon=None if entry.claim_epsilon else case.epsilon,
        delta=entry.delta if case.delta is None else case.delta,
        rounds=case.rounds or entry.rounds,
        arms=case.arms or entry.arms,
        losses=case.losses or entry.losses,
        neighbours=case.neighbours,
        surface=case.surface,
        runs=case.runs,
        seed=seed,
        parameters=chosen,
        expected=case.expected,
        note=case.note,
    )


def read_plan(path: Path) -> Plan:
    """Read a plan from TOML: `seed`, `alpha` or `confidence`, and a `[[claims]]` table for each claim.

    With `alpha`, the chance that any true claim of the report is called false, every certificate has error alpha / m
    and Holm's procedure decides; with `confidence`, 0.99 by default, each claim stands for itself.

    Raises
    ------
    ValueError
        If the file cannot be read or is malformed; the message names the file, the line and what was expected.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"cannot read the plan {str(path)!r}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"the plan {str(path)!r} is not UTF-8 text") from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    lines = _Lines(text, path)
    _check_schema(data, lines)
    claims = data.get("claims", [])
    if not claims:
        raise ValueError(f"{path}: a plan needs at least one [[claims]] table")
    if "alpha" in data and "confidence" in data:
        raise ValueError(f"{lines.at('alpha')}: alpha is for the whole report, confidence for each claim: give one")
    seed, alpha = int(data.get("seed", 0)), data.get("alpha")
    confidence = float(data.get("confidence", 0.99)) if alpha is None else 1 - alpha / len(claims)
    tasks = tuple(_read_claim(claim, lines, i, seed, confidence) for i, claim in enumerate(claims))
    return Plan(tasks, seed, confidence, alpha)


def _read_claim(claim: Mapping[str, Any], lines: _Lines, index: int, seed: int, confidence: float) -> Task:
    values = {key: value for key, value in claim.items() if key not in ("set", "expect")}
    kinds = {"number": float, "integer": int}
    for key, value in values.items():
        values[key] = kinds.get(CLAIM["properties"][key].get("type"), lambda same: same)(value)
    try:
        task = Task(
            **values,
            parameters=claim.get("set", {}),
            expected=claim.get("expect"),
            seed=seed,
            confidence=confidence,
        )
        if not task.target.partition(":")[2]:  # users' own files are loaded when their turn comes
            task.prepare()
    except ValueError as error:
        raise ValueError(f"{lines.at('claims', index)}: {error}") from None
    return task


def _check_schema(data: Mapping[str, Any], lines: _Lines) -> None:
    """Raise ValueError for the first thing in a plan that its schema forbids."""
    from jsonschema import Draft202012Validator

    found = sorted(Draft202012Validator(PLAN).iter_errors(data), key=lambda error: [str(p) for p in error.path])
    if found:
        raise ValueError(_explain(found[0], lines))


def _explain(error: Any, lines: _Lines) -> str:
    """Return one line for an error of the schema: where, what was expected, what was found."""
    place = list(error.absolute_path)
    index = place[1] if len(place) > 1 else None
    key = place[-1] if place and isinstance(place[-1], str) else None
    here = lines.at(key or "claims", index)
    rule, limit, value = error.validator, error.validator_value, error.instance
    if rule == "additionalProperties":
        known = error.schema["properties"]
        key = next(name for name in value if name not in known)
        near = near_matches(key, known)
        return f"{lines.at(key, index)}: unknown key {key!r}{near}, expected one of {', '.join(known)}"
    if rule == "required":
        return f"{here}: a claim needs a target"
    if key is None:
        return f"{here}: claims must be tables, as in [[claims]], got {value!r}"
    if rule == "enum":
        return f"{here}: {key} must be one of {', '.join(limit)}, got {value!r}"
    if rule == "type":
        words = {
            "integer": "an integer",
            "number": "a number",
            "string": "text",
            "boolean": "true or false",
            "object": "a table",
            "array": "tables",
        }
        return f"{here}: {key} must be {words[limit]}, got {value!r}"
    if "exclusiveMinimum" in error.schema and "exclusiveMaximum" in error.schema:
        return f"{here}: {key} must be in (0, 1), got {value!r}"
    words = {"minimum": "at least", "exclusiveMinimum": "above", "exclusiveMaximum": "below", "minLength": "of length"}
    return f"{here}: {key} must be {words[rule]} {limit}, got {value!r}"


@dataclass(frozen=True)
class _Lines:
    """Where keys stand in the text of a plan: tomllib does not tell."""

    text: str
    path: Path

    def at(self, key: str, index: int | None = None) -> str:
        """Return `file:line` of a key, in the claim of this index if one is given, else at the top."""
        lines = self.text.splitlines()
        heads = [n for n, line in enumerate(lines) if re.match(r"\s*\[\[\s*claims\s*\]\]", line)]
        start, end = 0, heads[0] if heads else len(lines)
        if index is not None and index < len(heads):
            start, end = heads[index], heads[index + 1] if index + 1 < len(heads) else len(lines)
        pattern = re.compile(rf'\s*(\[claims\.)?"?{re.escape(key)}"?\s*[=\]]')
        for n in range(start, end):
            if pattern.match(lines[n]):
                return f"{self.path}:{n + 1}"
        return f"{self.path}:{start + 1}"


def regret_setting(
    target: str, rounds: int | None, arms: int | None, losses: str | None, parameters: Mapping[str, Any]
) -> tuple[Any, Setting, Mapping[str, Any]]:
    """Return a target with the setting and the parameters of its own in which its regret is measured.

    Growth needs long horizons: `rounds` is 1024 where it is not given.

    Raises
    ------
    ValueError
        For a target, parameter or value that does not fit.
    """
    found = resolve(target)
    parsed = parse_parameters(found, parameters)
    chosen = {"arms": arms, "losses": losses, **parsed.setting}
    changes = {name: value for name, value in chosen.items() if value is not None}
    rounds = 1024 if rounds is None else rounds
    if rounds < 1 or changes.get("arms", 1) < 1:
        raise ValueError(f"rounds and arms must be at least 1, got {rounds!r} and {arms!r}")
    if isinstance(found, Entry):
        return found, found.setting(rounds=rounds, **changes), parsed.own
    return found, Setting(rounds=rounds, **changes), parsed.own
