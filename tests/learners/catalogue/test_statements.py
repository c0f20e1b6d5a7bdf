"""Whose claims they are: standings, quotations, and the headline that counts statements."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import norm

from overclaim.audit.assumptions.declared_laws import check_stated
from overclaim.audit.laws.exact import NotExactError, exact_epsilon
from overclaim.audit.plans.plan import literature
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import play
from overclaim.learners.catalogue.entries import entries, lookup
from overclaim.learners.entry import PUBLISHED, Case, Setting
from overclaim.learners.problems.losses import Linear
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.statement import Statement
from overclaim.mechanisms.view import PUBLICATION, RELEASE, VIEWS
from overclaim.reports.command_line.cli import main
from overclaim.reports.formats.html import render
from overclaim.reports.formats.markdown import render as markdown
from overclaim.reports.formats.run_lines import run_lines
from overclaim.reports.headline import beside_words, headline, headline_words
from overclaim.reports.record_schema import fault
from overclaim.tests.support.command_line import refused

ROOT = Path(__file__).resolve().parents[3]
QUOTED = Statement(source="A 2000, Theorem 1", text="It is private.", where="Theorem 1")
FALSE = Statement(
    source="A 2000, Theorem 2", text="So is it.", where="Theorem 2", false="It is not.", answer="Yes.", repair="Noise."
)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"standing": "fact"}, "one of theorem, proof, computed, reading, variant, control; got 'fact'"),
        ({"standing": "computed", "expected": "survived"}, "a computed must be quoted"),
        (
            {"standing": "computed", "expected": "survived", "statement": QUOTED},
            "A 2000, Theorem 1 is called false without what its authors",
        ),
        ({"standing": "control", "expected": "false"}, "expected must be one of falsified, survived; got 'false'"),
        ({"standing": "theorem"}, "a theorem must be quoted"),
        ({"standing": "proof", "expected": "survived"}, "a proof must be quoted"),
        ({"standing": "theorem", "statement": QUOTED}, "A 2000, Theorem 1 is called false without what its authors"),
        ({"standing": "reading"}, "a falsified reading must have a note that says which"),
        ({"standing": "variant"}, "a falsified variant must have a note that says which"),
    ],
)
def test_a_case_says_whose_claim_it_is(fields, message):
    with pytest.raises(ValueError, match=message):
        Case(**{"expected": "falsified", **fields})
    Case(expected="falsified", standing="theorem", statement=FALSE)
    Case(expected="survived", standing="theorem", statement=QUOTED)


def test_an_answer_says_nothing_that_an_exact_law_refutes():
    """`it holds for losses in [0, 1]` stood beside such losses in the L1 ball, where it does not."""
    entry = lookup("agarwal-singh/ftrl-cube")
    left, right = np.zeros((4, 2)), np.zeros((4, 2))
    left[0, 0] = right[0, 1] = 1.0
    law = exact_epsilon(entry.build(entry.setting()), Pair(left, right), view=RELEASE, deltas=[0.0])
    assert law[0.0] == pytest.approx(2.0)
    whole = entry.build(entry.setting(losses="unit"))
    worst = max(
        exact_epsilon(whole, Pair([a, *left[1:]], [b, *left[1:]]), view=RELEASE, deltas=[0.0])[0.0]
        for a, b in product(product((0.0, 1.0), repeat=2), repeat=2)
        if a != b
    )
    assert worst == pytest.approx(1.0)
    answers = {case.statement.answer for case in entry.cases if case.statement}
    assert len(answers) == 3
    for answer in answers:
        assert "Y = [0, 1]^N" in answer
        assert "losses in [0, 1]" not in answer


def test_every_algorithm_is_audited_as_published():
    """PrivateBandit with Gaussian noise was with mended noise alone."""
    for entry in entries().values():
        assert "as_published" in {case.calibration for case in entry.cases}, entry.name


def test_a_statement_is_quoted_with_its_place_and_never_called_false_without_an_answer():
    with pytest.raises(ValueError, match="must have a where"):
        Statement(source="A", text="It is private.", where=" ")
    with pytest.raises(ValueError, match="must be given together"):
        Statement(source="A", text="It is private.", where="Theorem 1", false="It is not.")


def test_every_audit_of_the_literature_is_the_case_that_it_was_made_from():
    """So a replayed command, or a plan of a user's with the same settings, says whose claim it is too."""
    cases = [case for entry in entries().values() for case in entry.cases]
    for case, task in zip(cases, literature().tasks, strict=True):
        prepared = task.prepare()
        assert prepared.case is case, task.command()
        assert prepared.claim.source == (case.statement.source if case.statement else entries()[task.target].source)


