"""Rounds of a learner as data: what is read, and which sequences are neighbours."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from overclaim.audit.play.data import key_of
from overclaim.audit.play.rounds import Game, RoundRelation, as_sequence, differing, shows_nothing
from overclaim.audit.spaces.drawing import draw
from overclaim.audit.spaces.neighbours import neighbours
from overclaim.audit.spaces.related import space_of
from overclaim.audit.spaces.sequences import examples_of, sequences_of
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.relations import Distance, Relation
from overclaim.mechanisms.relations.relation import neighbours_words

GAME = Game(arms=2, rounds=6, losses="unit", radius=1.0, contexts=False)
WITH_CONTEXTS = Game(arms=2, rounds=6, losses="unit", radius=1.0, contexts=True)
UNIT = st.floats(0, 1)
LOSSES = st.lists(UNIT, min_size=2, max_size=2)
SEQUENCES = st.lists(LOSSES, min_size=1, max_size=6)
VISITS = st.lists(
    st.fixed_dictionaries({"user": st.sampled_from("abc"), "context": st.integers(0, 3), "losses": LOSSES}),
    min_size=1,
    max_size=6,
)
RELATIONS = ["replace", "replace-losses", "zero-out", "user", "user-losses", "user:2", "user-losses:3"]
RELATIONS += ["replace:2", "replace-user", "zero-out-user", "l1:0.5", "l2:0.5", "linf:0.25"]


@pytest.mark.parametrize(
    ("data", "read"),
    [
        ([[1, 0.5], (0, 1)], [[1.0, 0.5], [0.0, 1.0]]),
        (np.array([[1, 0], [0, 1]]), [[1.0, 0.0], [0.0, 1.0]]),
        ([0.5, 1], [[0.5], [1.0]]),
        ([{"losses": np.array([1, 0]), "user": "ann"}], [{"user": "ann", "losses": [1.0, 0.0]}]),
        ([{"loss": "quadratic", "centre": [0.0]}], [{"loss": "quadratic", "centre": [0.0]}]),
    ],
)
def test_rounds_are_read(data, read):
    assert as_sequence(data) == read


def test_the_sign_of_zero_is_kept():
    assert differing(as_sequence([[-0.0, 1.0]]), as_sequence([[0.0, 1.0]])) == [0]


FLAT = {"loss": "linear", "slope": [0.0, 0.0]}
SWITCH = {"loss": "switch", "below": FLAT, "above": FLAT}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "sequences of at least one round, got []"),
        (7, "sequences of at least one round, got 7"),
        ([[0, 0], "x"], "round 2 of an input must be a loss vector, a convex loss or .* got 'x'"),
        ([[[0, 0]]], "round 1 of an input must be a loss vector"),
        ([{"losses": [0, 0], "weight": 1}], "round 1 of an input has user, context, arms, losses, got 'weight'"),
        ([[0, 0, 0]], "the loss of round 1 has length 3, but the learner has 2 arms"),
        ([[0, 0], [0, 1.5]], r"the loss of round 2 must lie in \[0, 1\] \(unit\), got 1.5"),
        ([[0, float("nan")]], "the loss of round 1 must be finite"),
        ([[0, 0]] * 7, "7 rounds, but the horizon is 6\nhint: give `rounds=7`"),
        ([{"losses": [0, 0], "context": 1}], "round 1 has a context, and the learner has no method observe"),
        ([{"loss": "quadratic", "curvature": 9.0, "centre": [0.0, 0.0]}], "gradient|Lipschitz"),
        ([SWITCH], "cannot be told: a loss that depends on past actions can be given in a pair alone"),
        ([{"loss": "linear", "slope": [0.0]}], "sequence of rounds, cannot be told: the loss of round 1 has length 1"),
    ],
)
def test_what_no_learner_can_be_told_is_said_in_one_line(data, message):
    with pytest.raises(ValueError, match=message.replace("[]", r"\[\]")) as error:
        GAME.read(data)
    assert "\n" not in str(error.value)


@pytest.fixture
def few(monkeypatch):
    """As many sequences as a test of what is allowed needs; searches look for odd numbers among more."""
    monkeypatch.setattr("overclaim.audit.spaces.sequences.SEQUENCES", 100)


@pytest.mark.few(2)
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("relation", RELATIONS)
def test_all_pairs_of_a_search_are_neighbours_and_allowed(relation):
    labelled = Relation.parse(relation).of_users and ":" not in relation
    strategy = VISITS if labelled or "losses" in relation else SEQUENCES
    game = WITH_CONTEXTS if strategy is VISITS else GAME
    known = RoundRelation(Relation.parse(relation))
    inputs = neighbours(strategy, relation)
    space = sequences_of(inputs, game, known, 1, examples_of(inputs, 1))
    cases = space.first(40)
    assert len(cases) > 20
    rng = np.random.default_rng(2)
    for case in cases[:20]:
        for _ in range(4):
            changed = space.changed(case, rng)
            if changed is not None:
                cases.append(case := changed)
    cases += [simpler for case in cases[:8] for simpler in space.simpler(case)]
    drawn = {key_of(number) for base in space.bases for number in _numbers(base)} | {key_of(0.0)}
    for case in cases:
        known.check(case.left, case.right)
        for side in (case.left, case.right):
            assert game.read(side) == side
            assert isinstance(known.relation, Distance) or {key_of(number) for number in _numbers(side)} <= drawn
    most = max(len(differing(case.left, case.right)) for case in cases)
    assert most == {"user:2": 2, "user-losses:3": 3, "replace:2": 2}.get(relation, most if labelled else 1)
    assert not labelled or most > 1
    assert not any(len(case.left) > 1 and shows_nothing(case.left, case.right) for case in cases)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("relation", ["user:2", "user-losses:3", "zero-out-user"])
def test_a_change_of_a_second_user_is_dropped(relation, monkeypatch):
    """Planted: whatever a search puts into a round, it changes a round of another user in the right input too."""
    inputs = neighbours(VISITS, relation)
    known = RoundRelation(Relation.parse(relation))
    space = sequences_of(inputs, WITH_CONTEXTS, known, 1, examples_of(inputs, 1))
    case, rng, refused, put = space.first(1)[0], np.random.default_rng(2), [], space._case

    def with_a_second_user(left, right):
        own = {left[t]["user"] for t in differing(left, right)}
        others = [t for t, round_ in enumerate(left) if own and round_["user"] not in own]
        changed = [dict(round_, losses=[0.25, 0.75]) if t in others[:1] else round_ for t, round_ in enumerate(right)]
        refused.append(bool(others))
        return put(left, changed)

    monkeypatch.setattr(space, "_case", with_a_second_user)
    changes = [space.changed(case, rng) for _ in range(4)]
    for pair in [*filter(None, changes), *space.simpler(case)]:
        known.check(pair.left, pair.right)
    assert sum(refused) > 10


@pytest.mark.usefixtures("few")
def test_the_last_losses_alone_differ_where_they_are_published():
    inputs = neighbours(SEQUENCES, "zero-out")
    published = replace(GAME, publication=True)
    space = sequences_of(inputs, published, RoundRelation(Relation.parse("zero-out")), 1, examples_of(inputs, 1))
    assert any(len(case.left) > 1 and shows_nothing(case.left, case.right) for case in space.first(20))


def test_what_comes_after_the_last_action_shows_nothing():
    first, last = [[0, 1], [0, 1]], {"context": "b", "losses": [1, 0]}
    assert shows_nothing(first, [[0, 1], [1, 0]])
    assert shows_nothing([[0, 1]], np.array([[1, 0]]))
    assert not shows_nothing(first, [[1, 0], [0, 1]])
    assert not shows_nothing(first, [[1, 0], [1, 0]])
    assert shows_nothing([[0, 1], {**last, "losses": [0, 1]}], [[0, 1], last])
    assert not shows_nothing([[0, 1], {**last, "context": "a"}], [[0, 1], last])


def _numbers(sequence):
    return [x for round_ in sequence for x in (round_["losses"] if isinstance(round_, dict) else round_)]


# Whether numbers are a learner's rounds is not told by them: those of a distance are moved together.
@pytest.mark.few(3)
@pytest.mark.parametrize("relation", [name for name in RELATIONS if not name.startswith("l")])
def test_pairs_that_are_drawn_are_neighbours(relation):
    strategy = VISITS if "user" in relation or "losses" in relation else SEQUENCES
    for left, right in draw(neighbours(strategy, relation), 30, seed=0):
        RoundRelation(Relation.parse(relation)).check(as_sequence(left), as_sequence(right))


A, B, C = [0.0, 0.0], [1.0, 1.0], [0.5, 0.5]


def visit(user, losses, context=0):
    return {"user": user, "context": context, "losses": losses}


@pytest.mark.parametrize(
    ("relation", "left", "right", "why"),
    [
        ("replace", [A, A], [B], "as many rounds, got 2 and 1"),
        ("replace", [A, A], [A, A], "no neighbours by replace: no round differs"),
        ("replace", [A, A], [B, B], "no neighbours by replace: they differ in rounds 1, 2"),
        ("user:2", [A, A, A], [B, B, B], "by user:2: they differ in rounds 1, 2, 3"),
        ("zero-out", [B, A], [C, A], "one loss of round 1 must be 0"),
        ("replace-losses", [visit("a", A, 0)], [visit("a", B, 1)], "their contexts differ"),
        ("user", [visit("a", A), visit("b", A)], [visit("a", B), visit("b", B)], "several users differ: 1, 2"),
        ("user", [visit("a", A)], [visit("b", B)], "another user in the other input"),
        ("user", [A], [B], "rounds that say whose they are"),
        ("user:1", [A, A], [B, B], "they differ in rounds 1, 2, more than 1"),
        ("user:2", [visit("a", A), visit("b", A)], [visit("a", B), visit("b", B)], "several users differ: 1, 2"),
        ("replace", [visit("a", A)], [visit("b", B)], "another user in the other input"),
        ("replace", [{"losses": A}], [visit("a", B)], "another user in the other input"),
        ("replace", [{"losses": A}], [{"losses": B, "context": 1}], "a context in one world alone"),
        ("replace", [A], [{"losses": A}], "no round differs"),
        ("zero-out", [visit("a", B, 0)], [visit("a", A, 1)], "their contexts differ"),
        ("zero-out", [{"losses": B, "arms": [0, 1]}], [{"losses": A, "arms": [1, 2]}], "their arms differ"),
        ("zero-out", [{"losses": B}], [{"losses": [0.0]}], "one loss of round 1 must be 0"),
        ("zero-out-user", [visit("a", B), visit("a", B)], [visit("a", A), visit("a", B)], "round 1, 2 must be 0"),
        ("zero-out-user:2", [B, C], [A, B], "one loss of round 1, 2 must be 0"),
        ("replace-user", [visit("a", A), visit("b", A)], [visit("a", B), visit("b", B)], "several users differ: 1, 2"),
        ("user-losses", [visit("a", A, 0)], [visit("a", B, 1)], "their contexts differ"),
        ("l1:0.5", [A], [B], "their distance is 2"),
        ("l1:2", [[0.0, 0.0]], [[0.0, 0.0, 1.0]], "they differ in more than their numbers"),
        ("l1:2", [A, A], [B, B], "they differ in rounds 1, 2"),
        ("linf:1", [visit("a", A, 0)], [visit("a", B, 1)], "their contexts differ"),
    ],
)
def test_worlds_that_are_no_neighbours_are_refused(relation, left, right, why):
    with pytest.raises(ValueError, match=why):
        RoundRelation(Relation.parse(relation)).check(left, right)


def test_a_user_may_have_rounds_that_do_not_differ():
    RoundRelation(Relation.parse("user")).check([visit("a", A), visit("a", B)], [visit("a", C), visit("a", B)])
    RoundRelation(Relation.parse("user:3")).check([A, A, B], [B, A, A])
    RoundRelation(Relation.parse("zero-out-user")).check(
        [visit("a", B), visit("a", A)], [visit("a", A), visit("a", A)]
    )
    RoundRelation(Relation.parse("replace")).check([A], [{"losses": B}])


@pytest.mark.parametrize("relation", ["add-remove", "substitute-feature", "user:0", "user:", "l2", "users"])
def test_relations_that_cannot_apply_to_rounds(relation):
    with pytest.raises(
        ValueError, match=r"add-remove cannot apply|must be one of|user:K with a whole|l2:D with a distance"
    ):
        RoundRelation(Relation.parse(relation))


def test_a_mechanism_has_no_rounds():
    with pytest.raises(ValueError, match="user:3 is a relation of a learner's rounds, and a mechanism has none"):
        space_of(neighbours(SEQUENCES, "user", rounds_per_user=3), 0)


@pytest.mark.parametrize(("relation", "rounds"), [("replace", 3), ("user", 0), ("user", 1.5), (len, 2)])
def test_rounds_per_user_is_of_users(relation, rounds):
    with pytest.raises(ValueError, match="rounds_per_user must be a whole number of at least 1, for the relations"):
        neighbours(SEQUENCES, relation, rounds_per_user=rounds)


@pytest.mark.usefixtures("few")
def test_where_holds_for_every_pair():
    first_is_zero = neighbours(SEQUENCES, "replace", where=lambda rounds: rounds[0][0] == 0.0)
    space = sequences_of(
        first_is_zero, GAME, RoundRelation(Relation.parse("replace")), 0, examples_of(first_is_zero, 0)
    )
    assert all(side[0][0] == 0.0 for case in space.first(20) for side in (case.left, case.right))


def test_a_claim_says_which_rounds_it_is_about():
    assert neighbours_words(Claim(epsilon=1.0, neighbours="user:3").neighbours) == (
        "user: up to 3 rounds of one user replaced"
    )
    assert Relation.parse("user-losses:12").limit == 12
    for wrong in ("user:03", "user:٣", "zero-out:2", "function"):
        with pytest.raises(ValueError, match=re.escape(f"got {wrong!r}")):
            Claim(epsilon=1.0, neighbours=wrong)
