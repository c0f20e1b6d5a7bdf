"""The report: from any record to one page that is safe, the same every time, and readable in a browser."""

import copy
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import click
import pytest

from overclaim.audit.attacks.learner_attacks import SequenceRatio
from overclaim.audit.execution import workers
from overclaim.audit.plans.plan import Plan
from overclaim.audit.plans.tasks import Task
from overclaim.reports.command_line.running import decide_together
from overclaim.reports.formats import drawing, figures, ruler
from overclaim.reports.formats.claim_lines import claim_lines
from overclaim.reports.formats.html import render, share, view
from overclaim.reports.formats.markdown import render as markdown
from overclaim.reports.formats.regret_lines import regret_lines
from overclaim.reports.formats.run_lines import run_lines


def oldest(record: dict) -> dict:
    """A record with the first version's keys alone."""
    top = ("schema", "overclaim", "seed", "alpha", "created", "command")
    newer = {
        "standing", "quotation", "false", "answer", "repair", "p_value", "evidence", "published", "rounds",
        "arms", "losses", "parameters", "attack", "event", "note", "pilot_runs",
    }  # fmt: skip
    own = record["claims"][0].keys() - newer
    old = {key: record[key] for key in top}
    old["claims"] = [{key: c[key] for key in own} for c in record["claims"]]
    for claim, full in zip(old["claims"], record["claims"], strict=True):
        claim["counts"] = {key: full["counts"][key] for key in ("right", "guesses", "runs")}
    return old


