"""Faults of libraries: reproduced without overclaim, told to the authors first, and in no register before."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from overclaim.docs import libraries as page
from overclaim.mechanisms.libraries.catalogue import library_entries
from overclaim.mechanisms.library_entry import MissingLibraryError
from overclaim.reports.command_line.cli import main
from overclaim.reports.record import to_text

REPRODUCTIONS = sorted(page.REPRODUCTIONS.glob("*.py"))


def test_a_reproduction_is_short_and_needs_nothing_of_ours():
    assert REPRODUCTIONS
    for file in REPRODUCTIONS:
        text = file.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 15, file.name
        assert "overclaim" not in text, file.name
        assert "assert " in text, file.name


@pytest.mark.nightly(reason="needs the libraries, seconds each")
@pytest.mark.parametrize("file", REPRODUCTIONS, ids=lambda file: file.stem)
def test_a_reproduction_shows_the_fault(file):
    package = file.stem.partition("_")[0]
    library = next(entry.package for entry in library_entries().values() if entry.package.name == package)
    try:
        library.load()
    except MissingLibraryError as error:
        pytest.skip(str(error))
    command = [sys.executable, "-W", "ignore", file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_every_undisclosed_fault_has_a_draft_with_its_reproduction():
    for entry in library_entries().values():
        if entry.finding and not entry.finding.disclosed:
            draft = page.draft(entry.name)
            assert entry.quotation in draft
            assert entry.finding.repair in draft
            assert "assert " in draft


def test_a_draft_of_what_is_not_false_is_refused():
    with pytest.raises(ValueError, match="no fault of 'libraries/diffprivlib/Laplace' is on record"):
        page.draft("libraries/diffprivlib/Laplace")


def test_the_site_has_no_fault_that_its_authors_do_not_know():
    whole = page.PAGE.read_text(encoding="utf-8")
    shown = page.published(whole)
    assert "### diffprivlib 0.6.6: `LinearRegression`" in shown
    assert "| diffprivlib/LinearRegression | replace | 1 | documented | falsified |" in shown
    assert "### diffprivlib 0.6.6: `tools.nanmean`" in whole
    assert "| diffprivlib/nanmean | replace |" in whole
    assert "`tools.nanmean`" not in shown
    assert "| diffprivlib/nanmean | replace |" not in shown
    assert "| diffprivlib/Laplace | replace |" in shown


def test_no_page_of_the_site_names_a_target_whose_fault_is_not_disclosed():
    pages = {file.name: file.read_text(encoding="utf-8") for file in page.PAGE.parent.glob("*.md")}
    pages[page.PAGE.name] = page.published(pages[page.PAGE.name])
    hidden = [entry.name for entry in library_entries().values() if entry.finding and not entry.finding.disclosed]
    assert hidden
    for name, text in pages.items():
        targets = {word.strip("`,.;:") for word in text.split()}
        assert not targets.intersection(hidden), name
        assert "libraries_evidence" not in text, name  # it has them all, and is in the repository


def test_a_register_leaves_out_a_fault_that_is_not_disclosed(record, tmp_path):
    file, site = tmp_path / "record.json", tmp_path / "site"
    falsified = next(claim for claim in record["claims"] if claim["verdict"] == "FALSIFIED")
    falsified["undisclosed"] = True
    file.write_text(to_text(record), encoding="utf-8")
    done = CliRunner().invoke(main, ["register", str(file), "--out", str(site)])
    assert done.exit_code == 0, done.output
    assert "left out 1 that is false and not disclosed to the authors yet" in done.output
    assert len(list((site / "claims").iterdir())) == len(record["claims"]) - 1


def test_a_record_marks_what_is_not_disclosed():
    entries = library_entries()
    assert entries["libraries/diffprivlib/nanmean"].statement("replace").undisclosed
    assert not entries["libraries/diffprivlib/LinearRegression"].statement("replace").undisclosed
    assert not entries["libraries/diffprivlib/Laplace"].statement("replace").undisclosed
