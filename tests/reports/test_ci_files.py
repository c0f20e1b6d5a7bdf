"""The action, the workflow and the hook that the documentation shows keep their schemas."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def tool(name):
    path = Path(sys.executable).with_name(name)
    program = str(path) if path.exists() else shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    return program


def checked(*words):
    done = subprocess.run([tool(words[0]), *map(str, words[1:])], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def documented(name):
    """The file of this name that the tutorial shows."""
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    return re.search(rf"`{re.escape(name)}`.*?```yaml\n(.*?)```", text, re.DOTALL).group(1)


@pytest.mark.lint
def test_the_action_and_the_workflow_keep_their_schemas(tmp_path):
    checked("check-jsonschema", "--builtin-schema", "vendor.github-actions", ROOT / "action.yml")
    workflow = tmp_path / "privacy.yml"
    workflow.write_text(documented(".github/workflows/privacy.yml"))
    checked("check-jsonschema", "--builtin-schema", "vendor.github-workflows", workflow)
    workflow.write_text(workflow.read_text().replace("runs-on", "run-on"))
    with pytest.raises(AssertionError, match="run-on"):
        checked("check-jsonschema", "--builtin-schema", "vendor.github-workflows", workflow)


@pytest.mark.lint
def test_the_hook_and_its_use_keep_their_schemas(tmp_path):
    checked("pre-commit", "validate-manifest", ROOT / ".pre-commit-hooks.yaml")
    config = tmp_path / ".pre-commit-config.yaml"
    config.write_text(documented(".pre-commit-config.yaml"))
    checked("pre-commit", "validate-config", config)
    config.write_text(config.read_text().replace("rev:", "revision:"))
    with pytest.raises(AssertionError, match="rev"):
        checked("pre-commit", "validate-config", config)


@pytest.mark.slow(reason="whole commands, in a repository of its own")
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_every_push_is_audited_as_documented(tmp_path):
    """Also one that deletes the plan, or changes other files than code; with a shell in place of overclaim."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    hook |= {"entry": "sh -c", "args": ["echo audited; test -f overclaim.toml"], "language": "system"}
    del hook["language_version"]
    config = yaml.safe_load(documented(".pre-commit-config.yaml"))
    config["repos"] = [{"repo": "local", "hooks": [hook | {"verbose": True}]}]
    subprocess.run(["git", "init", "--bare", "-q", tmp_path / "remote"], check=True)
    subprocess.run(["git", "init", "-q", tmp_path / "own"], check=True)
    own = tmp_path / "own"
    (own / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    (own / "overclaim.toml").touch()
    (own / "inputs.csv").touch()
    environment = os.environ | {"PRE_COMMIT_HOME": str(tmp_path / "home")}
    subprocess.run([tool("pre-commit"), "install"], cwd=own, env=environment, check=True, capture_output=True)

    def push():
        for words in (["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "a"]):
            subprocess.run(["git", *words], cwd=own, env=environment, check=True)
        words = ["git", "push", str(tmp_path / "remote"), "HEAD:main"]
        done = subprocess.run(words, cwd=own, env=environment, capture_output=True, text=True, check=False)
        assert "\naudited\n" in done.stdout, done.stdout + done.stderr
        return done.returncode

    assert push() == 0
    (own / "inputs.csv").write_text("1\n")
    assert push() == 0
    (own / "overclaim.toml").unlink()
    assert push() == 1


def test_neither_hook_nor_action_resumes():
    """What a target reads may have changed since: each begins anew, and says what it removed."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["entry"] == "overclaim run --restart"
    action = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert "words=(run --restart)" in action
    assert "--resume" not in action + str(hook)


def test_actions_are_pinned():
    """Tags move; a commit does not."""
    workflow = documented(".github/workflows/privacy.yml")
    used = re.findall(r"uses: (\S+)", (ROOT / "action.yml").read_text(encoding="utf-8") + workflow)
    assert len(used) == 4
    assert all(re.fullmatch(r"\./.*|[\w./-]+@[0-9a-f]{40}", name) for name in used)


def test_no_input_of_the_action_is_part_of_its_scripts():
    """What a workflow passes is data: it reaches the scripts through the environment alone."""
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    scripts = re.findall(r"run: \|\n((?: {8}.*\n|\n)+)", text)
    assert len(scripts) == 2
    assert not any("${{" in script for script in scripts)


@pytest.mark.lint
def test_the_release_keeps_its_schema_and_publishes_what_was_checked():
    """No token is stored, and the rights to publish are of the job that runs none of our code."""
    path = ROOT / ".github" / "workflows" / "release.yml"
    checked("check-jsonschema", "--builtin-schema", "vendor.github-workflows", path)
    text = path.read_text(encoding="utf-8")
    assert "secrets." not in text
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name) for name in re.findall(r"uses: (\S+)", text))
    workflow = yaml.safe_load(text)
    assert list(workflow[True]) == ["workflow_dispatch"]  # YAML reads the key `on` as true
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert "permissions" not in build
    assert any(step.get("run") == "make release-check" for step in build["steps"])
    assert publish["permissions"] == {"id-token": "write"}
    assert not any("run" in step for step in publish["steps"])


@pytest.mark.lint
@pytest.mark.parametrize(
    ("code", "status"),
    [("known = 1", 1), ("def run(told): pass", 1), ("for _one in (): pass", 1), ("known_pairs = seen = 1", 0)],
)
def test_a_name_that_says_nothing_fails_lint(tmp_path, code, status):
    (tmp_path / "room.py").write_text(code)
    command = [sys.executable, ROOT / ".ci" / "names.py", "--most", "2", tmp_path]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == status