class Page(HTMLParser):
    """Tags, attributes and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.ids, self.targets = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.tags.append((tag, named))
        self.ids += [named["id"]] if "id" in named else []
        self.targets += [named[k][1:] for k in ("href", "xlink:href") if (named.get(k) or "").startswith("#")]


@pytest.fixture(scope="module")
def seen(audited_once):
    return view(audited_once)


def test_same_record_same_bytes(record, page, monkeypatch):
    monkeypatch.setattr(figures, "drawn", figures.drawn.__wrapped__)
    assert page == render(json.loads(json.dumps(record)))


@pytest.mark.slow(reason="it draws all figures anew")
def test_any_number_of_processes_draws_the_same_page(record, page, monkeypatch):
    monkeypatch.setattr(figures, "drawn", figures.drawn.__wrapped__)
    monkeypatch.setattr(workers, "START", 0.0)  # however little there is to draw
    sent = []
    monkeypatch.setattr(workers, "_on_processes", lambda task, items, jobs: sent.append(jobs) or map(task, items))
    assert render(record, jobs=3) == page
    assert sent == [3]


def test_page_is_self_contained(page, hostile_page):
    for read in (Page(page), Page(hostile_page)):
        names = {tag for tag, _ in read.tags}
        assert not names & {"script", "iframe", "object", "embed", "link", "img", "form"}
        for _, attributes in read.tags:
            assert not any(name.startswith("on") for name in attributes)
            for name in ("src", "href", "xlink:href", "action"):
                assert attributes.get(name, "#").startswith("#")
    assert "url(http" not in page
    assert "@import" not in page


def test_names_inside_the_page_are_unique_and_known(page):
    read = Page(page)
    assert len(read.ids) == len(set(read.ids))
    assert set(read.targets) <= set(read.ids)
    clips = set(re.findall(r"url\(#([^)]+)\)", page))
    assert clips <= set(read.ids)


def test_the_numbers_of_axes_stand_where_matplotlib_draws_them():
    def paint(axes):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(figures.count_text)
        axes.plot([1e3, 1e6], [0.0, 4e-7])
        axes.set_xlim(1e3, 1e6)
        axes.set_ylim(4e-7, 0.0)  # downwards

    svg = drawing.draw(paint, "a < b", "delta")
    told = {words: (float(x), float(y)) for x, y, words in re.findall(r'x="([^"]+)" y="([^"]+)"[^>]*>([^<]+)', svg)}
    west, east, south, north = 44.1, 239.4, 127.5, 6.3  # the curve's ends
    assert re.search(r"M 44.1 6.3\d* *\n* *L 239.4 127.5", svg)
    for place, words in enumerate(("1k", "10k", "100k", "1M")):
        assert told[words] == pytest.approx((west + place / 3 * (east - west), south + 10.3), abs=0.1)
    assert [told[words][1] - 3.4 for words in ("0", "4")] == pytest.approx([north, south], abs=0.1)
    assert told["1e−7"][1] == pytest.approx(north + 6.6, abs=0.1)  # what all of them are multiples of
    assert {"a &lt; b", "delta"} <= told.keys()


def test_every_figure_has_alternative_text(record, page):
    drawn = [a for tag, a in Page(page).tags if tag == "svg" and a.get("role") == "img"]
    assert len(drawn) > len(record["claims"])
    assert all(len(a["aria-label"]) > 20 for a in drawn)


def test_every_figure_is_drawn_for_a_falsified_claim(record):
    titles = [f.title for f in figures.of_claim(record["claims"][4], "x")]
    assert titles == [
        "Trade-off curve",
        "Privacy profile",
        "Scores by input",
        "Leakage by round",
        "Certified epsilon against runs",
    ]


def test_hostile_names_stay_text(hostile_page):
    assert "<script" not in hostile_page
    assert "<img" not in hostile_page
    assert "{{ 7 * 7 }}" in hostile_page
    assert "\u202e" not in hostile_page
    assert "\\u202e" in hostile_page


def test_oldest_schema_still_renders(record):
    old = oldest(record)
    page = render(old)
    assert "7 claims, all as expected</h1>" in page  # it had no errors then
    assert "survived" in markdown(old)
    assert "4 falsified" in run_lines(old)


def test_an_empty_record_renders():
    assert "No claim was audited" in render({"schema": 1, "claims": []})


def test_headline_does_not_promise(record):
    survived = {**record, "claims": [c for c in record["claims"] if c["verdict"] == "SURVIVED"], "regret": []}
    page = render(survived)
    assert "✓</span> " not in page[: page.index("</h1>")]  # one claim could not be audited
    assert "Survived is not proved" in page
    for word in ("passed", "is private"):
        assert word not in page


def test_falsifications_that_hold_together(record, seen):
    # The violations here are gross: a hundredth of the error does not save any of the claims.
    assert seen["together"] == 4
    assert view(oldest(record))["together"] == 0  # without counts by world it cannot be known
    weak = copy.deepcopy(record)
    weak["claims"] = weak["claims"][:1]
    weak["claims"][0]["method"] = "guess"
    weak["claims"][0].pop("p_value", None)
    counts = weak["claims"][0]["counts"]
    counts.update(runs=20, runs_left=10, left_upper=10, right_upper=1, left_lower=1, right_lower=8)
    assert view(weak)["together"] == 0


def test_mends_name_the_cases_of_the_same_record(seen):
    mends = seen["falsified"][0]["mends"]
    assert mends["factor_two"]
    assert {(t["text"], t["claim"]["verdict"]) for t in mends["tried"]} == {
        ("with the corrected noise", "SURVIVED"),
        ("under the zero-out relation", "SURVIVED"),
    }


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"rounds": 9}, ", T = 9"),
        ({"arms": 9}, ", N = 9"),
        ({"parameters": {"radius": 2.0}}, ", radius = 2.0"),
        (
            {
                "claimed": {"epsilon": 2.0, "delta": 0.1},
                "measure": {"kind": "approximate", "epsilon": 2.0, "delta": 0.1},
            },
            None,
        ),
    ],
)
def test_what_else_differs_from_a_mended_claim_is_said(record, other, said):
    """Another horizon, dimension or parameter stands beside the mend, if no closer case is there."""
    record = copy.deepcopy(record)
    falsified = record["claims"][0]
    mended = next(c for c in record["claims"] if c["calibration"] == "corrected" and c["name"] == falsified["name"])
    record["claims"] = [falsified, {**mended, **other}]
    (tried,) = [c["mends"]["tried"] for c in view(record)["falsified"]]
    assert [t["text"] for t in tried] == ([] if said is None else ["with the corrected noise" + said])
    record["claims"].append(mended)
    (tried,) = [c["mends"]["tried"] for c in view(record)["falsified"]]
    assert [t["text"] for t in tried] == ["with the corrected noise"]


def test_other_losses_or_neighbours_are_compared_at_the_same_noise(record):
    """Noise of other parameters, as of another base of the logarithms, tells nothing of the claim's own."""
    record = copy.deepcopy(record)
    falsified = record["claims"][0]
    assert falsified["losses"] == "symmetric"
    kinds = [{"losses": "unit"}, {"neighbours": "zero-out"}]
    others = [{**falsified, **kind, "verdict": "SURVIVED", "parameters": {"base": "e"}} for kind in kinds]
    own = [{**falsified, **kind, "verdict": "SURVIVED"} for kind in kinds]
    for claims, expected in ((others, 0), (others + own, 2)):
        tried = view({**record, "claims": [falsified, *claims]})["falsified"][0]["mends"]["tried"]
        assert len(tried) == expected
        assert all(t["claim"]["parameters"] == falsified["parameters"] for t in tried)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"parameters": {"radius": 2.0}}, "radius=2.0"),
        ({"arms": 9}, "arms=9"),
        ({"pair_given": True, "pair": {"round": 1, "left": [{"loss": "switch"}], "right": [{}]}}, "losses=adaptive"),
        ({"budget": 7, "stop": "early"}, "runs=7"),
        ({"surface": "release"}, None),  # said before
    ],
)
def test_claims_of_one_target_are_told_apart(record, other, said, monkeypatch):
    """Rows with the same words and contrary verdicts contradict each other: what differs first is said, no more."""
    record = copy.deepcopy(record)
    record["claims"] = [record["claims"][0], {**record["claims"][0], **other}]
    shown = [claim["setting"] for claim in view(record)["claims"]]
    assert len(set(shown)) == 2
    if said is None:
        assert not any("=" in setting.replace("T\u00a0=", "") for setting in shown)
        return
    assert shown[1].endswith(f", {said}")
    tables = []
    for columns in ("80", "120"):
        monkeypatch.setenv("COLUMNS", columns)
        tables.append(click.unstyle(run_lines(record)).partition("\n\n")[0])
        assert all(len(line) <= int(columns) for line in tables[-1].splitlines())
    for text in (*tables, markdown(record), render(record)):
        assert said in text


