"""`overclaim scores`, trainings, and their plans: verdicts, files, bad input, exit codes, resumed runs."""

import json
import re

import numpy as np
import pytest

from overclaim import Claim, audit_scores
from overclaim.audit.statistics.digits import at_least
from overclaim.tests.support.command_line import error_lines, overclaim, run_plan, short_lines

TRAININGS = """
import numpy as np

def sound(included, rng):
    return included + rng.normal(size=included.size)

def broken(included, rng):
    return included + 0.1 * rng.normal(size=included.size)

def raises(included, rng):
    raise ValueError("loss is nan")

def short(included, rng):
    return included[1:]
"""
ONE_RUN = ("--design", "one-run")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    coins = rng.random(400) < 0.5
    scores = np.round(3 * coins + rng.normal(size=400), 6)
    rows = list(zip(scores.tolist(), coins.astype(int).tolist(), strict=True))
    for name, mark in (("c.csv", ","), ("c.tsv", "\t")):
        lines = [mark.join(("id", "Score", "included")), *(mark.join(("x", *map(str, row))) for row in rows)]
        (tmp_path / name).write_text("\ufeff" + "\n".join(lines) + "\n")
    np.save("c.npy", np.array(rows))
    np.savez("c.npz", scores=scores, included=coins)
    (tmp_path / "words.csv").write_text("score,included\n" + "\n".join(f"{s},{bool(c)}" for s, c in rows))
    (tmp_path / "c.json").write_text(json.dumps({"score": scores.tolist(), "included": [int(c) for c in coins]}))
    (tmp_path / "rows.json").write_text(json.dumps([{"score": s, "included": c} for s, c in rows]))
    np.save("in.npy", scores[coins])
    (tmp_path / "out.csv").write_text("score\n" + "\n".join(map(str, scores[~coins])))
    (tmp_path / "train.py").write_text(TRAININGS)
    return tmp_path


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["c.csv", "words.csv", "c.tsv", "c.npy", "c.npz", "c.json", "rows.json"])
def test_every_kind_of_file_has_the_same_scores(files, name):
    run = overclaim("scores", name, *ONE_RUN, "--epsilon", 2, "-q")
    assert run.exit_code == 1
    rows = np.load("c.npy")
    lower = audit_scores(rows[:, 0], included=rows[:, 1], design="one-run", claim=Claim(epsilon=2.0)).lower
    bound = f"epsilon is at least {at_least(lower, '.2f')} (99% confidence)"
    assert run.stdout == f"FALSIFIED  {name}: claimed epsilon 2; {bound}\n"


def test_the_answer_is_line_1_of_at_most_8(files):
    run = overclaim("scores", "c.csv", *ONE_RUN, "--epsilon", 2, "--confidence", 0.95)
    lines = run.stdout.splitlines()
    assert re.fullmatch(
        r"FALSIFIED  c\.csv: claimed epsilon 2; epsilon is at least \d\.\d\d \(95% confidence\)", lines[0]
    )
    assert [line.split()[0] for line in lines[1:] if line[0] != " "] == [
        "Evidence",
        "Canaries",
        "Assumes",
        "Reproduce",
    ]
    assert len(lines) <= 8
    assert (
        lines[-1].split(maxsplit=1)[1]
        == "overclaim scores c.csv --design one-run --epsilon 2 --seed 0 --confidence 0.95"
    )
    again = overclaim(*lines[-1].split()[2:])
    assert again.stdout == run.stdout


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--epsilon", 4], 0, "Meaning +no violation was found; this is not a proof of privacy"),
        (
            ["--epsilon", 12],
            3,
            "400 canaries are too few to test it\n(.*\n)*Meaning +a perfect attack needs 1,\\d00,000",
        ),
        (
            ["--epsilon", 8, "--delta", "0.1"],
            3,
            "Meaning +a claim with a delta allows that everything is told",
        ),
    ],
)
def test_other_verdicts_say_what_they_mean(files, words, code, said):
    run = overclaim("scores", "c.csv", *ONE_RUN, *words)
    assert run.exit_code == code
    assert re.search(said, run.stdout)
    assert len(short_lines(run.stdout)) <= 8


@pytest.mark.slow(reason="a level of another measure takes a second")
def test_samples_certify_other_measures(files):
    samples = "--inserted", "in.npy", "--held-out", "out.csv", "--design", "independent"
    run = overclaim("scores", *samples, "--gdp", 1.5)
    assert run.exit_code == 1
    assert run.stdout.startswith("FALSIFIED  in.npy and out.csv: claimed mu 1.5; mu is at least 2.")
    assert f"overclaim scores {' '.join(samples)} --gdp 1.5 --seed 0" in run.stdout


def test_hints_on_scores_that_are_turned_and_on_a_random_half(files):
    half = (np.arange(400) < 200) * 1
    np.save("half.npy", np.column_stack([-half + 0.1 * np.arange(400) / 400, half]))
    run = overclaim("scores", "half.npy", *ONE_RUN, "--epsilon", 1)
    said = " ".join(run.stdout.split())
    assert "each canary has a coin of its own, and choosing a random half does not count" in said
    assert "audit the negated scores too, each at half of alpha (--confidence 0.995)" in said


