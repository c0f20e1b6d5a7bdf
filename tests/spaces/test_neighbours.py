"""Pairs of neighbouring inputs: what a relation makes of data of every form, by the seed alone."""

import contextlib
import sys
import types

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from overclaim.audit.play.data import UnreadableDataError, from_json, key_of, shown, to_json
from overclaim.audit.spaces import drawing
from overclaim.audit.spaces.drawing import draw
from overclaim.audit.spaces.extremes import all_alike
from overclaim.audit.spaces.neighbours import neighbours
from overclaim.audit.spaces.records import records_of
from overclaim.audit.spaces.related import space_of
from overclaim.learners.protocol import LearnerError
from overclaim.mechanisms.relations import RelationError
from overclaim.mechanisms.relations.records import UnfitError

pd = pytest.importorskip("pandas")
hpd = pytest.importorskip("hypothesis.extra.pandas")
UNIT = st.floats(0, 1)
LISTS = st.lists(UNIT, min_size=1, max_size=4)
ARRAYS = hnp.arrays(float, st.tuples(st.integers(1, 4), st.just(2)), elements=UNIT)
FRAMES = hpd.data_frames(
    [hpd.column("age", dtype=int, elements=st.integers(0, 99)), hpd.column("name", elements=st.sampled_from("ab"))],
    index=hpd.range_indexes(min_size=1, max_size=4),
)
LABELLED = st.integers(1, 4).flatmap(
    lambda n: st.tuples(hnp.arrays(float, (n, 2), elements=UNIT), hnp.arrays(int, n, elements=st.integers(0, 1)))
)
COLUMNS = st.integers(1, 4).flatmap(
    lambda n: st.fixed_dictionaries({name: st.lists(UNIT, min_size=n, max_size=n) for name in "ab"})
)
KEYED = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 3), min_size=1)
FORMS = {
    "lists": LISTS,
    "tuples": LISTS.map(tuple),
    "arrays": ARRAYS,
    "frames": FRAMES,
    "series": hpd.series(elements=UNIT, index=hpd.range_indexes(min_size=1, max_size=4)),
    "labelled": LABELLED,
    "columns": COLUMNS,
    "keyed": KEYED,
    "sets": st.sets(st.integers(0, 5), min_size=1, max_size=4),
}


def rows(data):
    """The slow twin: the records of a data set, as texts."""
    if isinstance(data, tuple) and isinstance(data[0], np.ndarray):
        return [repr([part[i].tolist() for part in data]) for i in range(len(data[0]))]
    if isinstance(data, dict) and isinstance(next(iter(data.values()), None), list):
        return list(map(repr, zip(*data.values(), strict=True)))
    if isinstance(data, dict):
        return list(map(repr, data.items()))
    if isinstance(data, pd.DataFrame):
        return list(map(repr, data.itertuples(index=False, name=None)))
    return [repr(item.tolist() if isinstance(item, np.generic | np.ndarray) else item) for item in data]


@pytest.mark.few(9)
@pytest.mark.parametrize(
    ("form", "relation"),
    [
        (form, relation)
        for form in FORMS
        for relation in ("replace", "add-remove", "substitute-feature")
        if (form, relation) != ("sets", "substitute-feature")  # its records are single values
    ],
)
def test_two_worlds_differ_in_one_record(form, relation):
    pairs = draw(neighbours(FORMS[form], relation), 12, seed=3)
    assert len(pairs) >= 3
    for left, right in pairs:
        assert type(left) is type(right)
        one, other = sorted((rows(left), rows(right)), key=len)
        if relation == "add-remove":
            assert len(other) == len(one) + 1
            assert any(other[:i] + other[i + 1 :] == one for i in range(len(other)))
        elif form == "sets":
            assert (len(set(one) - set(other)), len(set(other) - set(one))) == (1, 1)
        else:
            assert len(one) == len(other)
            assert sum(a != b for a, b in zip(one, other, strict=True)) == 1


def test_a_substituted_feature_is_one_number():
    for (X, y), (Z, w) in draw(neighbours(LABELLED, "substitute-feature"), 20, seed=0):
        assert (X != Z).sum() + (y != w).sum() == 1


def test_no_world_is_smaller_than_the_strategy_allows():
    sizes = {len(side) for pair in draw(neighbours(LISTS, "add-remove"), 40, seed=0) for side in pair}
    assert min(sizes) == 1