def test_only_published_claims_are_reproached(seen):
    """Plain EXP3 is nobody's claim; Lemma 4.2 is one statement, however many claims falsify it."""
    sources = [c["source"] for c in seen["guarantees"]]
    assert sources == ["Agarwal & Singh 2017, Lemma 4.2", "Agarwal & Singh 2017, proof of Lemma 4.2"]


def test_shrunken_pair_is_shown_first(record):
    shrunk = copy.deepcopy({**record, "claims": record["claims"][:1]})
    shrunk["claims"][0]["shrunk"] = {"round": 1, "left": [[0.25, 0.0]], "right": [[0.75, 0.0]]}
    page = render(shrunk)
    assert "shrunk to what matters" in page
    assert "(0.75, 0)" in page


def test_a_shrunken_pair_brings_its_own_certificate(record):
    shrunk = copy.deepcopy({**record, "claims": record["claims"][:1]})
    pair = {"round": 1, "left": [{"loss": "linear", "slope": [1.0], "offset": -1.0}], "right": [[0.75]]}
    shrunk["claims"][0]["shrunk"] = {"pair": pair, "epsilon_lower": 1.5432, "runs": 1234, "replay": "overclaim again"}
    page = render(shrunk)
    assert "1.543" in page
    assert "overclaim again" in page
    assert "linear, slope (1), offset -1" in page


@pytest.mark.parametrize("confidence", [0.99, 0.999909090909, 1 - 1e-7])
def test_confidence_is_never_rounded_to_certainty(record, confidence):
    assert not share(confidence).startswith("100")
    sure = {**record["claims"][0], "confidence": confidence}
    assert " with 1 confidence" not in claim_lines(sure)


def test_long_pairs_are_folded(record):
    long = copy.deepcopy({**record, "claims": record["claims"][:1]})
    left = [[float(t % 2)] * 40 for t in range(2000)]
    right = copy.deepcopy(left)
    right[1000] = [0.5] * 40
    long["claims"][0]["pair"] = {"round": 1001, "left": left, "right": right}
    witness = view(long)["claims"][0]["witness"]
    assert len(witness["steps"]) + witness["hidden"] == 2000
    assert [s["first"] for s in witness["steps"] if s["differs"]] == [1001]


