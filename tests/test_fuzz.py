"""Fuzzing of everything that a user can write: plans, records, pairs, `--set` values, learners and mechanisms.

Whatever is written, the answer is a verdict, or one line and exit code 2 (bad input) or 4 (the user's code failed);
never a traceback. What is private by construction is not FALSIFIED more often than alpha allows. In the suite: a few
hundred cases with a fixed seed. `OVERCLAIM_FUZZ=40 make fuzz` draws 40 times as many, at random.
"""

import copy
import json
import math
import os
import random
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from overclaim import Claim, Pair, Verdict, falsify
from overclaim.audit.blackbox import falsify_mechanism
from overclaim.audit.plan_schema import example
from overclaim.audit.plans import read_plan
from overclaim.learners.catalogue import entries
from overclaim.learners.protocol import LearnerError
from overclaim.mechanisms.zoo import zoo
from overclaim.reports.cli import main
from overclaim.reports.console import Failure, clear_errors

MORE = int(os.environ.get("OVERCLAIM_FUZZ", "1"))


def cases(number):
    return settings(
        max_examples=number * MORE,
        derandomize=MORE == 1,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


# --- what people write -----------------------------------------------------------------------------------------------

WORDS = ["", "guess", "unit", "l2-ball", "lipschitz", "replace", "zero-out", "release", "falsified", "early", "None"]
numbers = st.one_of(
    st.integers(-3, 6),
    st.sampled_from([0.5, 1.0, 1e-9, 1e308, -0.0, math.inf, -math.inf, math.nan, 10**18, 2**53, 2**64, 10**400]),
    st.floats(),
)
scalars = st.one_of(numbers, st.sampled_from(WORDS), st.text(max_size=5), st.booleans(), st.none())
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
TARGETS = [*entries(), *zoo()]


def toml(value):
    """Write a value as TOML, as well as it goes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value) if isinstance(value, str) else str(value).lower()


CLAIM_KEYS = [
    "target",
    "epsilon",
    "delta",
    "rounds",
    "arms",
    "losses",
    "neighbours",
    "surface",
    "runs",
    "stop",
    "expect",
    "note",
    "set",
    "left",
    "right",
    "bits",
]
claims = st.fixed_dictionaries(
    {"target": st.sampled_from(TARGETS) | scalars},
    optional={
        **{name: values for name in CLAIM_KEYS[4:]},
        "epsilon": st.sampled_from([1.0, 0.5]) | numbers,
        "delta": st.sampled_from([0.0, 1e-6]) | numbers,
        "rounds": st.integers(1, 6) | scalars,
        "arms": st.integers(1, 4) | scalars,
        "set": st.dictionaries(st.sampled_from(["eta", "batch", "calibration", "epsilon"]), scalars, max_size=2),
        "typo": scalars,
    },
)


@st.composite
def plan_texts(draw):
    top = draw(st.dictionaries(st.sampled_from(["seed", "alpha", "confidence", "claims", "x"]), scalars, max_size=2))
    lines = [f"{key} = {toml(value)}" for key, value in top.items()]
    for claim in draw(st.lists(claims, min_size=1, max_size=3)):
        lines += ["[[claims]]", *(f"{key} = {toml(value)}" for key, value in claim.items())]
    return "\n".join(lines)


@st.composite
def edited(draw, text):
    """Cut, repeat and overwrite pieces of a text."""
    for _ in range(draw(st.integers(1, 4))):
        i, j = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
        piece = draw(
            st.sampled_from(["", text[i:j] * 2, "[[", "{", '"', "\x00", "é", "=", "\n", "nan", "1e999", "9" * 5000])
        )
        text = text[:i] + piece + text[j if draw(st.booleans()) else i :]
    return text


def answer(*words):
    """Run a command; fail unless it ends with a verdict, or with one clear line and the right exit code."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code in (0, 1, 2, 3, 4)
    if result.exit_code in (2, 4):
        lines = [line for line in result.stderr.splitlines() if line]
        assert lines, words
        assert lines[-1].startswith("overclaim: ")
        assert len(lines[-1]) < 2000
    return result


def one_line_or(call):
    """Return what the call does, or None after bad input that was named in one line, as the commands do it."""
    try:
        with clear_errors():
            return call()
    except Failure as failure:
        ended = failure
    assert ended.exit_code in (2, 4)
    assert ended.message
    assert "\n" not in ended.message
    return None


def settled(audit):
    """Run an audit of somebody's code: a verdict, or an error that says what is wrong with the code."""
    try:
        found = audit().verdict
    except (LearnerError, ValueError) as error:
        found = str(error)
    assert isinstance(found, Verdict) or found


# --- the cases -------------------------------------------------------------------------------------------------------


@cases(120)
@given(plan_texts() | edited(example("plan.toml")) | st.text(max_size=60))
def test_plans(folder, text):
    path = folder / "plan.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    plan = one_line_or(lambda: read_plan(path))
    if plan is not None:
        assert 0 < plan.alpha < 1
        for task in plan.tasks:
            assert task.command().startswith("overclaim check")
            one_line_or(task.prepare)


@pytest.mark.parametrize("deep", ["[" * 50_000, '{"left": ' * 50_000, "(" * 50_000])
def test_what_is_nested_too_deep_is_refused(folder, deep):
    path = folder / "deep"
    path.write_text(deep)
    assert answer("report", path, "--html", folder / "o.html").exit_code == 2
    assert answer("run", path, "--out", folder / "out").exit_code == 2
    path.write_text(f"x = {deep}")
    assert answer("run", path, "--out", folder / "out").exit_code == 2
    target = ["check", "agarwal-singh/reduction-threshold", "--epsilon", "1"]
    assert answer(*target, "--pair", path).exit_code == 2
    assert answer(*target, "--pair", deep).exit_code == 2
    assert answer("check", "mechanisms/noisy-max-1", "--left", deep, "--right", "[1]").exit_code == 2
    assert answer("check", "mechanisms/noisy-max-1", "--set", f"x={deep}").exit_code == 2


@pytest.fixture(scope="module")
def record(folder):
    """A record with one claim of each kind and the data of its figures."""
    (folder / "small.toml").write_text(
        'confidence = 0.99\n[[claims]]\ntarget = "asi-raman-talwar/batched-threshold"\nepsilon = 1.0\nrounds = 2\n'
        'runs = 400\n[[claims]]\ntarget = "mechanisms/noisy-max-1"\nruns = 400\n'
    )
    answer("run", folder / "small.toml", "--out", folder / "small", "--jobs", 1)
    return (folder / "small" / "record.json").read_bytes()


def places(data, path=()):
    """Return the path of every value in a JSON document."""
    found = [path]
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inner:
        found += places(value, (*path, key))
    return found


def changed(data, path, value):
    data = copy.deepcopy(data)
    parent = data
    for key in path[:-1]:
        parent = parent[key]
    if value is ...:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return data


@cases(60)
@given(st.data())
def test_records(folder, record, data):
    broken = json.loads(record)
    # Every level is as likely as every other: most places lie deep in the figures' data.
    for _ in range(data.draw(st.integers(1, 3))):
        every = [p for p in places(broken) if p]
        depth = data.draw(st.sampled_from(sorted({len(p) for p in every})))
        path = data.draw(st.sampled_from([p for p in every if len(p) == depth]))
        broken = changed(broken, path, data.draw(st.just(...) | values))
    text = json.dumps(broken)
    if data.draw(st.integers(0, 9)) == 0:
        text = data.draw(edited(text))
    path = folder / "broken.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    files = {name: folder / f"report.{name}" for name in ("markdown", "junit", "sarif", "html")}
    for name in ("markdown", "junit", "sarif") if data.draw(st.integers(0, 3)) else files:
        answer("report", path, f"--{name}", files[name])


vectors = st.lists(st.sampled_from([0.0, 0.5, -1.0]) | numbers, min_size=1, max_size=2)
convex = st.one_of(
    st.fixed_dictionaries({"loss": st.just("linear"), "slope": vectors}),
    st.fixed_dictionaries(
        {"loss": st.sampled_from(["quadratic", "absolute"])},
        optional={
            "curvature": numbers | st.just(0.5),
            "centre": vectors,
            "slope": vectors,
            "level": numbers,
            "offset": numbers,
            "x": values,
        },
    ),
)
losses = st.one_of(
    st.lists(numbers, min_size=1, max_size=3),
    st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=2),
    convex,
    st.fixed_dictionaries(
        {"loss": st.sampled_from(["switch", "x"]) | values},
        optional={
            "below": convex | vectors | values,
            "above": convex | vectors,
            "threshold": numbers,
            "lag": numbers,
            "coordinate": numbers,
        },
    ),
    values,
)
PAIRS_OF = ["asi-raman-talwar/batched-threshold", "agarwal-singh/reduction-threshold", "smith-thakurta/pftal"]