def test_a_function_says_what_neighbours_are():
    assert all(abs(a - b) == 1 for a, b in draw(neighbours(st.integers(), lambda x: [x - 1, x + 1]), 20, seed=0))
    near = neighbours(st.integers(0, 9), lambda x: st.integers(x + 1, x + 2))
    assert {abs(a - b) for a, b in draw(near, 20, seed=0)} == {1, 2}


def test_where_keeps_records_in_the_domain():
    """Sorted lists: a record that moves would leave them."""
    sorted_pairs = neighbours(LISTS.map(sorted), where=lambda data: data == sorted(data))
    assert all(side == sorted(side) for pair in draw(sorted_pairs, 20, seed=0) for side in pair)
    assert any(side != sorted(side) for pair in draw(neighbours(LISTS.map(sorted)), 20, seed=0) for side in pair)


@pytest.mark.slow(reason="many drawn inputs")
def test_the_seed_alone_decides(monkeypatch, tmp_path):
    """Neither code that was loaded since, nor a profile, nor another test of Hypothesis around it."""
    pairs = neighbours(st.lists(st.integers(), max_size=4))
    first = draw(pairs, 50, seed=1)
    assert repr(first) != repr(draw(pairs, 50, seed=2))
    module = types.ModuleType("full_of_constants")
    (tmp_path / "constants.py").write_text(f"CONSTANTS = {list(range(10**6, 10**6 + 200))}")
    module.__file__ = str(tmp_path / "constants.py")
    numbers = st.lists(st.integers(), max_size=4)
    before = repr(draw(numbers, 50, seed=1))
    monkeypatch.setitem(sys.modules, "full_of_constants", module)
    assert repr(draw(pairs, 50, seed=1)) == repr(first)
    assert repr(draw(numbers, 50, seed=1)) == before
    with monkeypatch.context() as patch:
        patch.setattr(drawing, "_alone", contextlib.nullcontext)
        assert repr(draw(numbers, 50, seed=1)) != before  # Hypothesis itself draws constants of loaded code

    @settings(max_examples=2, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
    @given(st.integers())
    def inside(_):
        assert repr(draw(pairs, 50, seed=1)) == repr(first)

    inside()


@pytest.mark.parametrize(
    ("strategy", "relation", "message"),
    [
        (3, "replace", "inputs must be a Hypothesis strategy.*got 3"),
        (LISTS, "remove", "neighbours must be one of replace, zero-out, add-remove.*got 'remove'"),
        (st.nothing(), "replace", "nothing fits the strategy"),
        (st.integers().filter(lambda x: False), "replace", "nothing fits the strategy"),
        (UNIT, "add-remove", "float data is one record"),
        (
            st.tuples(st.lists(UNIT, min_size=1, max_size=1), st.lists(UNIT, min_size=2, max_size=2)),
            "replace",
            "got 1, 2 rows",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(strategy, relation, message):
    with pytest.raises(ValueError, match=message) as error:
        neighbours(strategy, relation)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("strategy", "relation"), [(st.just([1]), "replace"), (st.just(2), lambda x: [x])])
def test_equal_worlds_are_no_pair(strategy, relation):
    with pytest.raises(ValueError, match="not one example"):
        draw(neighbours(strategy, relation), 5, seed=0)


def test_a_relation_that_raises_is_its_authors():
    with pytest.raises(LearnerError, match="neighbour relation raised ZeroDivisionError"):
        draw(neighbours(st.integers(), lambda x: [1 / 0]), 5, seed=0)


def test_hypothesis_is_asked_for_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ValueError, match=r"hypothesis, which is not installed\nhint: pip install hypothesis"):
        neighbours(LISTS)


DATA = [
    None,
    [1, 2.5, "x", True],
    {"a": [1], "$b": 2},
    {1: "x", (2, 3): None},
    float("nan"),
    [-0.0, float("inf"), -float("inf")],
    (1, [2], {3, 4}, frozenset({5}), b"\x00\xff"),
    np.array([[1.5, np.nan], [np.inf, -0.0]]),
    np.array([], dtype=np.int32),
    np.zeros((0, 3)),
    np.array([2**63], dtype=np.uint64),
    np.array(["a", "bc"]),
    np.array(["2026-01-01"], dtype="datetime64[D]"),
    np.array([1 + 2j]),
    np.float32(0.1),
    pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [0.5, np.nan]}),
    pd.Series([1, 2], dtype="Int64"),
]