def test_another_setting_than_a_case_has_no_standing():
    task = next(t for t in literature().tasks if t.target == "agarwal-singh/reduction-threshold")
    assert task.prepare().case is not None
    for change in ({"epsilon": 0.9}, {"rounds": 3}, {"neighbours": "zero-out", "losses": "unit"}):
        assert type(task)(**{**vars(task), **change}).prepare().case is None


def test_no_statement_is_called_false_by_a_case_on_losses_or_neighbours_that_it_does_not_cover():
    """Every paper replaces a round's loss; Asi et al. take losses from [0, 1]."""
    for entry in entries().values():
        for case in entry.cases:
            if case.standing in PUBLISHED and case.expected == "falsified":
                assert case.calibration == "as_published"
                losses = case.losses or entry.losses
                assert not (entry.name.startswith("asi-raman-talwar") and losses != "unit"), entry.name


def claim(verdict, standing, source="A 2000, Theorem 2"):
    return {
        "name": "authors/algorithm",
        "claimed": {"epsilon": 1.0, "delta": 0.0},
        "verdict": verdict,
        "epsilon_lower": 1.5,
        "standing": standing,
        "source": source,
        "surface": "actions",
        "neighbours": "replace",
        "exact_epsilon": None,
        "replay": "",
    }


@pytest.mark.parametrize("name", [name for name, entry in entries().items() if entry.regret])
def test_a_bound_on_regret_names_its_paper_first(name):
    """A report has the bounds of all papers in one table: a lemma behind another paper's theorem is that one's."""
    entry = entries()[name]
    assert entry.regret.source.startswith(entry.source.split(",")[0])


def test_the_headline_counts_statements_not_claims():
    claims = [
        claim("FALSIFIED", "theorem"),
        claim("FALSIFIED", "theorem"),
        claim("FALSIFIED", "theorem", "A 2000, Theorem 3"),
        claim("SURVIVED", "theorem", "A 2000, Theorem 4"),
        claim("FALSIFIED", "proof", "A 2000, proof of Theorem 2"),
        claim("FALSIFIED", "reading"),
        claim("FALSIFIED", "reading"),
        claim("FALSIFIED", "control"),
        claim("SURVIVED", "variant"),
        claim("FALSIFIED", None),
    ]
    counts = headline(claims)
    printed = {"theorem": 2, "proof": 1, "reading": 2, "variant": 0, "control": 1, "claims": 1}
    assert {name: counts[name] for name in printed} == printed
    record = {"claims": claims, "headline": counts, "alpha": 0.01, "overclaim": "0", "seed": 0, "errors": []}
    assert fault(record) is None
    sentence = "2 published statements are false (and 1 step of proofs)."
    beside = "Falsified beside them, and not counted: 2 readings, 1 control and 1 claim of no standing."
    assert (headline_words(record), beside_words(claims)) == (sentence, beside)
    assert sentence in run_lines(record)
    assert sentence in markdown(record)
    assert f"<p>{sentence}</p>" in render(record)
    assert beside in render(record)


@pytest.mark.parametrize(
    ("claims", "words", "beside"),
    [
        ("+theorem -reading", "No published statement was falsified.", "1 reading"),
        ("-theorem", "1 published statement is false.", ""),
        ("-proof", "No published statement was falsified, but 1 step of proofs is false.", ""),
        ("+theorem -own", "No published statement was falsified.", "1 claim of no standing"),
        ("-theorem -documented", "1 published statement is false.", "1 documented claim of libraries"),
        ("-theorem -own -own", "1 published statement is false.", "2 claims of no standing"),
        ("-own +own", "1 of 2 privacy claims is false.", ""),
        ("-own -own +own -control", "2 of 3 privacy claims are false.", "1 control"),
        ("+own -reading", "None of 1 privacy claim was falsified.", "1 reading"),
        ("+own +own -variant", "None of 2 privacy claims was falsified.", "1 variant"),
        ("-control -reading -reading", "No published statement was audited; falsified: 2 readings and 1 control.", ""),
        ("-documented", "1 documented claim of libraries is false.", ""),
        ("-documented -own", "1 documented claim of libraries is false.", "1 claim of no standing"),
        ("+documented -reading", "No documented claim of a library was falsified.", "1 reading"),
        ("+documented +own", "No privacy claim was falsified; 2 of 2 survived.", ""),
    ],
)
def test_the_headline_counts_one_kind_of_claim_and_names_the_others_beside_it(claims, words, beside):
    audited = [
        claim("FALSIFIED" if word[0] == "-" else "SURVIVED", None if word[1:] == "own" else word[1:])
        for word in claims.split()
    ]
    assert headline_words({"claims": audited}) == words
    assert beside_words(audited) == (f"Falsified beside them, and not counted: {beside}." if beside else "")