def test_ruler_marks_what_passes_the_claim():
    claim = {"verdict": "FALSIFIED", "name": "n", "claimed": {"epsilon": 2.0}, "epsilon_lower": 3.0}
    marks = ruler.row({**claim, "baseline": {"epsilon_lower": 1.0}, "exact_epsilon": 4.0})
    assert (marks.claim, marks.certified, marks.exact, marks.baseline) == (40.0, 60.0, 80.0, 20.0)
    assert not marks.beyond
    assert ruler.row({**claim, "epsilon_lower": 6.0}).beyond


def test_ruler_picture_is_xml(record):
    root = ElementTree.fromstring(ruler.picture(record["claims"]))
    assert root.tag.endswith("svg")
    assert ruler.picture(record["claims"]) == ruler.picture(record["claims"])


@pytest.mark.parametrize("surface", ["actions", "release", "publication"])
def test_ruler_says_what_is_seen(record, surface):
    assert f"{surface} seen" in ruler.setting({**record["claims"][0], "surface": surface})


def test_the_text_of_a_ruler_fits_into_it(record):
    """At 6.2 px a letter, which is wide for 11 px: the legend was cut at the right edge."""
    root = ElementTree.fromstring(ruler.picture(record["claims"]))
    texts = [node for node in root.iter("{http://www.w3.org/2000/svg}text") if node.get("class") == "s"]
    starts = [node for node in texts if node.get("text-anchor") is None]
    assert len(starts) == len(record["claims"]) + 1
    assert all(float(node.get("x")) + 6.2 * len(node.text) <= 860 for node in starts[-1:])


def test_ruler_picture_has_the_confidence_of_its_claims(record):
    assert "certified with 99.98% confidence" in ruler.picture([{**record["claims"][0], "confidence": 0.99987}])


@pytest.mark.slow(reason="a page of its own")
def test_a_shrunk_witness_stands_beside_its_own_bound(record):
    """The largest bound of a published guarantee is of the audited pair; the witness shown is a simpler one."""
    shrunk = copy.deepcopy(record)
    claim = next(c for c in shrunk["claims"] if c["verdict"] == "FALSIFIED")
    claim |= {"standing": "theorem", "epsilon_lower": 1.955}
    claim["shrunk"] = {"left": [[1.0, 1.0]], "right": [[0.0, 0.0]], "round": 1, "epsilon_lower": 1.777, "replay": ""}
    table = render(shrunk).partition('id="guarantees"')[2].partition("</section>")[0]
    assert "certified here is ε ≥ 1.777" in table


def test_regret_says_how_its_intervals_and_its_growth_are_judged(record):
    row = record["regret"][0] | {"confidence": 0.99, "interval_method": "normal approximation"}
    rows = [row | {"growth_verdict": "VACUOUS", "binds_from": 205}, row | {"growth_verdict": "HOLDS"}]
    rows.append(row | {"growth_verdict": "HOLDS", "bound_slope": 0.82})
    horizons = {"binds_from": 205, "horizons": [128, 256, 512, 1024, 2048, 4096]}
    rows += [row | horizons | {"growth_verdict": verdict} for verdict in ("VIOLATED", "UNDECIDED")]
    page = render({**record, "regret": rows})
    assert page.count("a normal approximation</small>") == 5
    assert "growth: holds on the sequences played, to within 0.1 of the bound&#39;s own slope" in page
    said = {"rounds": 64, "runs": 9, "source": "A & B", "sequence": "gap", "slope_lower": 0.4}
    words = " ".join(regret_lines("exp2", {**said, "bound_verdict": "HOLDS", **rows[2]}, verbose=True).split())
    assert "HOLDS on the sequences played, to within 0.1 of the bound's own slope" in words
    for verdict in ("VIOLATED", "UNDECIDED"):  # of fewer doublings than those of the exponent that is fitted
        assert f"growth: {verdict.lower()}, from T = 256 to T = 4,096" in page
    last = {**said, "bound_verdict": "HOLDS", **rows[2], **horizons}
    words = " ".join(regret_lines("exp2", last, verbose=True).split())
    assert "to within 0.1 of the bound's own slope, from T = 256 to T = 4,096" in words
    assert "growth: not yet, it takes 3 doublings of the horizon from T = 205 on" in page
    assert "growth: holds on the sequences played, to within 0.1 of the exponent" in page


