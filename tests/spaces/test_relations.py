"""All kinds of data by all relations: a neighbour is taken, and what is none by a little is refused.

Of each kind there is a data set, and the same after a change: one record replaced, two, one gone, one zero, one
feature or two of a record, numbers moved by 1 in all or by more; and `frames`: the same records, held in another way,
under other keys, labels or types, or in another shape, which no relation allows.
"""

import copy
import re
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import pytest
from hypothesis import strategies as st

from overclaim.audit.spaces.changes import check_near
from overclaim.audit.spaces.neighbours import neighbours
from overclaim.audit.spaces.records import records_of
from overclaim.audit.spaces.related import space_of
from overclaim.mechanisms.relations import Relation
from overclaim.mechanisms.relations.relation import relation_names

pd = pytest.importorskip("pandas")
#: Which changes a relation allows; of others none.
ALLOWED = {
    "replace": {"replaced", "zero", "feature", "features", "moved", "moved far"},
    "replace:2": {"replaced", "two", "zero", "feature", "features", "moved", "moved far"},
    "zero-out": {"zero"},
    "add-remove": {"gone"},
    "add-remove:2": {"gone", "two gone"},
    "substitute-feature": {"feature"},
    "user": {"user gone"},
    "replace-user": {"user replaced", "user zero"},
    "zero-out-user": {"user zero"},
    "l1:1": {"moved"},
    "l2:1": {"moved"},
    "linf:1": {"moved"},
}


@dataclass
class Kind:
    """A data set, its changes by name, and what it is in other frames; which changes more relations allow here."""

    base: object
    changes: dict[str, object]
    frames: list[object] = field(default_factory=list)
    more: dict[str, set[str]] = field(default_factory=dict)


def frame(rows, **options):
    return pd.DataFrame(rows, columns=["a", "b"], **options)


ROWS = [[1, 2], [3, 4], [5, 6]]
CHANGED_ROWS = {
    "replaced": [[1, 2], [8, 9], [5, 6]],
    "two": [[1, 2], [8, 9], [8, 9]],
    "gone": [[1, 2], [5, 6]],
    "two gone": [[1, 2]],
    "zero": [[1, 2], [0, 0], [5, 6]],
    "feature": [[1, 2], [3, 9], [5, 6]],
    "features": [[1, 2], [7, 9], [5, 6]],
    "moved": [[1, 2], [3, 5], [5, 6]],
    "moved far": [[1, 2], [3, 4], [5, 9]],
    "turned round": [[5, 6], [1, 2], [3, 4]],
}
#: A move of one number is one feature of one record, too.
MOVES = {"substitute-feature": {"moved", "moved far"}}
#: Of two values the first may be a user.
PAIRS = MOVES | {"user": {"gone"}, "replace-user": {"feature", "moved", "moved far"}}


def rows_as(make):
    return {name: make(rows) for name, rows in CHANGED_ROWS.items()}


def table(rows):
    return {"x": [row[0] for row in rows], "z": [row[1] for row in rows]}


def of_rows(make, frames, more=MOVES):
    return Kind(make(ROWS), rows_as(make), frames, more)