@pytest.mark.parametrize("data", DATA, ids=lambda data: type(data).__name__)
def test_data_reads_back_as_it_was(data):
    back = from_json(to_json(data))
    assert type(back) is type(data)
    assert key_of(back) == key_of(data)
    assert isinstance(shown(to_json(data)), str)
    if isinstance(data, np.ndarray):
        assert (back.dtype, back.shape) == (data.dtype, data.shape)
        np.testing.assert_array_equal(back, data)
    if isinstance(data, pd.DataFrame):
        pd.testing.assert_frame_equal(back, data)


def test_different_data_have_different_keys():
    values = [1, 1.0, True, "1", [1], (1,), np.array([1]), np.array([1.0]), np.float64(1), {1: 1}, {"1": 1}]
    assert len({key_of(value) for value in values}) == len(values)


@pytest.mark.parametrize(
    "form",
    [
        {"$float": "one"},
        {"$array": {"dtype": "object", "data": [1]}},
        {"$array": {"data": [1]}},
        {"$array": {"dtype": "int64", "data": [[1], [2, 3]]}},
        {"$bytes": 3},
        {"$map": [[[1], 2]]},
    ],
)
def test_a_form_that_stands_for_nothing_is_refused(form):
    with pytest.raises(UnreadableDataError):
        from_json(form)


def test_what_no_record_holds_is_refused():
    with pytest.raises(UnreadableDataError, match="object"):
        to_json([object()])


def test_parts_of_different_length_are_no_table():
    with pytest.raises(RelationError, match="rows"):
        draw(neighbours(st.tuples(LISTS, LISTS)), 50, seed=0)


def test_a_function_may_be_the_relation_of_parts_of_different_length():
    """As the message about them says: a graph has other numbers of nodes than of edges."""
    graphs = st.fixed_dictionaries({"nodes": st.lists(UNIT, max_size=3), "edges": st.lists(UNIT, max_size=4)})
    pairs = neighbours(graphs, lambda graph: [{**graph, "edges": graph["edges"][:-1]}] * bool(graph["edges"]))
    space = space_of(pairs, 0)
    first = space.first(20)
    again = [space.candidate_of(case.left, case.right) for case in first]
    changed = [space.changed(case, np.random.default_rng(0)) for case in again]
    simpler = [other for case in again for other in space.simpler(case)]
    assert simpler
    for case in [*filter(None, changed), *simpler]:
        assert abs(len(case.left["edges"]) - len(case.right["edges"])) == 1
        assert case.left["nodes"] == case.right["nodes"]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "strategy",
    [
        st.fixed_dictionaries({"nodes": st.integers(0, 4), "edges": st.lists(UNIT, max_size=3)}),
        st.dictionaries(st.sampled_from("ab"), st.integers(0, 4) | st.lists(UNIT, max_size=3), min_size=1),
        st.tuples(st.integers(0, 4), st.lists(UNIT, max_size=3)),
    ],
)
def test_numbers_beside_lists_are_no_table_whatever_takes_their_places(strategy):
    """By the form that it was drawn in: some drawn dictionaries have lists alone, of one length and another."""
    is_table = lambda data: all(isinstance(part, list) for part in getattr(data, "values", lambda: data)())  # noqa: E731
    space = space_of(neighbours(strategy.filter(lambda data: not is_table(data)), "replace"), 0)
    first = space.first(40)
    more = [other for case in first for other in (space.changed(case, np.random.default_rng(0)), *space.simpler(case))]
    assert not any(is_table(side) for case in [*first, *filter(None, more)] for side in (case.left, case.right))


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "substitute-feature", "add-remove"])
@pytest.mark.parametrize(
    "record",
    [
        st.none() | st.fixed_dictionaries({"age": st.integers(0, 3), "sex": st.sampled_from("fm")}),
        st.integers(0, 3) | st.lists(st.integers(0, 3), min_size=2, max_size=3),
        st.just("none") | st.tuples(st.integers(0, 3), st.integers(0, 3)) | st.fixed_dictionaries({"a": UNIT}),
    ],
)
def test_records_may_be_of_several_forms(record, relation):
    """As missing ones are: of a feature that one has and another has not nothing is put together."""
    pairs = neighbours(st.lists(record, min_size=1, max_size=4), relation)
    space = space_of(pairs, 0)
    cases = [case for one in space.first(40) for case in (one, space.changed(one, np.random.default_rng(0)))]
    cases += [other for case in cases[:20] if case is not None for other in space.simpler(case)]
    sides = [*draw(pairs, 30, seed=0), *((case.left, case.right) for case in cases if case is not None)]
    if relation == "substitute-feature":
        for left, right in sides:
            changed = [pair for pair in zip(left, right, strict=True) if key_of(pair[0]) != key_of(pair[1])]
            held = [pair for pair in changed if any(isinstance(record, dict | list | tuple) for record in pair)]
            assert all(type(one) is type(other) for one, other in held)


