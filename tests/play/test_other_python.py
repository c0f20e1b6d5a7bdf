"""Mechanisms that another Python plays: the same draws, planted faults, crashes, hangs, and what cannot go there."""

import ast
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import overclaim
from overclaim.audit.execution.file_reads import collected
from overclaim.audit.plans.tasks import Task
from overclaim.audit.play.data import DataPair
from overclaim.audit.play.faulty import FaultyMechanism
from overclaim.audit.play.mechanism_runs import RefusedInputError, SlowInputError, outputs_of, run_block
from overclaim.audit.play.other_python import InOtherPython, mechanism_of
from overclaim.audit.play.unseeded import OnGlobals
from overclaim.learners.protocol import LearnerError
from overclaim.mechanisms import worker
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.faults import Fault
from overclaim.mechanisms.global_random import FRESH_SEEDS
from overclaim.mechanisms.weakening import with_settings
from overclaim.reports.command_line.cli import main
from overclaim.tests.support.command_line import refused

HOME = Path(overclaim.__file__).parent
TARGET = """
import os, random, time
import numpy as np

def noisy(data, rng, scale=1.0):
    print("printed")
    return {"total": sum(data) + rng.laplace(0, scale), "shape": (1, np.arange(2))}

def on_globals(data):
    return sum(data) + np.random.laplace() + random.gauss(0, 1)

def crashes(data, rng):
    if rng.random() < 0.5:
        os.abort()

def hangs(data, rng):
    while True:
        time.sleep(0.01)

def raises(data, rng):
    return 1 / data[0]

def keeps(data, rng, seen=[]):
    seen.append(len(seen))
    return len(seen)
"""
PAIR = DataPair([0, 0], [0, 1])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "target.py").write_text(TARGET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def named(name, **options):
    return mechanism_of(f"target.py:{name}", sys.executable, {}, **options)


def own(name):
    space = {}
    exec(TARGET, space)
    return space[name]


@pytest.mark.parametrize(
    "value",
    [
        [1, 2.5, None, True, "x", float("inf")],
        {"a": (1, {2, 3}), 4: b"bytes", "\x00": frozenset([1])},
        {"nested": {"deep": [(), {}]}, "complex": 1j},
    ],
)
def test_what_travels_comes_back(value):
    assert worker.decode(worker.encode(value)) == value


@pytest.mark.parametrize("kind", ["f8", "f4", "i2", "?", "U3", "M8[s]"])
def test_arrays_and_their_numbers_come_back(kind):
    array = np.zeros((2, 3), dtype=kind)
    back = worker.decode(worker.encode([array, array[0, 0], np.array([None, 1])]))
    np.testing.assert_array_equal(back[0], array)
    assert back[0].dtype == array.dtype
    assert type(back[1]) is type(array[0, 0])
    assert back[2].tolist() == [None, 1]


def test_frames_come_back():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", None]}, index=[5, 6])
    back = worker.decode(worker.encode({"frame": frame, "column": frame["a"]}))
    pandas.testing.assert_frame_equal(back["frame"], frame)
    pandas.testing.assert_series_equal(back["column"], frame["a"])


def test_what_cannot_travel_is_named():
    with pytest.raises(TypeError, match="a value of type object cannot travel"):
        worker.encode([object()])


def test_what_is_sent_is_python_3_8():
    """Syntax alone: that it runs there is tried with a Python 3.8, where there is one."""
    for name in ("mechanisms.worker", *worker.MODULES):
        text = (HOME / f"{name.replace('.', '/')}.py").read_text("utf-8")
        ast.parse(text, feature_version=(3, 8))


def test_the_same_draws_give_the_same_outputs(folder):
    for name, here in (("noisy", own("noisy")), ("on_globals", OnGlobals(own("on_globals")))):
        there = named(name, seeding=name == "on_globals")
        ours, theirs = (run_block(mechanism, PAIR, Draws(1, 2, 3), 20) for mechanism in (here, there))
        assert repr(ours.outputs) == repr(theirs.outputs)
        assert np.array_equal(ours.left, theirs.left)


@pytest.mark.parametrize(
    "head", ["data, scale, rng", "data, rng, scale", "data, scale, generator", "data, *, rng, scale"]
)
def test_settings_may_stand_before_the_generator(folder, head):
    """Of a setting before `rng` the worker made two values."""
    generator = "generator" if "generator" in head else "rng"
    code = f"def count({head}):\n    return len(data) + {generator}.laplace(scale=scale)\n"
    (folder / "before.py").write_text(code)
    exec(code, space := {})
    there = mechanism_of("before.py:count", sys.executable, {"scale": 2.0})
    outputs = outputs_of(there, [1], Draws(3), 4)
    assert outputs == outputs_of(with_settings(space["count"], {"scale": 2.0}), [1], Draws(3), 4)
    assert len({*outputs}) == 4


def test_an_unknown_setting_is_named_there(folder):
    with pytest.raises(LearnerError, match="noisy takes no parameter 'size'"):
        outputs_of(mechanism_of("target.py:noisy", sys.executable, {"size": 1}), [1], Draws(3), 1)


def test_a_generator_goes_on_where_it_was_left(folder):
    draws, again = Draws(5), Draws(5)
    both = [outputs_of(named("noisy"), [1], draws, 3) + outputs_of(named("noisy"), [1], draws, 3)]
    both.append([own("noisy")([1], again.generator) for _ in range(6)])
    assert repr(both[0]) == repr(both[1])


@pytest.mark.parametrize("fault", [Fault(2.0), Fault(3.0, places=[]), Fault(1 / 9, weights=[])])
def test_planted_faults_are_the_same_there(folder, fault):
    kept = Fault(
        fault.factor, places=None if fault.places is None else [], weights=None if fault.weights is None else []
    )
    ours = outputs_of(FaultyMechanism(own("noisy"), fault), [1], Draws(4), 8)
    theirs = outputs_of(FaultyMechanism(named("noisy"), kept), [1], Draws(4), 8)
    assert repr(ours) == repr(theirs)
    assert kept.weights == fault.weights
    assert [place.rpartition(":")[2] for place in kept.places or ()] == ["7"] * len(fault.places or ())


def test_a_crash_ends_that_process_and_the_next_block_has_another(folder):
    crashing = named("crashes")
    for seed in (1, 2):
        with pytest.raises(RefusedInputError, match=rf"crashes ended its process \(SIGABRT\) on .* \(seed {seed}\)"):
            run_block(crashing, PAIR, Draws(seed), 40)


def test_a_hang_is_ended_and_its_line_is_named(folder):
    with pytest.raises(SlowInputError, match=r"hangs took more than 0.2 s on \[1\] \(seed 3\)") as caught:
        outputs_of(named("hangs", call_limit=0.2), [1], Draws(3), 1)
    assert any("line 18 in hangs" in note for note in caught.value.__notes__)


def test_an_exception_is_said_with_its_line_or_is_an_outcome(folder):
    with pytest.raises(RefusedInputError, match=r"raises raised ZeroDivisionError on .*division by zero") as caught:
        outputs_of(named("raises"), [0], Draws(3), 1)
    assert "where: target.py:21 in raises()" in caught.value.__notes__
    assert outputs_of(named("raises", outcomes=True), [0], Draws(3), 2) == ["raised ZeroDivisionError"] * 2


def test_a_copy_has_a_process_of_its_own(folder):
    from copy import deepcopy

    keeping = named("keeps")
    assert outputs_of(keeping, [0], Draws(3), 2) == [1, 2]
    assert outputs_of(deepcopy(keeping), [0], Draws(3), 1) == [1]
    assert outputs_of(keeping, [0], Draws(3), 1) == [3]


def check(*words):
    return CliRunner().invoke(
        main, ["check", *words, "--left", "[0]", "--right", "[1]", "--runs", "400", "--jobs", "1"]
    )


def test_memory_is_found_there_too(folder):
    done = check("target.py:keeps", "--epsilon", "1", "--python", sys.executable)
    assert done.exit_code == 4
    assert "keep no state" in done.output


def test_the_command_line_says_how_to_replay_it(folder):
    done = check("target.py:noisy", "--epsilon", "0.1", "--set", "scale=0.1", "--python", sys.executable)
    assert done.exit_code == 1, done.output
    assert f"--python {sys.executable}" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["target.py:noisy", "--python", "none/python"], "cannot start 'none/python'"),
        (["target.py:noisy", "--os-random"], "takes no"),
        (["mechanisms/laplace"], "code of your own"),
        (["target.py:noisy", "--stub", "torch.nn"], "--stub must be names of modules, without dots, got 'torch.nn'"),
    ],
)
def test_what_cannot_go_there_is_refused(folder, words, message):
    python = [] if "--python" in words else ["--python", sys.executable]
    refused(check(*words, "--epsilon", "1", *python), message)