KINDS = {
    "list": Kind(
        [1.5, 2.5, 3.5],
        {
            "replaced": [1.5, 9.5, 3.5],
            "two": [1.5, 9.5, 9.5],
            "gone": [1.5, 3.5],
            "two gone": [3.5],
            "zero": [1.5, 0.0, 3.5],
            "turned round": [3.5, 1.5, 2.5],
            "moved": [1.5, 2.5, 4.5],
            "moved far": [1.5, 2.5, 5.5],
            "missing": [1.5, 2.5, None],
        },
        [(1.5, 2.5, 3.5), {1.5, 2.5, 3.5}, np.array([1.5, 2.5, 3.5]), {"x": [1.5, 2.5, 3.5]}, [[1.5, 2.5, 3.5]]],
        {
            "replace": {"missing"},
            "replace:2": {"missing"},
            "substitute-feature": {"replaced", "zero", "moved", "moved far", "missing"},
        },
    ),
    "rows": of_rows(copy.deepcopy, [np.array(ROWS), [tuple(row) for row in ROWS], table(ROWS), frame(ROWS)], PAIRS),
    "tuple": of_rows(
        lambda rows: tuple(map(tuple, rows)), [ROWS, [tuple(row) for row in ROWS], np.array(ROWS)], PAIRS
    ),
    "array": of_rows(
        np.array,
        [ROWS, np.array(ROWS, float), np.array(ROWS, "int32"), np.array(ROWS).ravel(), np.array(ROWS)[:, :, None]],
    ),
    "array of two axes a record": of_rows(
        lambda rows: np.array(rows)[:, None, :],
        [np.array(ROWS), np.array(ROWS)[:, :, None], np.array(ROWS)[:, None, :1]],
    ),
    "vector": Kind(
        np.array([1.0, 2.0, 3.0]),
        {
            "replaced": np.array([1.0, 9.0, 3.0]),
            "two": np.array([1.0, 9.0, 9.0]),
            "gone": np.array([1.0, 3.0]),
            "zero": np.array([1.0, 0.0, 3.0]),
            "moved": np.array([1.0, 2.5, 3.0]),
            "moved far": np.array([1.0, 2.0, 8.0]),
        },
        [[1.0, 2.0, 3.0], np.array([1, 2, 3]), np.array([[1.0], [2.0], [3.0]]), pd.Series([1.0, 2.0, 3.0])],
        {"substitute-feature": {"replaced", "zero", "moved", "moved far"}},
    ),
    "texts": Kind(
        np.array(["one", "two", "three"]),
        {
            "replaced": np.array(["one", "a much longer one", "three"]),
            "two": np.array(["one", "x", "y"]),
            "gone": np.array(["one", "three"]),
            "zero": np.array(["one", "", "three"]),
        },
        [["one", "two", "three"], np.array([b"one", b"two", b"three"])],
        {"substitute-feature": {"replaced", "zero"}},
    ),
    "dates": Kind(
        np.array(["2020-01-01", "2021-01-01"], "M8[D]"),
        {"replaced": np.array(["2020-01-01", "2023-01-01"], "M8[D]"), "gone": np.array(["2020-01-01"], "M8[D]")},
        [np.array(["2020-01-01", "2021-01-01"], "M8[s]")],
        {"substitute-feature": {"replaced"}},
    ),
    "mappings": Kind(
        [{"age": 1, "pay": 2}, {"age": 3, "pay": 4}],
        {
            "replaced": [{"age": 1, "pay": 2}, {"age": 8, "pay": 9}],
            "two": [{"age": 8, "pay": 9}, {"age": 8, "pay": 9}],
            "gone": [{"age": 1, "pay": 2}],
            "zero": [{"age": 1, "pay": 2}, {"age": 0, "pay": 0}],
            "feature": [{"age": 1, "pay": 2}, {"pay": 9, "age": 3}],
            "features": [{"age": 1, "pay": 2}, {"age": 8, "pay": 9}],
            "moved": [{"age": 1, "pay": 2}, {"age": 3, "pay": 5}],
            "other key": [{"age": 1, "pay": 2}, {"age": 3, "city": 4}],
            "key more": [{"age": 1, "pay": 2}, {"age": 3, "pay": 4, "city": 0}],
        },
        [{"age": [1, 3], "pay": [2, 4]}, pd.DataFrame([{"age": 1, "pay": 2}, {"age": 3, "pay": 4}])],
        {
            "substitute-feature": {"moved"},
            "replace": {"other key", "key more"},
            "replace:2": {"other key", "key more"},
        },
    ),
    "dictionary": Kind(
        {"ann": 5, "bob": 6, "eve": 7},
        {
            "replaced": {"ann": 5, "bob": 9, "eve": 7},
            "two": {"ann": 9, "bob": 9, "eve": 7},
            "gone": {"eve": 7, "ann": 5},
            "two gone": {"bob": 6},
            "zero": {"ann": 0, "bob": 6, "eve": 7},
            "moved": {"eve": 7, "ann": 5, "bob": 5},
            "moved far": {"ann": 9, "bob": 6, "eve": 7},
            "other key": {"ann": 5, "bob": 6, "zoe": 7},
        },
        [[5, 6, 7], {"ann": [5], "bob": [6], "eve": [7]}, {1: 5, 2: 6, 3: 7}, [["ann", 5], ["bob", 6], ["eve", 7]]],
        {
            "substitute-feature": {"replaced", "zero", "moved", "moved far"},
            "user": {"gone"},
            "replace-user": {"replaced", "zero", "moved", "moved far"},
            "zero-out-user": {"zero"},
        },
    ),
    "table": of_rows(
        table, [table(ROWS) | {"w": [0, 0, 0]}, {"x": [1, 3, 5], "y": [2, 4, 6]}, ([1, 3, 5], [2, 4, 6])]
    ),
    "labelled data": of_rows(
        lambda rows: (np.array(rows, float)[:, :1], np.array(rows)[:, 1]),
        [ROWS, (np.array(ROWS, float)[:, :1], [2, 4, 6]), (np.array(ROWS)[:, :1], np.array(ROWS)[:, 1])],
    ),
    "table of frames": of_rows(
        lambda rows: {"left": frame(rows)[["a"]], "right": [row[1] for row in rows]},
        [{"left": frame(ROWS)[["a"]].rename(columns={"a": "z"}), "right": [2, 4, 6]}],
    ),
    "frame": of_rows(
        frame,
        [
            frame(ROWS, index=[7, 8, 9]),
            frame(ROWS).astype(float),
            frame(ROWS)[["b", "a"]],
            frame(ROWS).rename(columns={"a": "z"}),
            frame(ROWS)[["a"]],
            frame(ROWS).rename_axis(index="id"),
            frame(ROWS).rename_axis(columns="id"),
            frame(ROWS).assign(c=1),
            ROWS,
            table(ROWS),
        ],
    ),
    "frame with labels": of_rows(
        lambda rows: frame(rows, index=["p1", "p5"] if len(rows) == 2 else ["p1", "p3", "p5"][: len(rows)]),
        [frame(ROWS, index=["p1", "p3", "q"]), frame(ROWS, index=[1, 3, 5]), frame(ROWS)],
    ),
    "series": Kind(
        pd.Series([4.0, 2.0], index=[10, 20]),
        {
            "replaced": pd.Series([4.0, 9.0], index=[10, 20]),
            "two": pd.Series([9.0, 9.0], index=[10, 20]),
            "gone": pd.Series([2.0], index=[20]),
            "zero": pd.Series([0.0, 2.0], index=[10, 20]),
            "moved": pd.Series([4.0, 2.5], index=[10, 20]),
            "moved far": pd.Series([4.0, 5.0], index=[10, 20]),
            "other label": pd.Series([4.0], index=[11]),
        },
        [
            pd.Series([4.0, 2.0], index=[55, 77]),
            pd.Series([4.0, 2.0]),
            pd.Series([4.0, 2.0], index=[10, 20], name="x"),
        ],
        {"substitute-feature": {"replaced", "zero", "moved", "moved far"}},
    ),
    "categories": Kind(
        pd.Series(["a", "b", "a"], dtype="category"),
        {"replaced": pd.Series(["a", "c", "a"], dtype="category"), "gone": pd.Series(["a", "b"], dtype="category")},
        [
            pd.Series(pd.Categorical(["a", "b", "a"], categories=["a", "b", "c"])),
            pd.Series(pd.Categorical(["a", "b", "a"], categories=["b", "a"])),
            pd.Series(["a", "b", "a"]),
        ],
        {"substitute-feature": {"replaced"}},
    ),
    "set": Kind(
        {1, 2, 3},
        {"replaced": {1, 2, 9}, "two": {1, 8, 9}, "gone": {1, 3}, "two gone": {3}, "zero": {0, 1, 2}},
        [frozenset({1, 2, 3}), [1, 2, 3]],
        {"substitute-feature": {"replaced", "zero"}},
    ),
    "set of rows": Kind(
        {(1, 2), (3, 4)},
        {"feature": {(1, 2), (3, 9)}, "features": {(1, 2), (8, 9)}, "zero": {(1, 2), (0, 0)}, "gone": {(1, 2)}},
        [{((1, 2), (3, 4))}, [(1, 2), (3, 4)]],
        {"user": {"gone"}, "replace-user": {"feature"}},
    ),
    "number": Kind(
        3.0,
        {"replaced": 9.0, "zero": 0.0, "moved": 3.5, "moved far": 8.0},
        ["3.0", [3.0], {"x": 3.0}, np.array(3.0), b"3"],
        {"substitute-feature": {"replaced", "zero", "moved", "moved far"}},
    ),
    "text": Kind(
        "abc",
        {"replaced": "xyz", "zero": ""},
        [["a", "b", "c"], b"abc", 3],
        {"substitute-feature": {"replaced", "zero"}},
    ),
    "nothing": Kind(
        [None, 1], {"replaced": [2, 1], "two": [2, 2], "gone": [1]}, [(None, 1)], {"substitute-feature": {"replaced"}}
    ),
    "nested": Kind(
        [{"name": "ann", "visits": [1, 2]}, {"name": "bob", "visits": []}],
        {
            "replaced": [{"name": "ann", "visits": [1, 2]}, {"name": "eve", "visits": [5, 6]}],
            "feature": [{"name": "ann", "visits": [1, 2, 3]}, {"name": "bob", "visits": []}],
            "gone": [{"name": "bob", "visits": []}],
            "zero": [{"name": "", "visits": [0, 0]}, {"name": "bob", "visits": []}],
            "moved": [{"name": "ann", "visits": [1, 3]}, {"name": "bob", "visits": []}],
        },
        [({"name": "ann", "visits": [1, 2]}, {"name": "bob", "visits": []})],
        {"substitute-feature": {"moved"}},
    ),
    "named by numbers": Kind(
        pd.DataFrame([[1.0, 2.0]], columns=[0, 1]),
        {"moved": pd.DataFrame([[1.0, 3.0]], columns=[0, 1]), "features": pd.DataFrame([[5.0, 3.0]], columns=[0, 1])},
        [pd.DataFrame([[1.0, 2.0]], columns=[0, 2]), pd.DataFrame([[1.0, 2.0]], columns=["0", "1"])],
        MOVES,
    ),
    "keyed by numbers": Kind(
        {1: 5.0, 2: 6.0},
        {"moved": {2: 6.0, 1: 5.5}, "gone": {2: 6.0}},
        [{1: 5.0, 3: 6.0}, {"1": 5.0, "2": 6.0}],
        {"substitute-feature": {"moved"}, "user": {"gone"}, "replace-user": {"moved"}},
    ),
    "empty arrays": Kind(np.empty((0, 2)), {}, [np.empty((0, 3)), np.empty(0), np.empty((0, 2), int), []]),
}