@cases(80)
@given(
    st.sampled_from(PAIRS_OF) | st.sampled_from(list(entries())),
    st.one_of(
        st.fixed_dictionaries(
            {"left": st.lists(losses, max_size=3), "right": st.lists(losses, max_size=3)}, optional={"round": scalars}
        ),
        st.lists(losses, min_size=1, max_size=3).flatmap(
            lambda rows: losses.map(lambda loss: {"left": rows, "right": [loss, *rows[1:]]})
        ),
        values,
    ),
    st.sampled_from([[], ["--losses", "symmetric"], ["--neighbours", "zero-out"], ["--rounds", "2"]]),
)
def test_pairs(folder, target, pair, words):
    path = folder / "pair.json"
    path.write_text(json.dumps(pair))
    answer("check", target, "--pair", path, "--runs", 20, "--jobs", 1, *words)


PARAMETERS = sorted(
    {name for entry in entries().values() for name in entry.parameters} | {"epsilon", "delta", "losses"}
)


@cases(80)
@given(
    st.sampled_from(TARGETS),
    st.lists(
        st.tuples(
            st.sampled_from(PARAMETERS) | st.text(max_size=4),
            values.map(str)
            | values.map(json.dumps)
            | st.sampled_from(["{[]: 1}", "1_0", "0x", "1e-400", "--", "nan"]),
        ),
        min_size=1,
        max_size=2,
    ),
    st.booleans(),
)
def test_set_values(target, chosen, known):
    if known and target in entries():
        own = [*entries()[target].parameters, "epsilon", "calibration"]
        chosen = [(own[i % len(own)], value) for i, (_, value) in enumerate(chosen)]
    words = [word for name, value in chosen for word in ("--set", f"{name}={value}")]
    size = [] if target.startswith("mechanisms/") else ["--rounds", "2", "--arms", "2"]
    answer("check", target, *size, "--runs", 400, "--jobs", 1, *words)