def test_a_trace_says_that_it_cannot_go_there(folder):
    words = ["trace", "target.py:noisy", "--epsilon", "1", "--left", "[0]", "--right", "[1]"]
    done = CliRunner().invoke(main, [*words, "--python", sys.executable])
    assert done.exit_code == 3
    assert "a trace follows what this Python plays" in " ".join(done.output.split())


def test_a_training_is_replayed_with_its_stubs():
    """The command of a training left them out, and the import failed."""
    task = Task(target="train.py:training", epsilon=1.0, canaries=5, stub=["torch", "ray"])
    assert "--canaries 5 --stub torch,ray" in task.command()


STUBBED = """
import missing_framework
from missing_other.layers import Layer

class Model(Layer, missing_framework.Base):
    pass

def count(data, rng):
    return len(data) + rng.laplace()

def used(data, rng):
    return missing_framework.noise(1)
"""


@pytest.mark.parametrize("python", [[], ["--python", sys.executable]])
def test_modules_that_are_not_needed_may_be_missing(folder, python, monkeypatch):
    (folder / "stubbed.py").write_text(STUBBED)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setenv("OVERCLAIM_STUBS", "")
    done = check("stubbed.py:count", "--epsilon", "1", *python)
    assert done.exit_code == 4
    assert "--stub missing_framework" in " ".join(done.output.split())
    stub = ["--stub", "missing_framework,missing_other", *python]
    done = check("stubbed.py:used", "--epsilon", "1", *stub)
    assert "missing_framework.noise is used, and its module is a stub" in " ".join(done.output.split())
    assert check("stubbed.py:count", "--epsilon", "0.01", *stub).exit_code in (0, 1, 3)


