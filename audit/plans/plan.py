"""Plans: which claims to audit, with what budget, and what is expected."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from pathlib import Path
from typing import Any, cast

from ...errors import (
    about,
    as_keys,
    exclude,
    hinted,
    must_be,
    must_be_one_of,
    not_given,
    notes_of,
    reworded,
    subject_of,
    unknown,
)
from ...learners.entry import Case, Entry
from ...mechanisms.library_entry import LibraryCase
from ...mechanisms.measures.kinds import KINDS
from ...mechanisms.measures.stated import stated_measure
from ...mechanisms.relations import RelationError
from ..execution.execution import Budget
from ..execution.provenance import named_from_here, target_from_here
from ..play.json_text import parse_float
from ..play.pairs import Pair
from ..spaces.files import FILE_TAG, of_plan
from .catalogues import catalogue, entry_of, libraries
from .configured import with_configured
from .options import ALLOWED, OFF, OPTIONS, REMOVED
from .paths import read_text
from .plan_schema import PLAN
from .regret_tasks import BUDGET_OF_REGRET, RegretTask
from .request import game_of, named_files
from .targets import convert
from .tasks import Task

#: The error of a whole report of ours: every certificate has an equal share of it, and Holm's procedure decides.
REPORT_ALPHA = 0.01
#: The rule on the runs of falsified rows, from the claim and the exact law alone, before any run. In `needed` runs the
#: count of the event that tells most misses the verdict with probability `MISS`. The row has twice as many, for its
#: pilot and for what the choice of the event loses; never fewer than figures need, nor more than its case says.
MISS, SPARE, FEWEST_FALSIFIED = 1e-6, 2, 20_000
#: Runs for each loss sequence of a measurement of regret that does not say how many.
RUNS_OF_REGRET = 2000
#: What a claim has that is not about loss sequences.
_NO_LOSSES = ("left", "right", "inputs", "scores", "inserted", "held_out", "canaries")


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
    skipped : tuple of (str, str)
        The entries of libraries that are not there, or in another version, with what is missing: nothing is said of
        their claims.
    protects : str
        Whom the claims protect, in the words of the domain, as "one click of one reader".
    places : tuple of str
        Where each task stands, FILE:LINE, in the order of the tasks.
    published : bool
        Whether it is the audit of the literature: false statements about regret and the self-test come with that.
    """

    tasks: tuple[Task, ...]
    seed: int = 0
    confidence: float = 0.99
    report_alpha: float | None = None
    regret: tuple[RegretTask, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    published: bool = False
    protects: str = ""
    places: tuple[str, ...] = ()

    @property
    def alpha(self) -> float:
        """The error of each certificate."""
        return 1 - self.confidence

    def without_blind_spots(self) -> Plan:
        """Return the same plan without the blind spots of what survives."""
        return replace(self, tasks=tuple(replace(task, power=OFF) for task in self.tasks))


def literature(seed: int = 0) -> Plan:
    """Return the audit of the literature: every case, and every regret claim that does not take long."""
    cases = [(entry, case) for entry in catalogue().entries().values() for case in entry.cases]
    confidence = 1 - REPORT_ALPHA / len(cases)
    tasks = tuple(case_task(entry, case, seed, confidence) for entry, case in cases)
    regret = tuple(
        RegretTask(entry.name, budget=replace(BUDGET_OF_REGRET, seed=seed), spare=True)
        for entry in catalogue().entries().values()
        if entry.regret and entry.regret.measured
    )
    return Plan(tasks, seed, confidence, REPORT_ALPHA, regret, published=True)


def libraries_plan(seed: int = 0) -> Plan:
    """Return the audit of the libraries that are installed: every entry under every relation that it may mean.

    An entry whose library is there in another version than the one it quotes is skipped, as one whose library is not.

    Raises
    ------
    ValueError
        If none is left.
    """
    entries = libraries().values()
    entered = [entry for entry in entries if not entry.package.missing]
    skipped = tuple((entry.name, entry.package.missing) for entry in entries if entry.package.missing)
    if not entered:
        error = ValueError("none of the libraries is installed in the version that is quoted")
        raise hinted(error, "see make libraries, and overclaim list libraries")
    cases = [LibraryCase(entry, relation) for entry in entered for relation in entry.relations]
    confidence = 1 - REPORT_ALPHA / len(cases)
    tasks = tuple(
        Task(
            target=case.entry.name,
            neighbours=case.relation,
            budget=Budget(case.entry.runs, seed, confidence),
            expected=case.expected,
            untested=ALLOWED,
        )
        for case in cases
    )
    return Plan(tasks, seed, confidence, REPORT_ALPHA, skipped=skipped)


def runs_of(entry: Entry, case: Case) -> int:
    """Return the runs of a row of the literature, by the rule above."""
    law = catalogue().exact_law(entry, case) if case.expected == "falsified" else None
    if law is None:
        return case.runs
    _, needed_runs = law
    return min(case.runs, max(FEWEST_FALSIFIED, SPARE * needed_runs))


def case_task(entry: Entry, case: Case, seed: int, confidence: float) -> Task:
    """Return the audit of a row of the literature."""
    return Task(
        target=entry.name,
        **{**game_of(entry, case), "delta": entry.delta if case.delta is None else case.delta},
        budget=Budget(runs_of(entry, case), seed, confidence),
        pair=None if case.pair is None else Pair(*case.pair),
        untested=case.untested or None,
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
    text = read_text(path, "plan")
    try:
        data = tomllib.loads(text, parse_float=parse_float)
    except (ValueError, RecursionError) as error:  # whole numbers of thousands of digits; nested too deeply
        raise reworded(error, f"{path}: {error}", ValueError) from None
    lines = _Lines(text, path)
    _check_schema(data, lines)
    claims = data.get("claims", [])
    if not claims:
        raise not_given(f"{path}: a [[claims]] table", "overclaim init writes a plan to start from")
    if "alpha" in data and "confidence" in data:
        message = "alpha is for the whole report, confidence for each claim"
        raise hinted(ValueError(f"{lines.at('alpha')}: {message}"), "give one of them")
    seed, alpha = int(data.get("seed", 0)), data.get("alpha")
    confidence = float(data.get("confidence", 0.99)) if alpha is None else 1 - alpha / len(claims)
    if not 0 < 1 - confidence < 1:
        key = "confidence" if alpha is None else "alpha"
        raise lines.placed(must_be(key, "farther from 0 and 1 than floating point", data[key]))
    tasks = tuple(_read_claim(claim, lines, i, seed, confidence) for i, claim in enumerate(claims))
    regret = []
    for i, (claim, task) in enumerate(zip(claims, tasks, strict=True)):
        try:
            regret += [_regret_of(claim, task)] if "regret" in claim else []
        except ValueError as error:
            raise reworded(error, f"{lines.at('regret', i)}: regret: {error}", ValueError) from None
    places = tuple(lines.at("claims", i, named_from_here(path)) for i in range(len(claims)))
    return Plan(tasks, seed, confidence, alpha, tuple(regret), protects=data.get("protects", ""), places=places)


def _read_claim(claim: Mapping[str, Any], lines: _Lines, index: int, seed: int, confidence: float) -> Task:
    values: dict[str, Any] = {}
    kinds = {"number": float, "integer": int}
    for key, value in claim.items():
        option = OPTIONS[key]
        try:
            values[option.key] = kinds.get(option.schema.get("type", ""), lambda value: value)(value)
        except OverflowError:
            overflow = ValueError(f"{key} must be finite, got a number beyond all floats")
            raise lines.placed(about(key, overflow), index) from None
    values.pop("regret", None)
    budget = {key: values.pop(key) for key in ("runs", "stop") if key in values}
    for key in claim:
        if _has_time(claim[key]):
            dated = about(key, ValueError(f"{key} has a date or a time, which no record holds"))
            raise lines.placed(hinted(dated, "quote it"), index)
    if claim.get("epsilon") == 0 and not claim.get("delta"):
        raise lines.placed(must_be("epsilon", "above 0", claim["epsilon"]), index)
    try:
        if "regret" in claim and (refused := [key for key in _NO_LOSSES if key in claim]):
            raise ValueError(f"regret is measured on loss sequences: a claim with {refused[0]} takes none")
        values |= {side: of_plan(values[side]) for side in ("left", "right") if side in values}
        configured = with_configured(values)
        stated_levels = {name: values.pop(name, None) for name in KINDS}
        files = [values.get(name) for name in ("scores", "inserted", "held_out")]
        if any(file is not None for file in files):
            if "target" in values:
                raise exclude("target", "scores of canaries")
            values["target"] = named_files(*files)
        elif "target" in values:
            values["target"] = target_from_here(values["target"])
        task = Task(
            **values,
            measure=configured or stated_measure({**values, **stated_levels}),
            budget=Budget(seed=seed, confidence=confidence, **budget),
        ).resolved()
        if task.of_scores or not task.target.partition(":")[2]:  # users' own files are loaded when their turn comes
            task.prepare()
    except ValueError as error:
        raise lines.placed(error, index, *_keys_of(error, claim)) from None
    return task


def _has_time(value: object) -> bool:
    """Tell whether a date or a time is anywhere in what TOML holds."""
    if isinstance(value, dict | list):
        return any(map(_has_time, value.values() if isinstance(value, dict) else value))
    return isinstance(value, date | time)  # a datetime is a date


def _regret_of(claim: Mapping[str, Any], task: Task) -> RegretTask:
    """Return the measurement that a claim's `regret` table asks for: of the learner that is audited.

    Of a bare claim about an entry with an example that is the example's, at the horizon of the regret.
    """
    table = claim["regret"]
    runs, stop = table.get("runs", RUNS_OF_REGRET), table.get("stop", "budget")
    bound = convert("bound", table["bound"], float)
    budget = Budget(runs=runs, seed=task.budget.seed, stop=stop)
    in_catalogue = entry_of(claim["target"]) is not None  # its noise is made for what is claimed
    claimed = {"epsilon": task.epsilon, "delta": task.delta} if in_catalogue else {}
    noise = {name: value for name, value in claimed.items() if value is not None}
    return RegretTask(
        task.target,
        rounds=table.get("horizon", RegretTask.rounds),
        budget=budget,
        bound=cast("float", bound),
        arms=task.arms,
        losses=task.losses,
        parameters={**noise, **task.parameters},
    )


def _check_schema(data: Mapping[str, object], lines: _Lines) -> None:
    """Raise ValueError for the first thing in a plan that its schema forbids."""
    from jsonschema import Draft202012Validator

    violations = sorted(Draft202012Validator(PLAN).iter_errors(data), key=lambda error: [str(p) for p in error.path])
    if violations:
        raise _explain(violations[0], lines)
    claims = [*enumerate(cast("Sequence[Mapping[str, Any]]", data.get("claims", ())))]
    tables: list[tuple[int | None, Mapping[str, Any]]] = [(None, data), *claims]
    tables += [(i, claim["regret"]) for i, claim in claims if "regret" in claim]
    for index, table in tables:  # no schema refuses nan: it is not below any minimum
        for key, value in table.items():
            if isinstance(value, float) and math.isnan(value):
                raise lines.placed(must_be(key, "a number", value), index)


def _explain(error: Any, lines: _Lines) -> ValueError:
    """Return what is wrong by the schema: where, what was expected, what was found."""
    place = list(error.absolute_path)
    index = place[1] if len(place) > 1 else None
    key = place[-1] if place and isinstance(place[-1], str) else None
    rule, value = error.validator, error.instance
    if rule == "additionalProperties":
        properties = error.schema["properties"]
        key = next(name for name in value if name not in properties)
        if key in REMOVED:
            return lines.placed(hinted(ValueError(f"{key}: {REMOVED[key]}"), f"leave out {key}"), index, key)
        return lines.placed(
            unknown("unknown key", key, properties, f"the keys are {', '.join(properties)}"), index, key
        )
    if rule == "anyOf" and key is None:
        return lines.placed(ValueError("a claim needs a target, or scores of canaries"), index)
    if rule == "required" and key == "regret":
        missing = hinted(ValueError("regret needs a bound"), "as in regret = { bound = 60.0, horizon = 512 }")
        return lines.placed(missing, index, key)
    if key is None:
        return lines.placed(hinted(must_be("claims", "tables", value), "as in [[claims]]"), index)
    if rule == "enum":
        return lines.placed(must_be_one_of(key, error.validator_value, value), index, key)
    return lines.placed(must_be(key, _expected(error, key), value), index, key)


def _expected(error: Any, key: str) -> str:
    """Return what the schema expects of a key's value."""
    rule, limit = error.validator, error.validator_value
    if rule == "anyOf":
        texts = {"attributes": "fitted, all, or a list of names"}
        texts["inputs"] = "a JSON Schema, as a table or the name of its file"
        texts["stub"] = "the name of a module, or a list of names"
        texts["power"] = "a factor of at least 1.1, or off"
        return texts.get(key, "true, false, or the parameter that sets the noise")
    if rule == "type":
        return {
            "integer": "an integer",
            "number": "a number",
            "string": "text",
            "boolean": "true or false",
            "object": "a table",
            "array": "tables" if key == "claims" else "a list",
        }[limit]
    if "exclusiveMinimum" in error.schema and "exclusiveMaximum" in error.schema:
        return "in (0, 1)"
    texts = {
        "minimum": "at least",
        "maximum": "at most",
        "exclusiveMinimum": "above",
        "exclusiveMaximum": "below",
        "minLength": "of length",
    }
    return f"{texts[rule]} {limit}"


def _keys_of(error: ValueError, claim: Mapping[str, Any]) -> list[str]:
    """Return the keys of a claim where to look for an error, besides its subject: of parameters, and of the target."""
    parameters = [name for name in claim.get("set", {}) if name == subject_of(error) or repr(name) in str(error)]
    keys = [*parameters, "set"] if parameters else []
    keys += ["neighbours"] if isinstance(error, RelationError) else []
    keys += [side for side in ("left", "right") if FILE_TAG in str(error) and FILE_TAG in str(claim.get(side))]
    return [*keys, *(["target"] if repr(claim.get("target")) in str(error) else [])]


@dataclass(frozen=True)
class _Lines:
    """Where keys stand in the text of a plan: tomllib does not tell."""

    text: str
    path: Path

    def placed(self, error: ValueError, index: int | None = None, *keys: str) -> ValueError:
        """Return an error with its place in front: the line of its subject, else of a key, else of the claim."""
        subject = subject_of(error)
        candidates = (subject, *subject.split()[:1], *keys)
        names = [name for name in candidates if name and self._line(name, index) is not None]
        other = ValueError(f"{self.at(names[0] if names else 'claims', index)}: {as_keys(str(error))}")
        return hinted(other, *map(as_keys, notes_of(error)))

    def at(self, key: str, index: int | None = None, name: object = None) -> str:
        """Return `file:line` of a key, in the claim of this index if one is given, else at the top."""
        line = self._line(key, index)
        return f"{name or self.path}:{(self._span(index)[0] if line is None else line) + 1}"

    def _span(self, index: int | None) -> tuple[int, int]:
        """Return the lines of a claim, or those above all claims."""
        lines = self.text.splitlines()
        heads = [n for n, line in enumerate(lines) if re.match(r"\s*\[\[\s*claims\s*\]\]", line)]
        if index is not None and index < len(heads):
            return heads[index], heads[index + 1] if index + 1 < len(heads) else len(lines)
        return 0, heads[0] if heads else len(lines)

    def _line(self, key: str, index: int | None) -> int | None:
        """Return the line of a key; None where the claim does not have it."""
        pattern = re.compile(rf'\s*(\[claims\.)?"?{re.escape(key)}"?\s*[=\]]')
        lines = self.text.splitlines()
        return next((n for n in range(*self._span(index)) if pattern.match(lines[n])), None)