# --- other people's code ---------------------------------------------------------------------------------------------

PAIR = Pair([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
ALPHA = 0.05


def generator_action():
    yield 0


ACTIONS = {
    "float": lambda: 0.5,
    "whole float": lambda: 1.0,
    "none": lambda: None,
    "text": lambda: "0",
    "array": lambda: np.array([0, 1]),
    "column": lambda: np.array([[1]]),
    "numpy": lambda: np.int8(1),
    "bool": lambda: True,
    "below": lambda: -1,
    "beyond": lambda: 2,
    "huge": lambda: 10**30,
    "nan": lambda: math.nan,
    "generator": generator_action,
    "class": lambda: int,
    "raises": lambda: 1 // 0,
    "no key": lambda: {}["x"],
    "assertion": lambda: pytest.fail("as a user's assertion would"),
    "recursion": lambda: ACTIONS["recursion"](),
    "stop": lambda: next(iter(())),
}


def bad_learner(action, when, where, feedback, store):
    """A learner that misbehaves in one round, in one method."""

    class Bad:
        shared = 0

        def __init__(self, arms, rounds, rng):
            self.rng, self.t, self.arms = rng, 0, arms
            if where == "init":
                ACTIONS[action]()

        def act(self):
            self.t += 1
            Bad.shared += 1
            if store == "class":
                return Bad.shared % self.arms
            if store == "own randomness":
                return random.randrange(self.arms)
            if store == "attributes":
                self.__dict__[f"x{self.t}"] = self
            return ACTIONS[action]() if where == "act" and self.t >= when else int(self.rng.integers(self.arms))

        def update(self, told):
            if where == "update" and self.t >= when:
                ACTIONS[action]()
            if store == "writes feedback" and isinstance(told, np.ndarray):
                told += 1

    if feedback is not ...:
        Bad.feedback = feedback
    if store == "no act":
        del Bad.act
    return Bad


@cases(80)
@given(
    st.sampled_from(list(ACTIONS)),
    st.integers(1, 3),
    st.sampled_from(["init", "act", "update"]),
    st.sampled_from(["full", "bandit", "none", None, 3, ...]),
    st.sampled_from([None, None, "class", "own randomness", "attributes", "writes feedback", "no act"]),
    st.integers(0, 10**6),
)
def test_learners_that_misbehave(action, when, where, feedback, store, seed):
    kind = bad_learner(action, when, where, feedback, store)
    claim = Claim(epsilon=1.0, losses="unit")
    settled(lambda: falsify(kind, claim, pair=PAIR, runs=200, seed=seed))


def honest_learner(kind, epsilon, delta):
    """Private by construction: its first play is noise, every later one follows from a randomised response."""

    class Honest:
        feedback = "full"

        def __init__(self, arms, rounds, rng):
            self.rng, self.arm = rng, int(rng.integers(arms))

        def act(self):
            return self.arm if kind != "uniform" else int(self.rng.integers(2))

        def update(self, told):
            if kind == "uniform" or getattr(self, "told", False):
                return
            self.told = True
            truth = int(told[0] > told[1])
            if kind == "reveals with delta" and self.rng.random() < delta:
                self.arm = truth
                return
            stay = math.exp(epsilon) / (1 + math.exp(epsilon))
            self.arm = truth if self.rng.random() < stay else 1 - truth

    return Honest


def test_honest_learners_are_falsified_no_more_than_alpha():
    """At the claim's very boundary; the count's false-alarm probability is 1e-6, by the binomial law at alpha."""
    rng, alarms, audits = np.random.default_rng(), 0, 60 * MORE
    rng = np.random.default_rng(0) if MORE == 1 else rng
    for _ in range(audits):
        kind = rng.choice(["uniform", "responds", "reveals with delta"])
        epsilon = float(rng.choice([0.1, 0.5, 1.0, 2.0]))
        delta = float(rng.choice([0.01, 0.1])) if kind == "reveals with delta" else 0.0
        result = falsify(
            honest_learner(kind, epsilon, delta),
            Claim(epsilon=epsilon, delta=delta),
            pair=PAIR,
            runs=int(rng.integers(60, 300)),
            seed=int(rng.integers(2**31)),
            confidence=1 - ALPHA,
            stop=str(rng.choice(["budget", "early"])),
        )
        alarms += result.verdict is Verdict.FALSIFIED
    print(f"honest learners: {alarms} of {audits} falsified")
    assert alarms <= stats.binom.isf(1e-6, audits, ALPHA)


def honest_mechanism(epsilon):
    def respond(data, rng):
        return int((rng.random() < math.exp(epsilon) / (1 + math.exp(epsilon))) == bool(data[0]))

    return respond


def test_honest_mechanisms_are_falsified_no_more_than_alpha():
    """As for learners."""
    rng, alarms, audits = np.random.default_rng(1 if MORE == 1 else None), 0, 30 * MORE
    for _ in range(audits):
        epsilon = float(rng.choice([0.1, 0.5, 1.0, 2.0]))
        result = falsify_mechanism(
            honest_mechanism(epsilon),
            Claim(epsilon=epsilon),
            left=[0],
            right=[1],
            runs=int(rng.integers(200, 600)),
            seed=int(rng.integers(2**31)),
            confidence=1 - ALPHA,
        )
        alarms += result.verdict is Verdict.FALSIFIED
    print(f"honest mechanisms: {alarms} of {audits} falsified")
    assert alarms <= stats.binom.isf(1e-6, audits, ALPHA)


OUTPUTS = {
    **{name: make for name, make in ACTIONS.items() if name != "assertion"},
    "empty": lambda: [],
    "ragged": lambda: [[1], [1, 2]],
    "mixed": lambda: [1, "a", None],
    "complex": lambda: 1j,
    "inf": lambda: math.inf,
    "dict": lambda: {"a": 1},
    "bytes": lambda: b"ab",
    "datetime": lambda: np.datetime64("2020-01-01"),
}


@cases(60)
@given(st.sampled_from(list(OUTPUTS)), st.sampled_from([0.0, 0.5, 0.99]), values, values, st.integers(0, 10**6))
def test_mechanisms_that_misbehave(output, rate, left, right, seed):
    def mechanism(data, rng):
        return OUTPUTS[output]() if rng.random() >= rate else 0

    settled(lambda: falsify_mechanism(mechanism, Claim(epsilon=1.0), left=left, right=right, runs=200, seed=seed))


def test_a_planted_traceback_is_seen(monkeypatch):
    """The harness itself must be able to fail."""
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: {}["planted"])
    with pytest.raises(AssertionError, match="planted"):
        answer("report", "x.json", "--html", "y.html")
