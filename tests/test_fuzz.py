"""Fuzzing of what a user can write: plans, records, pairs and `--set` values.

Whatever is written, the answer is a verdict, or one line and exit code 2 (bad input) or 4 (the user's code failed);
never a traceback.
"""

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overclaim.audit.plans.plan import read_plan
from overclaim.audit.plans.plan_schema import example
from overclaim.learners.catalogue.entries import entries
from overclaim.mechanisms.one_shot.zoo import zoo
from overclaim.reports.command_line.console import Failure, clear_errors
from overclaim.tests.support.command_line import error_lines, overclaim
from overclaim.tests.support.fuzzing import cases, numbers, scalars, values


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


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
    result = overclaim(*words)
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code in (0, 1, 2, 3, 4)
    if result.exit_code in (2, 4):
        lines = [line for line in result.stderr.splitlines() if line]
        assert lines, words
        (line,) = [line for line in lines if line.startswith("overclaim: error: ")]
        assert error_lines("\n".join(lines[lines.index(line) :])) == 1
        assert max(map(len, lines)) < 2000
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
    paths = [path]
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inner:
        paths += places(value, (*path, key))
    return paths


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


def report_of_a_broken_record(folder, record, data):
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


@cases(12)
@given(st.data())
def test_some_records(folder, record, data):
    report_of_a_broken_record(folder, record, data)


@pytest.mark.slow(reason="40 drawn records")
@cases(40)
@given(st.data())
def test_records(folder, record, data):
    report_of_a_broken_record(folder, record, data)


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


def test_a_planted_traceback_is_seen(monkeypatch, tmp_path):
    """The harness itself must be able to fail."""
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_text("{}")
    monkeypatch.setattr(Path, "read_bytes", lambda *_, **__: {}["planted"])
    with pytest.raises(AssertionError, match=r"== 70|70 in|in \(0, 1, 2, 3, 4\)|planted"):
        answer("report", "x.json", "--html", "y.html")