@pytest.mark.few(3)
@pytest.mark.parametrize("relation", ["replace", "substitute-feature", "add-remove"])
@pytest.mark.parametrize(
    "strategy",
    [
        st.sets(st.integers(0, 9), max_size=4),
        st.frozensets(st.tuples(st.integers(0, 3), st.sampled_from("ab")), max_size=3),
        st.lists(st.fixed_dictionaries({}, optional={"a": UNIT, "b": UNIT}), max_size=3),
        st.lists(hnp.arrays(float, st.integers(0, 2), elements=UNIT), max_size=3),
        st.lists(UNIT, max_size=2) | st.dictionaries(st.sampled_from("ab"), UNIT),
    ],
    ids=["sets", "sets of rows", "empty rows", "arrays", "lists or dictionaries"],
)
def test_pairs_are_changed_and_made_simpler_within_their_relation(strategy, relation):
    """A record of a set that takes the place of another is not there already: the set would lose one."""
    space, cases = space_of(neighbours(strategy, relation), 0), []
    for case in space.first(30):
        known = space.candidate_of(case.left, case.right)
        changed = space.changed(known, np.random.default_rng(0))
        cases += [case, known, *space.simpler(known), *([] if changed is None else [changed])]
    assert {abs(len(case.left) - len(case.right)) for case in cases} == {int(relation == "add-remove")}
    assert all(type(case.base) in (type(case.left), type(case.right)) for case in cases)


def test_what_is_simpler_is_allowed_too():
    """With one record more, the larger world must be in the domain as well: here no record is twice in it."""
    pairs = neighbours(
        st.lists(st.integers(0, 3), unique=True, min_size=1, max_size=4),
        "add-remove",
        where=lambda data: len(set(data)) == len(data),
    )
    space = space_of(pairs, 0)
    simpler = [other for case in space.first(30) for other in space.simpler(case)]
    assert simpler
    assert all(len(set(side)) == len(side) for other in simpler for side in (other.left, other.right))


@pytest.mark.slow(reason="many drawn inputs")
def test_without_a_user_no_data_has_fewer_records_than_the_strategy_allows():
    visits = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), min_size=2, max_size=6)
    pairs = neighbours(visits, "user")
    space = space_of(pairs, 0)
    first = space.first(30)
    simpler = [other for case in first for other in space.simpler(case)]
    sides = [*draw(pairs, 50, seed=0), *((case.left, case.right) for case in first + simpler)]
    assert min(len(side) for pair in sides for side in pair) == 2


@pytest.mark.slow(reason="many searches")
def test_many_first_pairs_are_alike_but_for_one_record():
    """Others that are zero in every feature, with labels of both classes: what LogisticRegression's fault needs."""
    value, label = st.sampled_from([0.0, 100.0, -100.0]), st.integers(0, 1)
    rows = st.lists(st.tuples(value, label), min_size=3, max_size=5)
    labelled = rows.map(lambda rows: (np.array([[x] for x, _ in rows]), np.array([y for _, y in rows])))
    found = 0
    for seed in range(4):
        for case in space_of(neighbours(labelled), seed).first(48):
            both_classes = all(len(set(side[1].tolist())) == 2 for side in (case.left, case.right))
            found += both_classes and sorted(np.count_nonzero(side[0]) for side in (case.left, case.right)) == [0, 1]
    assert found >= 20  # 5 without them


def test_records_that_are_made_alike_mostly_keep_their_labels():
    rng, rows = np.random.default_rng(0), (np.arange(6.0).reshape(3, 2), np.array([0, 1, 0]))
    record, kept, changed = records_of((np.full((1, 2), 9.0), np.array([1]))).record(0), 0, set()
    for _ in range(40):
        features, labels = all_alike(rows, record, rng)
        was, now = np.column_stack(rows).T, np.column_stack([features, labels]).T
        alike = [bool((column == value).all()) for column, value in zip(now, (9, 9, 1), strict=True)]
        assert any(alike)
        assert all(same or (now[i] == was[i]).all() for i, same in enumerate(alike))
        kept += not alike[2]
        changed.add(tuple(alike))
    assert 25 <= kept < 40
    assert len(changed) > 2
    with pytest.raises(UnfitError):
        all_alike([], 1.0, rng)
