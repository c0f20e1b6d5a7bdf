"""Mutations of data: every kind is drawn, stays in the domain, and shows a fault that random values do not."""

from decimal import Decimal

import numpy as np
import pytest

from overclaim import GDP, RDP, ZCDP, falsify
from overclaim.audit.play.data import DataPair
from overclaim.audit.play.rounds import Game, RoundRelation
from overclaim.audit.search.leads import beside_jumps, dearest, discrete, leads, share_decided_otherwise
from overclaim.audit.spaces import mutations
from overclaim.audit.spaces.candidates import Candidate
from overclaim.audit.spaces.changes import check_near
from overclaim.audit.spaces.extremes import corners
from overclaim.audit.spaces.mutations import LIMITS, OF_NUMBERS, OF_RECORDS, DataStats, Mutator
from overclaim.audit.spaces.neighbours import made_by, neighbours
from overclaim.audit.spaces.records import records_of
from overclaim.audit.spaces.related import space_of
from overclaim.audit.spaces.schema import pairs_of
from overclaim.audit.spaces.sequences import SequencePairs
from overclaim.audit.traces.one_path import cost_of_one_run
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.relations import Relation
from overclaim.mechanisms.relations.records import UnfitError

MUTATIONS = (*OF_RECORDS, *OF_NUMBERS)
ROWS = [["a", 1.0], ["b", 2.0], ["c", 4.0], ["a", 8.0]]
POOL = [*ROWS, ["d", 3.0]]
UNIT = {"type": "number", "minimum": 0, "maximum": 1}
WHOLE = {"type": "integer", "minimum": 0, "maximum": 2000000000}
PURCHASE = {
    "type": "array",
    "prefixItems": [{"enum": ["a", "b", "c", "d", "x"]}, {"type": "integer", "minimum": 1, "maximum": 4}],
    "minItems": 2,
    "maxItems": 2,
}


def array(items, low, high):
    return {"type": "array", "items": items, "minItems": low, "maxItems": high}


def known(*, exact=True, most=8):
    return DataStats.of([ROWS], POOL, [2, most], exact=exact)


def results(mutation, data=ROWS, many=40, **facts):
    rng, found = np.random.default_rng(0), []
    for _ in range(many):
        try:
            found.append(mutation(records_of(data), known(**facts), rng))
        except UnfitError:
            continue
    return found


def values(data):
    return [value for _, value in data]