def visits(*pairs, make=list):
    return [make(pair) for pair in pairs]


def user_rows(*pairs):
    return [{"user": user, "amount": amount} for user, amount in pairs]


#: Of two users, `a` with records 1 and 3: what is all hers, and what is not.
OF_USERS = {
    "user gone": [("b", 2)],
    "user replaced": [("a", 8), ("b", 2), ("a", 9)],
    "user zero": [("a", 0), ("b", 2), ("a", 0)],
    "part gone": [("a", 1), ("b", 2)],
    "part replaced": [("a", 8), ("b", 2), ("a", 3)],
    "part zero": [("a", 0), ("b", 2), ("a", 3)],
    "both replaced": [("a", 8), ("b", 9), ("a", 3)],
    "both gone": [],
    "renamed": [("c", 1), ("b", 2), ("c", 3)],
}
FOR_USERS = {
    "user": {"user gone"},
    "replace-user": {"user replaced", "user zero", "part replaced", "part zero"},
    "zero-out-user": {"user zero"},
    "user:1": set(),
    "user:2": {"user gone"},
    "replace-user:1": {"part replaced", "part zero"},
    "zero-out-user:2": {"user zero"},
}
USER_KINDS = {
    "pairs": visits,
    "tuples": lambda *pairs: visits(*pairs, make=tuple),
    "mappings": user_rows,
    "frame": lambda *pairs: pd.DataFrame(user_rows(*pairs), columns=["user", "amount"]).astype({"amount": int}),
}