@pytest.mark.parametrize(
    ("untested", "words"),
    [
        ((False, False), "No privacy claim was falsified; 2 of 2 survived."),
        ((True, False), "No privacy claim was falsified; 1 of 2 survived, 1 underpowered."),
        ((True, True), "No privacy claim could be tested: all audits are underpowered."),
    ],
)
def test_the_headline_of_what_survived_says_what_was_not_tested(untested, words):
    """The page of a plan whose every audit caught nothing had the headline of one that was tested."""
    audited = [{**claim("UNDERPOWERED" if hollow else "SURVIVED", None), "untested": hollow} for hollow in untested]
    assert headline_words({"claims": audited}) == words


@pytest.mark.slow(reason="three audits")
def test_check_says_whose_claim_it_is_and_what_the_authors_could_answer():
    done = CliRunner().invoke(main, ["check", "agarwal-singh/reduction-threshold", "--runs", "4000", "-v"])
    assert done.exit_code == 1, done.output
    for words in ("Claimed by  Agarwal & Singh 2017, Lemma 4.2", '  Quotation   "', "  Defence     "):
        assert words in done.output
    done = CliRunner().invoke(main, ["check", "agarwal-singh/reduction-threshold", "--runs", "4000", "--json"])
    printed = json.loads(done.stdout)
    assert printed["standing"] == "theorem"
    assert printed["quotation"]["where"].startswith("Lemma 4.2")
    assert printed["answer"]
    done = CliRunner().invoke(main, ["check", "asi-raman-talwar/exp3", "--runs", "2000", "--json"])
    assert json.loads(done.stdout)["quotation"] is None


def test_list_shows_the_standing_of_every_case():
    rows = json.loads(CliRunner().invoke(main, ["list", "--json"]).stdout)
    for row in rows:
        if row["name"] in entries():
            assert len(row["cases"]) == len(entries()[row["name"]].cases)
            assert all(
                case["standing"] and (case["quotation"] or case["standing"] not in PUBLISHED) for case in row["cases"]
            )


def exact(target, pair, surface, **settings):
    own = {
        name: settings.pop(name)
        for name in ("noise_delta", "theorem", "base", "whole", "radius", "noise")
        if name in settings
    }
    entry, delta = lookup(target), settings.get("delta", 0.0)
    learner = entry.build(entry.setting(**{"rounds": len(pair[0]), **settings}), **own)
    return exact_epsilon(learner, Pair(*pair), view=VIEWS[surface], deltas=(delta,))[delta]


EXPERTS = [[1, -1], [1, -1]], [[-1, 1], [1, -1]]
UP, DOWN, ZERO = [[1], [0]], [[-1], [0]], [[0], [0]]
FOUR = [[1], [0], [0], [0]], [[-1], [0], [0], [0]]
CONVEX = [Linear(slope=[1.0]), *[Linear(slope=[0.0])] * 3], [Linear(slope=[-1.0]), *[Linear(slope=[0.0])] * 3]
PURE = {"noise_delta": 0.5, "delta": 0.0}
MENDED = {"calibration": "corrected"}
CUBE, TREE = "agarwal-singh/ftrl-cube", "ene-nguyen-vladu/tree-aggregation"


