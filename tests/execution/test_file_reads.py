"""Files that are read are known by their hashes, in whatever way Python opens them, in this process and in others."""

import hashlib
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from overclaim.audit.execution.file_reads import FileReads, collected
from overclaim.audit.execution.workers import alone, in_parallel


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "data").write_bytes(np.zeros(4).tobytes())
    yield tmp_path
    sys.modules.pop("compiled_helper", None)


def names(reads, folder):
    inside = [Path(path) for path in reads.compared() if path.startswith(str(folder))]
    return sorted(path.relative_to(folder).as_posix() for path in inside)


def elsewhere():
    folder = Path.cwd()
    os.chdir("..")
    Path(folder.name, "data").read_bytes()


@pytest.mark.parametrize(
    "read",
    [
        lambda: open("data", "rb").close(),
        lambda: os.close(os.open("data", os.O_RDONLY)),
        lambda: Path("data").read_bytes(),
        lambda: np.fromfile("data"),
        elsewhere,
    ],
)
def test_whatever_opens_a_file_it_is_known(folder, read):
    with collected() as reads:
        read()
    assert reads.hashes[str(folder / "data")] == hashlib.sha256((folder / "data").read_bytes()).hexdigest()
    assert reads.changed() == []
    (folder / "data").write_text("edited")
    assert reads.changed() == [str(folder / "data")]


def test_of_a_file_that_is_opened_to_update_it_a_change_may_be_the_runs_own(folder):
    with collected() as reads:
        np.memmap("data", float)[0] = 0.0  # it opens to write by default
    assert (names(reads, folder), reads.changed()) == (["data"], [])
    (folder / "data").write_text("edited")
    assert (reads.changed(), names(reads, folder)) == ([], [])


def test_a_module_is_known_by_its_source_whether_it_is_compiled_or_not(folder, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (folder / "compiled_helper.py").write_text("A = 1\n")
    for _ in range(2):
        sys.modules.pop("compiled_helper", None)
        with collected() as reads:
            __import__("compiled_helper")
        assert names(reads, folder) == ["compiled_helper.py"]
    assert (folder / "__pycache__").exists()


@pytest.mark.parametrize("loaded", [False, True])
def test_a_block_has_what_an_earlier_one_read_only_where_a_module_may_hold_it(folder, monkeypatch, loaded):
    monkeypatch.setattr("overclaim.audit.execution.file_reads.is_users", lambda path: path.startswith(str(folder)))
    (folder / "compiled_helper.py").write_text("A = 1\n")
    with collected():
        with collected():
            open("data").close()
            if loaded:
                __import__("compiled_helper")
        with collected() as reads:
            pass
    assert names(reads, folder) == (["compiled_helper.py", "data"] if loaded else [])
    with collected() as reads:  # another run
        pass
    assert names(reads, folder) == []


def test_what_the_run_wrote_itself_is_not_compared(folder):
    with collected() as reads:
        Path("made").write_text("1")
        Path("made").read_text()
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(b"1")
        Path("part").write_text("2")
        os.replace("part", "moved")
        Path("moved").read_text()
        Path("data").read_bytes()
        with open("data", "ab") as file:
            file.write(b"2")
    assert (names(reads, folder), reads.changed()) == ([], [])


def test_pipes_devices_and_descriptors_are_left_alone(folder):
    os.mkfifo("pipe")
    with collected() as reads:
        os.close(os.open("pipe", os.O_RDONLY | os.O_NONBLOCK))
        Path("/dev/null").read_bytes()
        Path("/proc/self/stat").read_bytes()
        os.listdir(folder)
        with open(os.open("data", os.O_RDONLY)) as file:
            file.read()
        with pytest.raises(FileNotFoundError):
            Path("absent").read_text()
    assert names(reads, folder) == ["data"]
    assert not any(path.startswith(("/dev", "/proc")) for path in reads.hashes)


@pytest.mark.slow(reason="starts processes")
def test_other_processes_send_what_they_read(folder):
    for name in "abc":
        (folder / name).write_text(name)

    def read(name):
        return Path(folder, name).read_text()

    with collected() as reads:
        assert list(in_parallel(read, ["a", "b"], jobs=2)) == ["a", "b"]
        assert alone(read, "c") == "c"
    assert names(reads, folder) == ["a", "b", "c"]


def test_of_two_processes_the_one_that_wrote_a_file_tells(folder):
    reads = FileReads({"a": "1"})
    reads.add(FileReads({"a": None}))
    reads.add(FileReads({"a": "2", "b": "1"}))
    reads.add(FileReads({"b": "2"}))
    assert reads.hashes == {"a": None, "b": "1"}