SHOWN = {
    "copied": lambda data: len({tuple(row) for row in data}) == 3,
    "feature_copied": lambda data: len(set(values(data))) == 3 or [u for u, _ in data].count("b") == 2,
    "to_another_user": lambda data: [user for user, _ in data].count("b") == 2,
    "dealt": lambda data: len({user for user, _ in data}) == 4 and len(data) == len(set(values(data))) == 5,
    "owned_by_one": lambda data: (
        len({u for u, _ in data[: len(data) // 2]}) == 1
        and values(data)[: len(data) // 2] == values(data)[len(data) // 2 :]
    ),
    "reordered": lambda data: data != ROWS and sorted(data) == sorted(ROWS),
    "alternating": lambda data: data[0] == data[2] != data[1] == data[3],
    "constant": lambda data: all(row == data[0] for row in data),
    "with_an_outlier": lambda data: data[0] != data[1] == data[2] == data[3],
    "longer": lambda data: len(data) == 8,
    "shorter": lambda data: len(data) == 3,
    "smaller": lambda data: np.array_equal(np.array(values(data)) * 4, values(ROWS)),
    "beside_another": lambda data: any(0 < abs(x - y) < 1e-9 for x in values(data) for y in values(data)),
}


def test_every_mutation_has_a_case():
    assert {*SHOWN, "at_a_limit", "sum_at_a_limit"} == {one.__name__ for one in MUTATIONS}


@pytest.mark.parametrize(
    "mutation", [one for one in MUTATIONS if "limit" not in one.__name__], ids=lambda m: m.__name__
)
def test_a_mutation_makes_what_its_name_says(mutation):
    assert any(map(SHOWN[mutation.__name__], results(mutation)))
    assert ROWS == [["a", 1.0], ["b", 2.0], ["c", 4.0], ["a", 8.0]]  # nothing is changed in place


def test_sums_come_to_the_limits_of_types_that_hold_the_numbers():
    amounts = [0, 5, 2000000000]
    seen, rng = DataStats.of([amounts], amounts, [3, 3], exact=True), np.random.default_rng(1)
    made = [mutations.sum_at_a_limit(records_of(amounts), seen, rng) for _ in range(200)]
    limits = [2**24, 2**31, 2**32]  # the second holds every amount, the first all whole ones below it
    assert {sum(data) for data in made} == {limit + more for limit in limits for more in (-1, 0, 1)}
    assert all(0 <= x <= 2000000000 for data in made for x in data)


@pytest.mark.parametrize("limit", [2**8, 2**16, 2**24])
def test_numbers_come_to_the_limits_of_types(limit):
    amounts = [0, 5, 2000000000]
    seen, rng = DataStats.of([amounts], amounts, [3, 3], exact=True), np.random.default_rng(1)
    made = [mutations.at_a_limit(records_of(amounts), seen, rng) for _ in range(200)]
    assert {limit - 1, limit, limit + 1} <= {x for data in made for x in data}
    assert Decimal(limit) in LIMITS


def test_numbers_that_nobody_drew_are_tried_only_where_the_domain_tells_which_fit():
    for mutation in (mutations.at_a_limit, mutations.sum_at_a_limit, mutations.smaller, mutations.beside_another):
        assert not results(mutation, exact=False)


@pytest.mark.parametrize(("low", "high", "limit"), [(0, 1, 256), (-1, 0, -128), (0, 1000, 2**15), (-7, 40, 256)])
def test_there_are_as_many_whole_numbers_as_add_up_to_a_limit(low, high, limit):
    seen, rng = DataStats.of([[low, high]], [low, high], [0, 3], exact=True), np.random.default_rng(0)
    made = [mutations.sum_at_a_limit(records_of([low, high, low]), seen, rng) for _ in range(60)]
    assert {limit - 1, limit, limit + 1} <= set(map(sum, made))
    assert all(low <= x <= high for data in made for x in data)
    floats = [float(low), float(high)]
    with pytest.raises(UnfitError, match="no limit of a type"):
        mutations.sum_at_a_limit(records_of(floats), DataStats.of([floats], floats, [0, 3], exact=True), rng)


def test_every_mutation_is_taken_once_before_any_comes_again(monkeypatch):
    taken = []

    def spied(one):
        return lambda here, facts, rng: (taken.append(one), one(here, facts, rng))[1]

    monkeypatch.setattr(mutations, "MUTATIONS", tuple(tuple(map(spied, kind)) for kind in (OF_RECORDS, OF_NUMBERS)))
    mutator, rng = Mutator(known()), np.random.default_rng(0)
    for _ in range(120):
        mutator.mutated(ROWS, rng)
    for kind in (OF_RECORDS, OF_NUMBERS):
        mine = [one for one in taken if one in kind]
        rounds = [mine[start : start + len(kind)] for start in range(0, len(mine) - len(kind) + 1, len(kind))]
        assert len(rounds) > 3
        assert all(set(one) == set(kind) for one in rounds)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("items", "relation", "low", "high"),
    [(PURCHASE, "user", 0, 10), (WHOLE, "l1:1", 2, 2), (UNIT, "replace", 3, 6), (UNIT, "add-remove", 0, 8)],
    ids=["user", "l1", "replace", "add-remove"],
)
def test_pairs_stay_in_the_schema(items, relation, low, high):
    jsonschema = pytest.importorskip("jsonschema")
    schema = array(items, low, high)
    space = space_of(pairs_of(schema, relation), 0)
    rng, cases = np.random.default_rng(0), space.first(40)
    cases += [one for case in cases for one in [space.changed(case, rng)] if one is not None]
    for case in cases:
        jsonschema.validate(case.left, schema)
        jsonschema.validate(case.right, schema)


def distinct_before_bound(rows, rng):
    seen, kept = set(), {}
    for user, product in rows:
        if product not in seen:
            seen.add(product)
            kept.setdefault(user, product)
    return len(kept) + rng.laplace(scale=1.0)


def wraps(amounts, rng):
    total = np.array(amounts, dtype=np.int64).sum().astype(np.int32)
    return float(total) + rng.laplace(scale=1.0)


def pairs_in_order(rows, rng):
    up = sum(second > first for first, second in zip(rows[::2], rows[1::2], strict=False))
    return up + rng.laplace(scale=1.0)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("target", "items", "relation", "low", "high", "level"),
    [
        (distinct_before_bound, PURCHASE, "user", 0, 10, 2),
        (wraps, WHOLE, "l1:1", 2, 2, 2**32 - 1),
        (pairs_in_order, UNIT, "add-remove", 0, 8, 3),
    ],
    ids=["users", "type limit", "order"],
)
def test_traces_lead_to_pairs_that_show_a_fault_of_structure(target, items, relation, low, high, level):
    claim = Claim(epsilon=1.0)
    space = space_of(pairs_of(array(items, low, high), relation), 0)

    def cost_of(one):
        return cost_of_one_run(target, DataPair(one.left, one.right), claim)

    led = dearest(space, space.first(48), cost_of, np.random.default_rng(0), 200)
    assert cost_of(led[0]) >= level


def test_untraced_targets_have_no_dearest_pair_and_take_few_attempts():
    space, tried = space_of(pairs_of(array(UNIT, 2, 4), "replace"), 0), []
    assert dearest(space, space.first(20), tried.append, np.random.default_rng(0), 200) == []
    assert len(tried) == 4


VISIT = {"type": "array", "prefixItems": [{"enum": ["a", "b", "c", "d"]}, UNIT], "minItems": 2, "maxItems": 2}


BISECTED = {
    "replace": (UNIT, 12),
    "add-remove": (UNIT, 0),
    "zero-out": (UNIT, 12),
    "user": (VISIT, 0),
    "replace-user": (VISIT, 12),
    "l1:0.3": (UNIT, 12),
    "replace:3": (UNIT, 12),
    "substitute-feature": (array(UNIT, 2, 2), 12),
    "add-remove:3": (UNIT, 0),
    "zero-out-user": (VISIT, 12),
    "l2:0.3": (UNIT, 12),
    "linf:0.3": (UNIT, 12),
    "l1:1": (WHOLE, 12),
}


@pytest.mark.few(6)
@pytest.mark.parametrize("relation", BISECTED)
def test_neighbours_across_a_decision_are_found_by_bisection(relation):
    """The decision lies between what is drawn: no two equal records have such a sum."""
    items, fewest = BISECTED[relation]
    space, calls = space_of(pairs_of(array(items, fewest, 12), relation), 0), []
    edge = 7.2534 if items is not WHOLE else 10**9 + 7

    def total(data):
        return sum(np.ravel([one[1] if items is VISIT else one for one in data]))

    def answer(data, run):
        calls.append(run)
        return {"above": total(data) > edge, "noisy": float(run)}

    found = beside_jumps(space, answer, np.random.default_rng(0), 400)
    assert found
    for one in found:
        check_near(Relation.parse(relation), one.left, one.right)
        assert (total(one.left) > edge) != (total(one.right) > edge)
    assert len(calls) <= 400


def test_first_rounds_are_small_beside_the_one_that_differs():
    game, rule = Game(2, 16, "unit", 1.0, contexts=False), RoundRelation(Relation.parse("replace"))
    named = [[row] * 16 for row in ([0.0, 1.0], [1.0, 1.0], [0.0, 0.0])]
    first = SequencePairs(lambda data: True, game, rule, 0, named, exact=True).first(8)
    small = [0.0, 1 / 64]
    assert [one.left for one in first[:2]] == [[[1.0, 1.0], *[small] * 15], [small, small, [1.0, 1.0], *[small] * 13]]
    assert [one.right[t] for one, t in zip(first, (0, 2), strict=False)] == [[0.0, 0.0]] * 2
    assert len(first) == 8


@pytest.mark.parametrize("relation", ["replace", "zero-out", "user:2", "user", "replace-losses", "l2:0.3", "linf:0.3"])
def test_rounds_across_a_decision_are_found_by_bisection(relation):
    game = Game(2, 8, "unit", 1.0, contexts=False, publication=False)
    rule = RoundRelation(Relation.parse(relation))
    row = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    named = [[{"user": f"u{t % 3}", "losses": one} if relation == "user" else one for t in range(8)] for one in row]
    space = SequencePairs(lambda data: True, game, rule, 0, named, exact=False)

    def total(data):
        return sum(sum(one["losses"] if isinstance(one, dict) else one) for one in data)

    found = beside_jumps(space, lambda data, run: str(total(data) > 4.6), np.random.default_rng(0), 400)
    assert found
    for one in found:
        rule.check(one.left, one.right)
        assert (total(one.left) > 4.6) != (total(one.right) > 4.6)


def test_a_search_begins_with_records_all_of_whose_numbers_are_at_an_edge():
    """Of 16 numbers that are drawn alone a sum of all was found to cost half of what it does."""

    def sums(data, rng):
        return np.sum(np.reshape(data, (-1, 16)), axis=0) + rng.laplace(scale=16.0, size=16)

    claim, space = Claim(epsilon=1.0), space_of(pairs_of(array(array(UNIT, 16, 16), 0, 4), "add-remove"), 0)

    def cost_of(one):
        return cost_of_one_run(sums, DataPair(one.left, one.right), claim)

    assert max(map(cost_of, space.first(4))) >= 0.9
    assert corners([[0.0, 0.5], [0.5, 0.25]]) == [[0.5, 0.5], [0.0, 0.25]]
    assert corners([[0.0, 0.5], [0.5, 0.0], [0.0, 0.0], ["a", 1.0], 3.0]) == [[0.5, 0.5]]


def test_what_costs_noise_and_decides_nothing_ranks_behind_what_decides():
    """The dearest pair of a trace moves both arms alike."""
    space = space_of(pairs_of(array(UNIT, 2, 2), "replace"), 0)
    costs = {"dear": 9.0, "telling": 1.0}
    dear, telling = space.candidate_of([0.0, 0.0], [0.0, 0.5]), space.candidate_of([0.0, 0.0], [1.0, 0.0])
    named = {dear.key: costs["dear"], telling.key: costs["telling"]}

    def answer(data, run):
        return int(data[0] > data[1])

    how = {"runs": 400, "rounds": 1}
    led, *_ = leads(space, [dear, telling], lambda one: named.get(one.key), answer, np.random.default_rng(0), **how)
    assert led == [telling]
    led, *_ = leads(space, [dear], lambda one: named.get(one.key), lambda d, r: 0.5, np.random.default_rng(0), **how)
    assert led == [dear]


def test_what_is_decided_is_all_but_floats():
    assert discrete({"arm": 1, "sum": 0.25}) == discrete({"arm": 1, "sum": 0.5}) != discrete({"arm": 2, "sum": 0.5})
    assert discrete([1.0, 2.0]) != discrete([1.0])
    assert discrete(float("nan")) != discrete(1.0)


def threshold_beside_a_mean(data, run):
    return np.array([np.mean(data) + (5.0 if np.mean(data) > 0.73 else 0.0) + run])


def wraps_silently(data, run):
    return float(np.array(data, dtype=np.int64).sum().astype(np.int16)) + run


@pytest.mark.parametrize(
    ("answer", "schema", "apart"),
    [
        (threshold_beside_a_mean, array(UNIT, 20, 20), 5.0),
        (wraps_silently, array(WHOLE | {"maximum": 2000}, 40, 40), 2**16 - 2000),
    ],
    ids=["threshold", "wrap"],
)
def test_numbers_that_jump_are_found_by_bisection(answer, schema, apart):
    found = beside_jumps(space_of(pairs_of(schema, "replace"), 0), answer, np.random.default_rng(0), 1000)
    assert found
    for one in found:
        check_near(Relation.parse("replace"), one.left, one.right)
        assert np.abs(answer(one.left, 0) - answer(one.right, 0)) >= apart


def test_what_moves_alike_everywhere_jumps_nowhere():
    space = space_of(pairs_of(array(UNIT, 20, 20), "replace"), 0)
    for answer in (lambda data, run: np.sum(data) + run, lambda data, run: [10**400, float("inf"), len(data)]):
        assert beside_jumps(space, answer, np.random.default_rng(0), 1000) == []


@pytest.mark.parametrize(
    ("relation", "left", "right", "simplest"),
    [
        ("replace", [0.99999, 5e-324, 0.3], [0.99999, 1.0, 0.3], ([1.0, 0.0, 0.3], [1.0, 1.0, 0.3])),
        ("add-remove", [0.99999, 5e-324], [0.99999], ([1.0, 0.0], [1.0])),
        ("l1:1", [0.7431, 0.25], [0.0, 0.25], ([1.0, 0.0], [0.0, 0.0])),
    ],
)
def test_simpler_values_are_zeros_ones_and_short_numbers_and_pairs_stay_neighbours(relation, left, right, simplest):
    space = space_of(pairs_of(array(UNIT, 1, 4), relation), 0)
    candidate = space.candidate_of(left, right)
    simpler = [(one.left, one.right) for one in space.simpler(candidate)]
    assert simplest in simpler or [*map(list, simplest)] in [[*map(list, one)] for one in simpler]
    for one in simpler:
        check_near(Relation.parse(relation), *one)


def test_a_pair_of_users_loses_records_one_by_one_as_it_is_shrunk():
    space = space_of(pairs_of(array(PURCHASE, 0, 10), "user"), 0)
    whole = [["x", 1], ["x", 2], ["a", 1], ["b", 2]]
    simpler = [(one.left, one.right) for one in space.simpler(space.candidate_of(whole, whole[2:]))]
    assert ([["x", 1], ["x", 2], ["a", 1]], [["a", 1]]) in simpler
    assert ([["x", 2], ["a", 1], ["b", 2]], [["a", 1], ["b", 2]]) in simpler


def biggest(data, rng):
    return max(data) + rng.normal(scale=0.5)


@pytest.mark.slow(reason="a search with its shrinking, in three other measures")
@pytest.mark.parametrize("measure", [GDP(mu=0.5), ZCDP(rho=0.125), RDP(order=8, epsilon=1.0)], ids=lambda m: m.kind)
def test_inputs_shrink_in_the_measure_of_the_claim(measure):
    # 4,000 runs of mu 2 against a claim of 0.5: a miss has a chance far below 1e-6.
    result = falsify(biggest, Claim(measure=measure), inputs=pairs_of(array(UNIT, 1, 4), "replace"), runs=4000)
    small = result.shrunk
    assert small is not None
    assert small.fresh
    assert small.to_json()["measure"] == measure.to_json()
    assert small.lower > measure.level
    assert sorted([*small.pair.left, *small.pair.right]) == [0, 1]


def test_decisions_are_counted_apart_from_floats():
    one = Candidate([0.0, 1.0], [1.0, 1.0])

    def answer(data, run):
        return {"arms": [int(data[0] > 0.5), 7], "noisy": float(run) + data[0]}

    assert 0 < share_decided_otherwise(answer, one) < 1
    assert share_decided_otherwise(answer, Candidate([0.0], [0.25])) == 0
    assert share_decided_otherwise(lambda data, run: data[0] + run, one) is None
    assert share_decided_otherwise(lambda data, run: [3] * (1 + int(data[0])), one) > 0


def several_visits(rows, rng):
    return len(rows) + rng.laplace(scale=1.0)


def test_the_dearest_pair_by_its_trace_reaches_the_last_generation_of_few_runs():
    # Certified from about 1,200 runs of epsilon 3 or more: a miss has a chance below 1e-6.
    inputs = pairs_of(array(PURCHASE, 1, 6), "user")
    result = falsify(several_visits, Claim(epsilon=1.0), inputs=inputs, runs=2000, shrink=False)
    assert result.verdict.name == "FALSIFIED"


CUSTOMER = {"id": {"enum": ["c1", "c2"]}, "age": {"type": "integer", "minimum": 0, "maximum": 9}}
ORDER = {"customer": {"enum": ["c1", "c2"]}, "product": {"enum": [1, 2]}}


def records_schema(fields, most):
    item = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {"type": "array", "items": item, "maxItems": most}


TABLES = {
    "type": "object",
    "properties": {"customers": records_schema(CUSTOMER, 2), "orders": records_schema(ORDER, 3)},
    "required": ["customers", "orders"],
    "additionalProperties": False,
}


def is_tables(data):
    names = {"customers": {"id", "age"}, "orders": {"customer", "product"}}
    return data.keys() == names.keys() and all(row.keys() == names[name] for name in names for row in data[name])


def gone(data):
    """A relation of one's own, which takes what the schema allows and nothing else."""
    assert is_tables(data)
    return [{**data, "customers": data["customers"][1:]}]


def leaves(records, known, rng):
    return {"customers": 3, "orders": []}


def raises(records, known, rng):
    raise KeyError(("customers", "*", "product"))


@pytest.mark.parametrize("strategy", ["schema", "strategy"])
def test_a_mutation_that_raises_or_leaves_the_schema_is_dropped(monkeypatch, strategy):
    """A search over a dictionary of tables ended in KeyError, and blamed the target."""
    planted = tuple((*kind, *([raises, leaves] * 8)) for kind in mutations.MUTATIONS)
    monkeypatch.setattr(mutations, "MUTATIONS", planted)
    drawn = pairs_of(TABLES, gone)
    if strategy == "strategy":  # which tells of no data whether it is in the domain
        drawn = neighbours(made_by(drawn).strategy, gone)
    space, rng = space_of(drawn, 0), np.random.default_rng(0)
    cases = space.first(20)
    cases += [other for case in cases for _ in range(4) if (other := space.changed(case, rng))]
    assert len(cases) > 40
    assert all(is_tables(side) for case in cases for side in (case.left, case.right))