def test_markdown_is_short_and_safe(record, hostile):
    text = markdown(record)
    assert text.startswith(
        "### ❌ overclaim: 1 of 8 claims could not be audited\n\n**CRASHED**: 4 falsified, 3 survived."
    )
    assert len(text) < 6000
    dirty = markdown(hostile)
    assert "<script" not in dirty
    assert "<img" not in dirty
    assert "\u202e" not in dirty
    rows = [line for line in dirty.splitlines() if line.startswith("| ") and "script" in line]
    assert rows
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 9 for row in rows)


def test_markdown_puts_surprises_first(record):
    surprising = copy.deepcopy(record)
    surprising["claims"][0]["expected"] = "survived"
    assert "**1 not as expected:**" in markdown(surprising).splitlines()[4]


@pytest.mark.parametrize(("columns", "verbose"), [(80, False), (110, False), (150, True)])
def test_terminal_view_fits(record, monkeypatch, columns, verbose):
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = click.unstyle(run_lines(record, verbose=verbose)).partition("\n\n")[0].splitlines()
    assert [row.split()[0] for row in rows] == [
        "verdict",
        *(claim["verdict"] for claim in record["claims"]),
        "CRASHED",
    ]
    assert all(len(row) <= columns for row in rows)
    assert all(("━" in row or "┃" in row) is verbose for row in rows[1:-1])