def cells():
    for name, kind in KINDS.items():
        for relation, allowed in ALLOWED.items():
            yield pytest.param(kind, relation, allowed | kind.more.get(relation, set()), id=f"{name}-{relation}")
    base = [("a", 1), ("b", 2), ("a", 3)]
    for name, make in USER_KINDS.items():
        kind = Kind(make(*base), {change: make(*pairs) for change, pairs in OF_USERS.items()}, [tuple(make(*base))])
        for relation, allowed in FOR_USERS.items():
            yield pytest.param(kind, relation, allowed, id=f"users' {name}-{relation}")


def is_taken(relation, left, right, lines):
    """Return whether two inputs are taken as neighbours; a refusal is added to the lines."""
    try:
        check_near(Relation.parse(relation), left, right)
    except ValueError as error:
        lines.append(str(error))
        return False
    return True


@pytest.mark.parametrize(("kind", "relation", "allowed"), cells())
def test_neighbours_are_taken_and_no_others(kind, relation, allowed):
    of_users, lines = Relation.parse(relation).of_users, []
    for name, changed in kind.changes.items():
        for left, right in ((kind.base, changed), (changed, kind.base)):
            assert is_taken(relation, left, right, lines) == (name in allowed), name
    assert of_users or is_taken(relation, kind.base, kind.base, lines)
    for other in kind.frames:
        assert not is_taken(relation, kind.base, other, lines), other
        assert not is_taken(relation, other, kind.base, lines), other
    assert all(line and "\n" not in line for line in lines)


