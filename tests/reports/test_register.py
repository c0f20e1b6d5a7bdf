"""The register: pages at stable addresses, from records alone, and nothing in them that praises."""

import copy
import json
import re
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

from overclaim.reports.command_line.cli import main
from overclaim.reports.record import to_text
from overclaim.reports.register.site import newest_audits, write_site


@pytest.fixture
def record_file(record, tmp_path):
    path = tmp_path / "record.json"
    path.write_text(to_text(record), encoding="utf-8")
    return path


def register(*paths, out):
    return CliRunner().invoke(main, ["register", *map(str, paths), "--out", str(out)])


def test_each_claim_has_a_page_and_badges_and_the_index_links_it(record, record_file, tmp_path):
    done = register(record_file, out=tmp_path / "site")
    assert done.exit_code == 0, done.output
    pages = sorted((tmp_path / "site" / "claims").iterdir())
    assert len(pages) == len(record["claims"])
    assert f"{len(pages)} claims" in done.output
    index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    for page in pages:
        assert f'href="claims/{page.name}/index.html"' in index
        badge = json.loads((page / "badge.json").read_text(encoding="utf-8"))
        picture = ET.parse(page / "badge.svg").getroot()
        assert picture.attrib["aria-label"] == f"{badge['label']}, {badge['message']}"
        assert badge["message"] in (page / "index.html").read_text(encoding="utf-8")


def test_every_link_of_a_page_leads_to_a_file_and_no_heading_is_skipped(record_file, tmp_path):
    register(record_file, out=tmp_path / "site")
    for page in (tmp_path / "site").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        links = re.findall(r'(?:href|src)="([^"#:]+)"', text)
        assert links
        assert all((page.parent / link).is_file() for link in links)
        levels = [int(level) for level in re.findall(r"<h(\d)", text)]
        assert all(level <= before + 1 for before, level in zip([0, *levels], levels, strict=False)), page


def test_names_of_others_stay_text_and_lead_out_of_no_folder(hostile, tmp_path):
    site = tmp_path / "site"
    hostile = copy.deepcopy(hostile)
    hostile["claims"][0]["name"] = f"../../{hostile['claims'][0]['name']}"
    assert write_site(newest_audits([hostile]), site) == len(hostile["claims"])
    assert all(file.resolve().is_relative_to(site) for file in tmp_path.rglob("*.*"))
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "<script>alert" not in text
        assert "onerror=alert(2)>" not in text
        assert "default-src 'none'" in text
    for picture in site.rglob("badge.svg"):
        ET.parse(picture)


def test_no_title_and_no_badge_says_that_a_target_is_private(record_file, tmp_path):
    register(record_file, out=tmp_path / "site")
    badges = [json.loads(file.read_text())["message"] for file in (tmp_path / "site").rglob("badge.json")]
    assert {message.partition(":")[0] for message in badges} == {"falsified", "not falsified"}
    pages = [file.read_text(encoding="utf-8") for file in (tmp_path / "site").rglob("*.html")]
    titles = [page.partition("<title>")[2].partition("</title>")[0].lower() for page in pages]
    assert not [
        title for title in titles for word in ("certified", "passed", "verified", "is private") if word in title
    ]


def test_an_address_depends_on_the_question_alone_and_the_newest_audit_is_shown(record):
    newer = {**record, "created": "2099-01-01T00:00:00+00:00", "seed": 7}
    newer["claims"] = [{**claim, "seed": 7, "seconds": 9.0} for claim in record["claims"]]
    audits = newest_audits([newer, record])
    assert [audit.created[:4] for audit in audits] == ["2099"] * len(audits)
    assert [audit.address for audit in audits] == [audit.address for audit in newest_audits([record])]
    asked = record["claims"][0]["question"]
    other = {**record["claims"][0], "question": {**asked, "losses": "box:0:3"}}
    (changed,) = newest_audits([{**record, "claims": [other]}])
    assert changed.address not in {audit.address for audit in audits}


def test_what_is_no_record_or_no_folder_is_refused(record_file, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for done in (register(file, out=tmp_path / "site"), register(record_file, out=file), register(out=tmp_path)):
        assert done.exit_code == 2
        assert "Traceback" not in done.output
    assert not (tmp_path / "site" / "claims").exists()