def test_claims_that_differ_in_delta_alone_are_told_apart(record, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    one = record["claims"][0]
    twins = [{**one, "claimed": {"epsilon": 1.0, "delta": delta}} for delta in (0.0, 1e-3)]
    rows = click.unstyle(run_lines({**record, "claims": twins})).partition("\n\n")[0].splitlines()
    assert ["delta 0.001" in row for row in rows[1:3]] == [False, True]
    page = render({**record, "claims": twins})
    assert page.count("<small>") > page.count("δ\u00a0=\u00a00.001</small>") > 0


def test_terminal_view_hides_nothing(hostile):
    text = run_lines(hostile)
    assert "\u202e" not in text
    assert "\x07" not in run_lines({**hostile, "claims": [{**hostile["claims"][0], "name": "a\x07\x1b[2Jb"}]})


def test_terminal_has_no_colours_when_asked(record, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in run_lines(record)


def test_a_crashed_claim_shares_alpha_in_the_report_as_in_the_run(record):
    """Of two claims one crashed: Holm's level is alpha / 2. The report compared with alpha, and the run did not."""
    shown = copy.deepcopy(record)
    shown["claims"] = [{**copy.deepcopy(record["claims"][0]), "p_value": 0.008}]
    tests = decide_together(copy.deepcopy(shown["claims"]), Plan((Task(target="x"),) * 2, report_alpha=0.01))
    for ledger in (tests, None):  # older records do not say how many claims there were
        seen = view({**shown, "ledger_of_tests": ledger})["claims"][0]
        decision = tests["tests"][0]
        assert (seen["test"].level, seen["test"].rejected) == (decision["level"], decision["rejected"])
        assert (decision["level"], decision["rejected"], seen["together"]) == (0.005, False, False)
    alone = view({**shown, "ledger_of_tests": {"planned": 1}})["claims"][0]
    assert alone["together"]


def test_what_is_exact_is_said_to_be_of_the_audited_pair(record):
    """Of another pair epsilon may be larger; a bound from traces may hold on every pair, and says so."""
    known = {"exact_epsilon": 1.2449, "epsilon_upper": 2.5, "epsilon_upper_pair": 2.5, "upper_how": "maximised"}
    pair = {**record["claims"][0], **known, "measure": None, "upper_scope": "pair"}
    assert "at most 2.5 on this pair, exact 1.245 on this pair" in ruler.row(pair).alternative
    assert "at most 2.5 on every pair" in ruler.row({**pair, "upper_scope": "claim"}).alternative
    told = {**record, "claims": [pair]}
    assert "| exact on its pair |" in markdown(told)
    assert "exact for pair" in run_lines(told, verbose=True)
    assert "diamond: exact for the audited inputs" in ruler.picture([pair], title="t")
    assert "exact value for the audited inputs" in (page := render(told))
    assert "exactly 1.245 for these inputs" in page


@pytest.mark.slow(reason="a page of its own")
def test_what_is_caught_at_best_is_said_to_be_laplace_noise(record):
    """What shows in rare outputs alone takes a perfect attack more runs: "a true ε this large" was any."""
    page = render(record)
    assert "a perfect attack would have caught Laplace noise of a true ε of" in page
    assert "the smallest violation by Laplace noise that a perfect attack would have caught" in page


def test_every_exact_attack_is_told_by_its_own_words(record):
    """The report had a list of four names: "the score of the sign sequences"."""
    claim = {**record["claims"][0], "attack": SequenceRatio.name, "event": {"lower": None, "upper": 1.0, "share": 0.5}}
    del claim["evidence"]  # its figures would be drawn
    start = (
        f"The attack looks at {SequenceRatio.wording}, finds “left” when that is at least 2.718 times likelier on the"
    )
    shown = {**claim, "attack_exact": True, "attack_reads": SequenceRatio.wording}
    assert view({**record, "claims": [shown]})["claims"][0]["event_words"].startswith(start)
    new = {**claim, "attack": "an attack to come", "attack_exact": True, "attack_reads": "what is to come"}
    assert "looks at what is to come, finds" in view({**record, "claims": [new]})["claims"][0]["event_words"]
    learned = {**claim, "attack": "logistic regression", "attack_exact": False, "attack_reads": ""}
    assert "the score of the logistic" in view({**record, "claims": [learned]})["claims"][0]["event_words"]


def test_a_record_says_whether_its_attack_is_exact(record):
    """Every entry's own attack, as the audit made it."""
    exact = [claim["attack_exact"] for claim in record["claims"]]
    assert True in exact
    assert [bool(claim["attack_reads"]) for claim in record["claims"]] == exact
    assert any(claim["attack_exact"] for claim in record["claims"])


@pytest.mark.slow(reason="pages of its own")
def test_sentences_fit_claims_that_stopped_early_and_pairs_that_differ_in_several_rounds(record):
    early = copy.deepcopy(record)
    assert "is certified on fresh runs." in render(early)
    for claim in early["claims"]:
        claim["method"], claim["two_interval_bound"] = "anytime", None
    page = render(early)
    assert "In the last runs the attack looks at" in page
    assert "runs, each of them guessed by what was known before it and on an input drawn by a fair coin, it" in page
    assert "Bounds from these counts" not in page
    assert "two Clopper-Pearson intervals <b>" not in page
    assert "on fresh runs, or, by the method “anytime”, by bets that were each fixed before its run." in page
    assert "chosen on pilot runs, does not pass" not in page
    assert "fresh runs" not in markdown(early)


def test_a_figure_says_how_often_a_perfect_attack_would_decide(seen):
    captions = [f["caption"] for claim in seen["falsified"] for f in claim["figures"]]
    assert any("nine times in ten" in caption for caption in captions)


def test_who_is_untested_is_counted_as_underpowered(record):
    claim = next(c for c in record["claims"] if c["verdict"] == "SURVIVED")
    low = {"verdict": "UNDERPOWERED", "reason": "low power", "untested": True}
    record["claims"] = [claim | low, claim, claim | {"verdict": "UNDERPOWERED", "reason": "too few runs"}]
    assert "1 survived, 2 underpowered" in click.unstyle(run_lines(record))
    assert "| ? underpowered (low power) |" in markdown(record)
    assert "| ? underpowered (too few runs) |" in markdown(record)
    assert "<small>too few runs</small>" in render(record)


@pytest.mark.parametrize(("pilot", "said"), [(390, True), (120, False)])
def test_an_undecided_claim_says_where_most_of_its_runs_went(record, pilot, said):
    """With 10 runs left of 400 the attack was said to have had too few."""
    counts = {**record["claims"][0]["counts"], "runs": 400 - pilot}
    claim = record["claims"][0] | {"verdict": "UNDERPOWERED", "pilot_runs": pilot, "runs": 400, "counts": counts}
    spent = "this audit had 10, as choosing the inputs took 390"
    assert (spent in " ".join(claim_lines(claim).split())) is said