def searched_pairs(data, relation):
    """Return pairs of a search: first ones, changes of them, and simpler ones; or why there is none."""
    by_size = sorted(data, key=lambda one: len(one) if hasattr(one, "__len__") else 1)
    try:
        space = space_of(neighbours(st.sampled_from(by_size), relation), 1)
        pairs, rng = space.first(10), np.random.default_rng(2)
    except ValueError as error:
        return [], str(error)
    for pair in list(pairs):
        for _ in range(5):
            changed = space.changed(pair, rng)
            pairs += [pair := changed] if changed is not None else []
    return [*pairs, *(simpler for pair in pairs[:10] for simpler in islice(space.simpler(pair), 20))], ""


def kinds_by_relation():
    for name, kind in KINDS.items():
        yield from ((name, [kind.base, *kind.changes.values()], relation) for relation in ALLOWED)
    for name, make in USER_KINDS.items():
        data = [make(("a", 1), ("b", 2), ("a", 3)), *(make(*pairs) for pairs in OF_USERS.values())]
        yield from ((f"users' {name}", data, relation) for relation in FOR_USERS if not relation.startswith("user:"))


@pytest.mark.few("list-replace", "set-replace", "categories-zero-out", "users' pairs-zero-out-user")
@pytest.mark.parametrize(
    ("data", "relation"),
    [pytest.param(data, relation, id=f"{name}-{relation}") for name, data, relation in kinds_by_relation()],
)
def test_all_pairs_of_a_search_are_neighbours(data, relation):
    pairs, why_none = searched_pairs(data, relation)
    no_pairs = "cannot be taken away|relation of users needs|needs numbers|makes no two inputs that differ"
    assert len(pairs) > 10 or re.search(no_pairs, why_none)
    for pair in pairs:
        check_near(Relation.parse(relation), pair.left, pair.right)


@pytest.mark.parametrize("make", [frame, lambda rows, index: frame(rows, index=index)["a"]])
def test_labels_stay_with_their_records(make):
    data = make(ROWS, index=["p1", "p3", "p5"])
    records = records_of(data)
    assert list(records.put(1, records.record(0)).index) == ["p1", "p3", "p5"]
    assert list(records.without(1).index) == ["p1", "p5"]
    assert list(records_of(make(ROWS, index=None)).without(1).index) == [0, 1]


def test_all_relations_of_data_are_in_the_table():
    known = {relation.partition(":")[0] for relation in ALLOWED}
    assert known == {name.partition(":")[0] for name in relation_names(data=True)}