@pytest.mark.parametrize(
    ("epsilon", "target", "pair", "surface", "settings"),
    [
        # Theorem 3.5: ln(Phi(2 / (sqrt 2 sigma)) / Phi(-2 / (sqrt 2 sigma))), sigma^2 = 2 * 2 / sqrt 2, or over ln 2.
        (1.38503, "agarwal-singh/ftpl-simplex", EXPERTS, "actions", PURE),
        (1.38503, "agarwal-singh/ftpl-simplex", EXPERTS, "actions", {**PURE, "base": "2"}),
        (1.14210, "agarwal-singh/ftpl-simplex", EXPERTS, "actions", {**PURE, "base": "e"}),
        (0.74337, "agarwal-singh/ftpl-simplex", EXPERTS, "actions", {**PURE, "base": "10"}),
        (0.80697, "agarwal-singh/ftpl-simplex", EXPERTS, "actions", {**PURE, "base": "2", "epsilon": 0.5}),
        (1.14210, "agarwal-singh/ftpl-simplex", EXPERTS, "actions", {**PURE, "base": "e", "epsilon": 0.5}),
        (0.74337, "agarwal-singh/ftpl-simplex", EXPERTS, "actions", {**PURE, "base": "10", "epsilon": 0.5}),
        # Lemma 3.3 whole: two nodes hold round 1 of two, and one is paid for.
        (4.0, CUBE, (UP, DOWN), "publication", {"arms": 1}),
        (2.0, CUBE, (UP, ZERO), "publication", {"arms": 1}),
        (2.0, CUBE, (UP, DOWN), "release", {"arms": 1}),
        (1.0, CUBE, (UP, DOWN), "publication", {"arms": 1, "calibration": "corrected", "whole": True}),
        (2.0, CUBE, ([[0], [1]], [[0], [-1]]), "publication", {"arms": 1}),  # round 2 is in the root alone
        (0.0, CUBE, ([[0], [1]], [[0], [-1]]), "release", {"arms": 1}),
        (4.0, TREE, (UP, DOWN), "publication", {}),
        (2.0, TREE, (UP, ZERO), "publication", {}),
        (5.739846, TREE, (UP, DOWN), "publication", {"noise": "gaussian", "epsilon": 3.0, "delta": 0.1}),
        # Without the root, which round 1 of the first of two reaches too: the release.
        (3.208834, TREE, (UP, DOWN), "release", {"noise": "gaussian", "epsilon": 3.0, "delta": 0.1}),
        (15.10892, TREE, (UP, ZERO), "release", {"noise": "gaussian", "epsilon": 15.0, "delta": 0.1}),
        (3.0, TREE, FOUR, "publication", {}),
        (2.0, TREE, FOUR, "release", {}),
        # Section 2.1's nodes: log2 T + 1 of them, each (epsilon / log2 T)-private.
        (2.0, "smith-thakurta/tree-aggregation", (UP, DOWN), "publication", {}),
        (1.5, "smith-thakurta/tree-aggregation", FOUR, "publication", {}),
        (1.0, "smith-thakurta/tree-aggregation", FOUR, "publication", MENDED),
        (2.0, TREE, (UP, DOWN), "publication", {**MENDED, "noise": "gaussian", "epsilon": 2.0, "delta": 0.1}),
        # At T = 3 there is no root: with the ceiling the whole sequence has 2 epsilon, printed 2 * 2 / log2 3.
        (4 / np.log2(3), CUBE, ([[1], [0], [0]], [[-1], [0], [0]]), "publication", {"arms": 1}),
        # Smith & Thakurta's whole sequence of sums, T = 4: three nodes of three, each moved by 2 L; H is 1e-5.
        (2.0, "smith-thakurta/pftal", CONVEX, "publication", {}),
        (4 / 3, "smith-thakurta/pftal", CONVEX, "release", {}),
        # Theorem 11's H = sqrt(2^2.5 / 4) on a ball of radius 0.1.
        (
            4 / 3 / (1 + 0.1 * np.sqrt(2**2.5 / 4)),
            "smith-thakurta/pftal-lipschitz",
            CONVEX,
            "release",
            {"radius": 0.1},
        ),
    ],
)
def test_what_is_false_has_the_stated_size(epsilon, target, pair, surface, settings):
    assert exact(target, pair, surface, **settings) == pytest.approx(epsilon, abs=2e-5)


def test_theorem_a_1_needs_more_noise_where_epsilon_is_large():
    """Two nodes move by 2 sqrt 2 each, sigma = sqrt 2 log2(1 / 0.1) / 2; held against the formula of Gaussian DP."""
    both = [[1, 1], [0, 0]], [[-1, -1], [0, 0]]
    epsilon = exact("agarwal-singh/ftpl-simplex", both, "publication", epsilon=2.0, delta=0.1, theorem="A.1", base="2")
    assert epsilon == pytest.approx(2.906, abs=1e-3)
    mu = 4 / (np.log2(10) / 2 * np.sqrt(2))
    delta = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert delta == pytest.approx(0.1, abs=1e-6)