def test_a_target_that_is_not_there_is_named(folder):
    with pytest.raises(LearnerError, match="nothing raised AttributeError as it was loaded"):
        named("nothing")
    assert isinstance(named("noisy"), InOtherPython)


def test_what_it_reads_there_is_known_by_its_hash(folder):
    """As of what is played here: a resumed run or a gate must see that a file has changed."""
    (folder / "limits.json").write_text("3")
    (folder / "reads.py").write_text("def count(data, rng):\n    return float(open('limits.json').read())\n")
    with collected() as reads:
        outputs_of(mechanism_of("reads.py:count", sys.executable, {}), [1], Draws(3), 1)
    assert {Path(path).name for path in reads.compared()} == {"limits.json", "reads.py"}


def test_a_pipe_that_it_opens_there_is_not_waited_for(folder):
    """We opened it once more, to have it noted, and no writer ever came."""
    os.mkfifo(folder / "pipe")
    (folder / "pipes.py").write_text(
        "import os\n\ndef count(data, rng):\n"
        "    os.close(os.open('pipe', os.O_RDONLY | os.O_NONBLOCK))\n    return 1.0\n"
    )
    with collected() as reads:
        assert outputs_of(mechanism_of("pipes.py:count", sys.executable, {}), [1], Draws(3), 1) == [1.0]
    assert "pipe" not in {Path(path).name for path in reads.hashes}


def test_code_that_seeds_itself_is_played_with_fresh_seeds_there(folder):
    """The same draws as here: `drawn_reseeded` is sent along."""
    (folder / "seeded.py").write_text(
        "import numpy as np\nheld = np.random.default_rng(1)\n"
        "def count(data):\n    return len(data) + held.laplace() + np.random.RandomState(5).laplace()\n"
    )
    there = mechanism_of("seeded.py:count", sys.executable, {}, seeding=FRESH_SEEDS)
    outputs = outputs_of(there, [1], Draws(3), 6)
    space = {}
    exec((folder / "seeded.py").read_text(), space)
    assert outputs == outputs_of(OnGlobals(space["count"], FRESH_SEEDS), [1], Draws(3), 6)
    assert len({*outputs}) == 6
