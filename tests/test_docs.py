"""The documentation: every command is run, what it prints is what is shown, and options that are named exist."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
import yaml

import overclaim

ROOT = Path(__file__).resolve().parents[1]


spec = importlib.util.spec_from_file_location("docs_commands", ROOT / "docs" / "commands.py")
commands = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = commands  # its dataclasses look themselves up
spec.loader.exec_module(commands)


#: Pages on other people's code, nightly as `make libraries` runs them too. What they show are files of examples/.
TUTORIALS = {"tutorial-opendp.md": "visits", "tutorial-diffprivlib.md": "scale", "tutorial-river.md": "articles"}
#: Pages whose audits take long.
LONG = ("tutorial.md", "mechanisms.md", "findings.md", "inputs.md", "foreign.md")
#: Entries of a release that a user reads: details are in the commits. A merge that keeps both sides brings back more.
MOST_CHANGES = 40
#: It installs a package.
INSTALLING = "tutorial-pypi.md"
TIERS = {**dict.fromkeys(LONG, pytest.mark.slow), **dict.fromkeys((*TUTORIALS, INSTALLING), pytest.mark.nightly)}


@pytest.fixture(scope="module")
def power_tests():
    """Measure power, as commands do."""


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=TIERS.get(page.name, ())) for page in commands.PAGES], ids=lambda page: page.name
)
def test_every_command_prints_what_is_shown(page, tmp_path, monkeypatch):
    """`make docs` writes what they print now. It does not depend on the processes, and starting them takes long."""
    monkeypatch.setattr("overclaim.audit.execution.workers.cores", lambda: 1)
    text = page.read_text(encoding="utf-8")
    if reason := commands.missing(text):
        pytest.skip(reason)
    assert commands.Page(tmp_path).run(text) == text


@pytest.mark.parametrize("differ", [False, True])
def test_how_long_a_command_takes_is_not_compared(differ):
    """Of a minute and more pytest says it twice: a page's test failed on a busy machine."""
    shown = ["1 passed in 17.77s"]
    for printed in ("1 passed in 3.10s", "1 passed in 65.50s (0:01:05)"):
        assert commands._kept(shown, printed, differ=differ) == shown
    assert commands._kept(shown, "1 failed in 17.77s", differ=differ) == ["1 failed in 17.77s"]


