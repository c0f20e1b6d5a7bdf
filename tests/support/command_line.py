"""What tests of the command line share: the command as a user calls it, and a small plan."""

from click.testing import CliRunner

from overclaim.reports.command_line.cli import main

FIELDS = {
    "name", "calibration", "surface", "neighbours", "claimed", "epsilon_lower", "exact_epsilon", "verdict", "expected",
    "method", "confidence", "runs", "detectable_epsilon", "counts", "pair", "two_interval_bound", "seconds", "source",
    "replay",
}  # fmt: skip


def overclaim(*arguments):
    return CliRunner().invoke(main, [str(word) for word in arguments])


def check(target, *arguments):
    return overclaim("check", target, "--epsilon", 1, "--jobs", 1, *arguments)


def short_lines(text):
    """Return the lines of a claim, but for those in which its assumptions go on: these are whole, however long."""
    lines, in_assumptions = [], False
    for line in text.splitlines():
        in_assumptions = line.startswith("Assumes") or (in_assumptions and line.startswith(" "))
        if not in_assumptions or line.startswith("Assumes"):
            lines.append(line)
    return lines


def error_lines(text):
    """Return the number of lines, without the place and the hint below an error, and the claims that are finished."""
    extra_prefixes = ("  where: ", "  hint:  ", "FALSIFIED ", "SURVIVED ", "UNDERPOWERED ")
    return sum(not line.startswith(extra_prefixes) for line in text.splitlines())


def refused(result, *texts, code=2):
    """Assert that a command ended with one error that says all of this, and printed nothing else."""
    assert (result.exit_code, result.stdout, error_lines(result.stderr)) == (code, "", 1), result.output
    assert all(text in result.stderr for text in texts), result.stderr


PLAN = """
seed = 1
confidence = 0.95

[[claims]]
target = "agarwal-singh/reduction-threshold"
epsilon = 1
rounds = 2
runs = 4000
expect = "falsified"

[[claims]]
target = "asi-raman-talwar/batched-threshold"
rounds = 2
runs = 4000
expect = "survived"
set = { batch = 1 }
"""


def run_plan(tmp_path, text, *arguments):
    plan = tmp_path / "plan.toml"
    plan.write_text(text)
    return overclaim("run", plan, "--out", tmp_path / "out", "--jobs", 1, *arguments)