def test_several_trainings_stand_in_one_file(files):
    rows = np.load("c.npy")
    np.save("t.npy", np.column_stack([rows, np.arange(400) // 100]))
    run = overclaim("scores", "t.npy", *ONE_RUN, "--epsilon", 2)
    assert "400 canaries in 4 trainings" in run.stdout


#: Files, options, and the line on stderr; each exits with 2.
BAD = {
    "no design": ("c.csv", ["--epsilon", 1], "design must be said, 'independent' or 'one-run'"),
    "no claim": ("c.csv", ONE_RUN, "the claimed epsilon of"),
    "no file": ("d.csv", [*ONE_RUN, "--epsilon", 1], "cannot read the scores 'd.csv': No such file"),
    "another kind": ("train.py", [*ONE_RUN, "--epsilon", 1], "a file of scores must end with .csv, .tsv, .npy"),
    "a folder": (".csv/", [*ONE_RUN, "--epsilon", 1], "a file of scores must end with"),
    "no columns": ("a,b\n1,0\n", [], "its first line must name the columns score and included"),
    "one column": ("score\n1\n", [], "must have the columns score and included, it has score"),
    "another name": (
        "score,member\n1,0\n",
        [],
        "rename the column that says whether a canary was in the training data (0 or 1) to included",
    ),
    "text": ("score,included\nx,0\n", [], "could not convert string 'x' to float64"),
    "short row": ("score,included\n1\n", [], "cannot read the scores"),
    "nan": ("score,included\n1,0\nnan,1\n", [], "scores must be numbers, number 2 is nan"),
    "coins": ("score,included\n1,0\n2,3\n", [], "included must be 0 or 1, got"),
    "one kind": ("score,included\n1,1\n2,1\n", [], "there is no held-out one"),
    "unfair": ("score,included\n" + "1,1\n" * 40 + "0,0\n", [], "these coins were not fair: 40 of 41 canaries"),
    "empty": ("", [], "its first line must name the columns"),
    "no rows": ("score,included\n", [], "cannot read the scores 'bad.csv': it has no rows"),
    "training": ("score,included,training\n1,0,1\n2,1,nan\n", [], "must name the training of each canary"),
    "plot": ("c.csv", [*ONE_RUN, "--epsilon", 1, "--plot", "a.png"], "--plot must name a file that ends with .svg"),
    "two samples": (
        "c.csv",
        [*ONE_RUN, "--epsilon", 1, "--inserted", "in.npy"],
        "one FILE of scores, or both",
    ),
    "nothing": (None, [*ONE_RUN, "--epsilon", 1], "give a FILE of scores, or --inserted and --held-out"),
    "one sample": (
        None,
        ["--inserted", "in.npy", "--design", "independent", "--epsilon", 1],
        "or both --inserted",
    ),
    "run of samples": (
        None,
        ["--inserted", "in.npy", "--held-out", "out.csv", *ONE_RUN, "--epsilon", 1],
        "each canary of one run has a coin of its own: it takes no --inserted, --held-out",
    ),
    "one file twice": (
        None,
        ["--inserted", "in.npy", "--held-out", "./in.npy", "--design", "independent", "--epsilon", 1],
        "inserted 'in.npy' and held_out 'in.npy' are the same file",
    ),
    "a sample with coins": (
        None,
        ["--inserted", "c.csv", "--held-out", "out.csv", "--design", "independent", "--epsilon", 1],
        "'c.csv' has a column included",
    ),
    "pickle": ("pickle.npy", [*ONE_RUN, "--epsilon", 1], "cannot read the scores"),
    "json": ("bad.json", [*ONE_RUN, "--epsilon", 1], "cannot read the scores"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_has_one_line_and_exit_code_2(files, name):
    file, words, line = BAD[name]
    np.save("pickle.npy", np.array([{}], dtype=object), allow_pickle=True)
    (files / "bad.json").write_text('{"score": [1, 2], "included": ')
    if file is not None and (not file or "\n" in file):
        (files / "bad.csv").write_text(file)
        file, words = "bad.csv", [*ONE_RUN, "--epsilon", 1]
    run = overclaim("scores", *([] if file is None else [file]), *words)
    assert (run.exit_code, run.stdout) == (2, "")
    assert line in run.stderr
    assert error_lines(run.stderr) == 1


def test_json_is_one_claim_and_a_picture_is_a_file(files):
    run = overclaim("scores", "c.csv", *ONE_RUN, "--epsilon", 2, "--json", "--plot", "roc.svg")
    claim = json.loads(run.stdout)
    assert (run.exit_code, claim["verdict"], claim["design"]) == (1, "FALSIFIED", "one-run")
    assert claim["scores"]["canaries"] == claim["runs"] == 400
    picture = (files / "roc.svg").read_text()
    assert "<title>ROC curve of the scores" in picture
    assert all(f">{tick}</text>" in picture for tick in ("1%", "10%", "100%"))
    assert "#0" not in picture.replace("url(#", "").replace('href="#', "")


@pytest.mark.parametrize(
    ("name", "code", "line"),
    [
        ("sound", 0, "SURVIVED  train.py:sound: claimed epsilon 3; epsilon is at least"),
        ("broken", 1, "FALSIFIED  train.py:broken: claimed epsilon 3; epsilon is at least"),
        ("raises", 4, "overclaim: error: train.py:raises raised ValueError: loss is nan"),
        ("short", 4, "overclaim: error: short must return 800 scores, one for each canary, got (799,)"),
    ],
)
def test_a_training_is_a_target(files, name, code, line):
    run = overclaim("check", f"train.py:{name}", "--canaries", 800, "--epsilon", 3, "--jobs", 1, "--plot", "roc.svg")
    assert run.exit_code == code
    assert (files / "roc.svg").exists() == (code < 2)
    assert run.output.startswith(line)


def test_too_few_canaries_are_told_before_the_training(files):
    run = overclaim("check", "train.py:raises", "--canaries", 20, "--epsilon", 3, "--jobs", 1)
    first, *rest = run.stderr.splitlines()
    assert run.exit_code == 4
    begin = "overclaim: warning: 20 canaries are too few to test this claim: a perfect attack needs 1"
    assert re.fullmatch(begin + r"\d\d canaries", first)
    assert rest[:1] == ["overclaim: error: train.py:raises raised ValueError: loss is nan"]
    assert "warning" not in overclaim("check", "train.py:raises", "--canaries", 300, "--epsilon", 3).stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["train.py:sound", "--epsilon", 1], "train.py:sound is a training, and its canaries are missing"),
        (["train.py:sound", "--epsilon", 1, "--canaries", 9, "--arms", 2], "is a training: it takes no --arms"),
        (["train.py:sound", "--canaries", 9], "the claimed epsilon of"),
        (["train.py:sound", "--epsilon", 1, "--canaries", 9, "--runs", 200], "is a training: it takes no --runs"),
        (["train.py:sound", "--epsilon", 1, "--canaries", 9, "--trace"], "--trace repeats runs"),
        (["train.py:sound", "--epsilon", 1, "--canaries", 9, "--shrink"], "--shrink simplifies searched inputs"),
        (["train.py:sound", "--epsilon", 1, "--canaries", 9, "--plot", "a.pdf"], "that ends with .svg"),
        (["mechanisms/laplace", "--plot", "a.svg"], "--plot draws scores of canaries"),
        (["mechanisms/laplace", "--canaries", 9], "--canaries is for a training"),
        (["mechanisms/laplace", "--trainings", 9], "takes --trainings and design with --canaries"),
    ],
)
def test_options_that_a_training_does_not_take_are_refused(files, words, line):
    run = overclaim("check", *words)
    assert run.exit_code == 2
    assert line in run.stderr


PLAN = """
confidence = 0.95
[[claims]]
scores = "c.csv"
design = "one-run"
epsilon = 2
expect = "falsified"
[[claims]]
inserted = "in.npy"
held_out = "out.csv"
design = "independent"
gdp = 2.9
[[claims]]
target = "train.py:broken"
canaries = 300
trainings = 2
epsilon = 2
expect = "falsified"
"""


@pytest.mark.slow(reason="two runs of a plan")
def test_a_plan_has_scores_and_trainings(files):
    run = run_plan(files, PLAN)
    assert run.exit_code == 0, run.output
    record = json.loads((files / "out" / "record.json").read_text())
    assert [claim["name"] for claim in record["claims"]] == ["c.csv", "in.npy and out.csv", "train.py:broken"]
    again = run_plan(files, PLAN, "--json")
    fresh = json.loads(again.stdout)["claims"]
    assert [{**claim, "seconds": 0} for claim in fresh] == [{**claim, "seconds": 0} for claim in record["claims"]]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('scores = "c.csv"\n', "", ":3: a claim needs a target, or scores of canaries"),
        ('design = "one-run"', 'design = "two-run"', ":5: design must be one of independent, one-run"),
        ('design = "one-run"\n', "", ":3: design must be said"),
        ('scores = "c.csv"', 'scores = "c.csv"\nrounds = 3', "is scores of canaries: it takes no rounds"),
        (
            'scores = "c.csv"',
            'scores = "c.csv"\ntarget = "x"',
            "target cannot go with scores of canaries",
        ),
        ('scores = "c.csv"', 'scores = "d.csv"', "cannot read the scores 'd.csv'"),
    ],
)
def test_a_mistaken_plan_is_refused_with_its_line(files, old, new, line):
    run = run_plan(files, PLAN.replace(old, new))
    assert run.exit_code == 2
    assert line in run.stderr