@pytest.mark.parametrize("page", TUTORIALS)
def test_a_tutorial_shows_its_examples(page):
    """Those that are in examples/, whole: the fault is put into them by the page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    shown = {block.name: block.body for block in commands.blocks(text.split("\n")) if block.name}
    files = sorted((ROOT / "examples" / TUTORIALS[page]).iterdir())
    assert {file.name: file.read_text(encoding="utf-8").splitlines() for file in files if file.is_file()} == shown


def test_a_page_that_needs_what_is_missing_is_left_out(tmp_path):
    assert not commands.missing("<!-- needs: json click -->\n")
    assert commands.missing("<!-- needs: json no_such_module -->\n").startswith("needs no_such_module: No module")


def test_a_block_that_is_rewritten_keeps_its_omissions():
    shown = ["certified: epsilon >= 1.8849", "...", "shrunk to 2 rounds, 0.3 s"]
    printed = "certified: epsilon >= 1.8848\nattack: one\nreplay: two\nshrunk to 2 rounds, 0.4 s\n"
    assert commands._kept(shown, printed) == ["certified: epsilon >= 1.8848", *shown[1:]]
    assert commands._kept(shown, printed, differ=True) == shown
    assert commands._kept(shown, "refused\n") == ["refused"]


@pytest.mark.parametrize(
    "page", [*commands.PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=lambda p: p.name
)
def test_what_a_page_mentions_exists(page):
    text = page.read_text(encoding="utf-8")
    for command in commands.mentioned(text):
        commands.check_mentioned(command)
    heads = re.findall(r"^([\w -]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    targets = [target for head in heads for target in head.split()]
    for target in re.findall(r"^make (\w+)|`make (\w+)`", text, re.MULTILINE):
        assert (target[0] or target[1]) in targets
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (page.parent / link).exists(), link
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    for block in commands.blocks(text.split("\n")):
        if block.language != "yaml":
            continue
        workflow = yaml.safe_load("\n".join(block.body))
        if "jobs" not in workflow:
            continue
        assert workflow["permissions"] == {"contents": "read"}
        for job in workflow["jobs"].values():
            assert job["permissions"] == {"contents": "read", "security-events": "write"}
            (ours,) = [step for step in job["steps"] if step["uses"].endswith("/overclaim")]
            assert set(ours["with"]) <= set(inputs)


def test_little_is_left_out():
    """Blocks that no test runs: the set-up, which is tested by CI, and installing."""
    left_out = [
        line
        for page in commands.PAGES
        for block in commands.blocks(page.read_text(encoding="utf-8").split("\n"))
        if any(comment.startswith("not run: ") for comment in block.comments)
        for line in block.body
    ]
    assert {line.split()[0] for line in left_out} <= {"make", "pip"}


PAGE = """\
```console
$ overclaim power --epsilon 1 --runs 10000
10,000 runs detect a true epsilon of 1.101 or more behind a claim of 1 (perfect attack, Laplace noise, 90% power)
$ echo $?
0
```
"""


@pytest.mark.parametrize("old", ["1.101", "90% power", "0\n```"])
def test_an_output_that_is_not_real_is_rewritten(old, tmp_path):
    assert commands.Page(tmp_path).run(PAGE) == PAGE
    wrong = PAGE.replace(old, "7" + old)
    assert wrong != PAGE
    assert commands.Page(tmp_path).run(wrong) == PAGE


def test_numbers_that_may_differ_are_rewritten_where_they_are_asked_for(tmp_path):
    page = "<!-- numbers differ: lines move -->\n" + PAGE
    old = page.replace("1.101", "1.1")
    assert commands.Page(tmp_path).run(old) == old
    assert commands.Page(tmp_path, exact=True).run(old) == page


def test_times_and_lines_left_out_do_not_count(tmp_path):
    text = '```python\nprint("a\\nb\\ntook 3.2 s")\n```\n\n```text\na\n...\ntook 9 s\n```\n'
    assert commands.Page(tmp_path).run(text) == text
    assert "...\n" not in commands.Page(tmp_path).run(text.replace("\na\n...", "\nc\n..."))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```\noverclaim list\n```", "must be console, sh, python"),
        ("```console\nprinted by nothing\n```", "must begin with a command"),
        ("```console\n$ curl example.org\n```", "cannot run curl"),
        ("```sh\noverclaim power --epsilon -1 --runs 10\n```", "line 2: .*exit code 2"),
        ("```python\nraise ValueError(3)\n```", "ValueError: 3"),
        (
            "<!-- file: a.toml -->\n```toml\nx = 1\n```\n<!-- in a.toml: y -> z -->\n```text\n```",
            "'y' must be in a.toml once",
        ),
    ],
)
def test_a_page_that_cannot_be_run_is_an_error(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        commands.Page(tmp_path).run(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("use `overclaim chekc TARGET`", "no such command"),
        ("use `overclaim check T --epsilon 1\n--run 5`", "no option --run"),
        ("```text\noverclaim power [--budget N]\n```", "no option --budget"),
    ],
)
def test_a_command_that_does_not_exist_is_an_error(text, message):
    (command,) = commands.mentioned(text)
    with pytest.raises(ValueError, match=message):
        commands.check_mentioned(command)


def test_the_changelog_knows_this_version_and_promises():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {overclaim.__version__}\n" in text
    assert "never renamed or removed" in text
    for section in ("Unreleased", overclaim.__version__):
        changes = text.partition(f"## {section}\n")[2].partition("\n## ")[0]
        assert len(re.findall("^- ", changes, re.MULTILINE)) <= MOST_CHANGES
