"""Neighbours of data by the relations of several records, users, zeros and distances: drawn, searched, and given."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import strategies as st

from overclaim.audit.play.data import to_json
from overclaim.audit.spaces.changes import Changes, check_near
from overclaim.audit.spaces.drawing import draw
from overclaim.audit.spaces.neighbours import neighbours
from overclaim.audit.spaces.records import zeroed
from overclaim.audit.spaces.related import space_of
from overclaim.mechanisms.relations.relation import (
    Relation,
    RelationError,
    is_relation,
    neighbours_words,
    relation_names,
)

pd = pytest.importorskip("pandas")
UNIT = st.floats(0, 1)
VECTORS = st.lists(UNIT, min_size=4, max_size=4)
NORMS = {"l1": 1, "l2": 2, "linf": np.inf}
WHOLE = st.lists(st.integers(0, 9), min_size=3, max_size=3)
ROW = st.fixed_dictionaries({"user": st.sampled_from("ab"), "amount": st.floats(-2, 2)})
ROWS = st.lists(ROW, min_size=1, max_size=6)
TUPLES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), min_size=1, max_size=5)
FRAMES = ROWS.map(pd.DataFrame)
CASES = [
    ("replace:3", VECTORS),
    ("add-remove:3", st.lists(UNIT, min_size=1, max_size=6)),
    ("zero-out", VECTORS),
    ("zero-out", st.lists(st.fixed_dictionaries({"name": st.text(max_size=3), "age": st.integers(0, 9)}), min_size=1)),
    ("l1:0.5", VECTORS),
    ("l2:0.5", VECTORS),
    ("linf:0.25", VECTORS),
    ("linf:1", WHOLE),
    ("l2:1.5", WHOLE),
    ("linf:0.1", st.tuples(UNIT, UNIT).map(np.array)),
    ("replace-user", ROWS),
    ("zero-out-user", ROWS),
    ("zero-out-user", TUPLES),
    ("replace-user", TUPLES),
    ("replace-user", FRAMES),
    ("user", ROWS),
    ("user", FRAMES),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("relation", "strategy"), CASES)
def test_all_pairs_that_are_drawn_or_searched_are_neighbours(relation, strategy):
    known = Relation.parse(relation)
    inputs = neighbours(strategy, relation)
    for left, right in draw(inputs, 15, seed=0):
        check_near(known, left, right)
    space = space_of(inputs, 1)
    cases, rng = space.first(25), np.random.default_rng(2)
    assert len(cases) > 10
    cases += [changed for case in cases for changed in [space.changed(case, rng)] if changed is not None]
    cases += [simpler for case in cases[:4] for simpler in space.simpler(case)]
    for case in cases:
        check_near(known, case.left, case.right)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("relation", "strategy", "far"),
    [("l1:0.5", VECTORS, 0.5), ("l2:0.5", VECTORS, 0.5), ("linf:0.25", VECTORS, 0.25), ("l2:1.5", WHOLE, 2**0.5)],
)
def test_most_pairs_are_at_the_largest_distance(relation, strategy, far):
    norm = NORMS[relation.partition(":")[0]]
    cases = space_of(neighbours(strategy, relation), 1).first(40)
    distances = [np.linalg.norm(np.subtract(case.left, case.right), norm) for case in cases]
    assert max(distances) == pytest.approx(far, rel=1e-6)
    assert np.mean(np.isclose(distances, far, rtol=1e-4)) > 0.4


@pytest.mark.parametrize(("relation", "far"), [("l1:2", 2.0), ("l1:20", 9.0), ("l2:2", 2.0), ("linf:5", 1.0)])
def test_a_distance_beyond_the_range_of_one_number_is_moved_by_several(relation, far):
    """No pair was found: one number alone moved, beyond its range."""
    unit = st.lists(st.floats(0, 1), min_size=9, max_size=9)
    cases = space_of(neighbours(unit, relation), 1).first(20)
    norm = NORMS[relation.partition(":")[0]]
    distances = [np.linalg.norm(np.subtract(case.left, case.right), norm) for case in cases]
    assert max(distances) == pytest.approx(far, rel=1e-4)


def test_up_to_three_records_are_replaced_and_most_pairs_have_three():
    cases = space_of(neighbours(VECTORS, "replace:3"), 0).first(40)
    many = [sum(a != b for a, b in zip(case.left, case.right, strict=True)) for case in cases]
    assert max(many) == 3
    assert many.count(3) > len(many) / 3


@pytest.mark.parametrize(
    ("relation", "left", "right", "why"),
    [
        ("replace", [1, 2, 3], [0, 0, 3], "they differ in records 1, 2"),
        ("replace:2", [1, 2, 3], [0, 0, 0], "they differ in records 1, 2, 3"),
        ("replace", [1, 2], [1], "they have 2 and 1 records"),
        ("add-remove", [1, 2], [2, 3], "one side is not the other with records removed"),
        ("add-remove:2", [1, 2, 3, 4], [1], "3 records are added or removed, more than 2"),
        ("zero-out", [1, 2], [1, 3], "neither side is zero in records 2"),
        ("user", [["a", 1], ["a", 2], ["b", 1]], [["a", 1], ["b", 1]], "not all of one user"),
        ("replace-user", [["a", 1], ["b", 2]], [["a", 2], ["b", 1]], "records 1, 2 are of several users"),
        ("l1:0.3", [0.1, 0.2], [0.2, 0.5], "their distance is 0.4, more than 0.3"),
        ("l2:1", [0.0, 0.0], [1.0, 0.1], "their distance is 1.0"),
        ("linf:1", {"a": 1}, {"a": 1, "b": 2}, "they differ in more than their numbers"),
        ("linf:1", [1, "x"], [1, "y"], "they differ in more than their numbers"),
        ("substitute-feature", [[1, 2]], [[0, 0]], "the record differs in several features"),
    ],
)
def test_given_inputs_that_are_no_neighbours_are_refused(relation, left, right, why):
    with pytest.raises(ValueError, match=why):
        check_near(Relation.parse(relation), left, right)


def test_a_distance_is_of_the_numbers_as_they_are_printed():
    """0.1 + 0.2 is another float than 0.3, and 0.3 - 0.1 as floats is more than 0.2."""
    assert not Relation.parse("l1:0.2").form_fault(to_json([0.1]), to_json([0.3]))
    assert 0.3 - 0.1 < 0.2 < 0.7 - 0.5 or 0.8 - 0.7 > 0.1
    assert not Relation.parse("linf:0.1").form_fault(to_json([0.8]), to_json([0.7]))
    assert Relation.parse("linf:0.1").form_fault(to_json([0.8]), to_json([0.7 - 1e-16]))
    assert not Relation.parse("l2:5").form_fault(to_json(np.array([3.0, 0.0])), to_json(np.array([0.0, 4.0])))


def test_numbers_of_a_form_are_those_of_the_data_alone():
    """Shapes and types of an array are no numbers that may move."""
    changes = Changes(Relation.parse("linf:1"))
    data = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    changes.learn(data)
    assert changes.ranges == {path: (Decimal(1), Decimal(2)) for path in changes.ranges}
    left, right = changes.pair(data, 0, np.random.default_rng(0), lambda: None)
    assert list(left.columns) == ["a", "b"]
    assert (left.b == right.b).all()
    assert (left.a - right.a).abs().max() == 1


def test_a_zeroed_record_keeps_its_form_and_its_user():
    assert zeroed({"user": "a", "age": 3, "name": "x", "tags": [1, "y"]}) == {
        "user": "a",
        "age": 0,
        "name": "",
        "tags": [0, ""],
    }
    assert zeroed((True, 2.5, None, b"x")) == (False, 0.0, None, b"")
    assert zeroed(np.array([1, 2])).tolist() == [0, 0]


@pytest.mark.parametrize("text", ["replace:0", "l2:-1", "l2:nan", "l2:inf", "l2:x", "zero-out:2", "", "user:", 3])
def test_other_words_are_refused_with_the_value(text):
    assert not is_relation(text)
    with pytest.raises(RelationError, match=f"got {str(text) or repr('')}|got {text!r}"):
        Relation.parse(text)


@pytest.mark.parametrize("name", relation_names())
def test_every_relation_reads_back_and_has_words(name):
    text = name.replace(":D", ":0.5")
    relation = Relation.parse(text)
    assert str(relation) == text
    assert Relation.parse(str(relation)) == relation
    assert relation.clause != text
    assert neighbours_words(text) != text or not relation.for_rounds


def test_a_function_may_draw_one_neighbour_by_a_generator():
    def near(data, rng):
        return [*data, int(rng.integers(10))]

    pairs = draw(neighbours(st.lists(st.integers(), max_size=3), near), 12, seed=0)
    assert all(abs(len(left) - len(right)) == 1 for left, right in pairs)
    assert pairs == draw(neighbours(st.lists(st.integers(), max_size=3), near), 12, seed=0)