def test_each_theorem_has_its_own_sigma_on_the_ball_and_the_cube():
    for name in ("ball", "cube"):
        entry = lookup(f"agarwal-singh/ftpl-{name}")
        setting = entry.setting(rounds=4, arms=2)
        pure, least = (entry.build(setting, theorem=theorem).noise.sigma for theorem in ("3.5", "A.1"))
        assert pure == pytest.approx(np.sqrt(2) * least)
        assert least == pytest.approx(2 * np.log(2 / 0.01))
        with pytest.raises(ValueError, match=r"theorem must be 3\.5 or A\.1, got 'B'"):
            entry.build(setting, theorem="B")
        with pytest.raises(ValueError, match="base must be one of mixed, 2, e, 10; got '16'"):
            entry.build(setting, base="16")


def test_only_what_is_published_whole_can_be_audited_whole():
    refused(
        CliRunner().invoke(main, ["check", "asi-raman-talwar/batched-exp3", "--surface", "publication"]),
        "BatchedLaplace publishes nothing",
    )
    with pytest.raises(NotExactError, match="publishes nothing"):
        exact_epsilon(
            lookup("asi-raman-talwar/batched-exp3").build(Setting(rounds=2)), Pair(UP, DOWN), view=PUBLICATION
        )


def test_a_publication_has_the_noise_that_it_states_in_every_round():
    """The node that ends in round T too: 20,000 runs of four rounds; false-alarm probability 1e-9 (audit's own)."""
    entry = lookup("agarwal-singh/ftrl-ball")
    setting = entry.setting(rounds=4, arms=2)
    learner, pair = entry.build(setting), Pair([[1, 0]] * 4, [[0, 1]] + [[1, 0]] * 3)
    assert play(learner, pair, Draws(3), 10, view=PUBLICATION).releases.shape == (4, 2, 10)
    assert play(learner, pair, Draws(3), 10, view=RELEASE).releases.shape == (3, 2, 10)
    assert check_stated(learner, pair, 0, view=PUBLICATION)


def test_the_advice_of_a_round_tells_through_that_rounds_own_action():
    entry = lookup("asi-raman-talwar/agreed-advice")
    pair = Pair([[1, 0], [0, 0]], [[0, 1], [0, 0]])
    assert exact_epsilon(entry.build(entry.setting()), pair, deltas=(0.0,))[0.0] == np.inf
    learner, draws = entry.build(entry.setting(arms=3)), Draws(0)
    state = learner.start(5, draws)
    assert learner.probabilities(state) == pytest.approx(np.full((3, 5), 1 / 3))
    learner.update(state, learner.act(state, draws), np.array([[0.5], [0.25], [0.25]]), draws)
    assert learner.probabilities(state)[:, 0] == pytest.approx([0.5, 0.25, 0.25])
    learner.update(state, learner.act(state, draws), np.zeros((3, 1)), draws)  # nobody advises anything
    assert learner.probabilities(state) == pytest.approx(np.full((3, 5), 1 / 3))


def test_the_page_of_findings_has_every_published_statement_that_is_false():
    """In the words of the catalogue; a sentence of answers that several statements share stands there once."""
    page = " ".join((ROOT / "docs" / "findings.md").read_text(encoding="utf-8").replace("> ", "").split())
    cases = [case for entry in entries().values() for case in entry.cases]
    false = {case.statement for case in cases if case.standing == "theorem" and case.expected == "falsified"}
    steps = {case.statement for case in cases if case.standing == "proof" and case.expected == "falsified"}
    computed = {case.statement for case in cases if case.standing == "computed"}
    sources = [len({said.source for said in group}) for group in (false, steps, computed)]
    assert sources == [9, 4, 1]  # as the page says
    for said in false | steps | computed:
        for words in (
            said.source,
            said.text,
            said.where,
            said.false,
            said.repair,
            *re.split(r"(?<=\.) ", said.answer),
        ):
            assert " ".join(words.split()) in page, words


@pytest.mark.parametrize(
    ("relations", "words"),
    [
        ("user user:3", "2 of 2 privacy claims are false, at the level of users."),
        ("user-losses replace", "2 of 2 privacy claims are false, 1 of them at the level of users."),
        ("replace-losses zero-out", "2 of 2 privacy claims are false."),
    ],
)
def test_the_headline_tells_claims_about_users_from_those_about_rounds(relations, words):
    audited = [{**claim("FALSIFIED", None), "neighbours": relation} for relation in relations.split()]
    assert headline_words({"claims": audited}) == words
