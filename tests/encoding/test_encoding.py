"""Outputs of every form: what tells two of them apart is seen, what cannot be read is refused by its name."""

import math
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from overclaim.audit.attacks.outputs.output_attacks import attacks_on
from overclaim.audit.encoding.columns import LARGE
from overclaim.audit.encoding.encoder import MISSING, MOST_COUNTED, UNSEEN, Encoder
from overclaim.audit.encoding.features import Features
from overclaim.audit.encoding.objects import category
from overclaim.audit.encoding.places import MOST_READ, Size, scalars
from overclaim.audit.encoding.texts import MAX_INTEGER
from overclaim.audit.pipeline.falsify import falsify_mechanism
from overclaim.audit.verdicts.verdict import Verdict
from overclaim.learners.protocol import LearnerError
from overclaim.mechanisms.claim import Claim


@dataclass
class Answer:
    value: float


def batched(function):
    function.batched = True
    return function


#: Outputs of (bit, rng) in which a bit shows; it is the input's nine times in ten, so that epsilon is ln 9 = 2.2.
SHOWN = {
    "nesting": lambda bit, rng: [[1], [2, 3]] if bit else [[1, 2], [3]],
    "empty": lambda bit, rng: [[], []] if bit else [[]],
    "list or tuple": lambda bit, rng: [1, 2] if bit else (1, 2),
    "list or number": lambda bit, rng: [1] if bit else 1,
    "fraction": lambda bit, rng: Fraction(round(1000 * (5 * bit + rng.random())), 1000),
    "decimal": lambda bit, rng: Decimal(5 * bit + rng.random()),
    "complex": lambda bit, rng: complex(rng.normal(), 9 * bit + rng.random()),
    "large": lambda bit, rng: 2**60 + bit,
    "beyond floats": lambda bit, rng: [1 << (5000 + bit), rng.normal()],
    "large beside noise": lambda bit, rng: [2**60 + 1000 * bit + int(rng.integers(500)), rng.normal()],
    "larger": lambda bit, rng: [10**400 + bit, None],
    "below": lambda bit, rng: [-(2**60) - bit, "text"],
    "sign of zero": lambda bit, rng: -0.0 if bit else 0.0,
    "sign of zero beside noise": lambda bit, rng: [rng.normal(), -0.0 if bit else 0.0],
    "sign of zero beside text": lambda bit, rng: ["text", -0.0 if bit else 0.0],
    "truth": lambda bit, rng: True if bit else 1,
    "whole": lambda bit, rng: 1.0 if bit else 1,
    "text": lambda bit, rng: f"{rng.integers(10**9)}-{bit}",
    "words": lambda bit, rng: f"user{rng.integers(10**9)}: {'yes' if bit else 'no'}, {rng.random()}",
    "number in a text": lambda bit, rng: f'{{"noisy": {3 * bit + rng.random():.6f}}}',
    "end of a text": lambda bit, rng: rng.bytes(6).hex() + "ab"[bit],
    "last of many": lambda bit, rng: "-".join("x" * int(rng.integers(1, 9))) + f"-{rng.integers(10**9)}-{bit}",
    "length of a text": lambda bit, rng: rng.bytes(6 + bit).hex(),
    "bytes": lambda bit, rng: rng.bytes(6) + bytes([bit]),
    "bytes of text": lambda bit, rng: f"{rng.integers(10**9)}-{bit}".encode(),
    "text in a list": lambda bit, rng: [rng.normal(), f"{rng.integers(10**9)}-{bit}"],
    "object": lambda bit, rng: Answer(7 * bit + rng.random()),
    "arrays": lambda bit, rng: np.array([rng.normal(), 5.0 * bit + rng.random()]),
    "array of whole numbers": lambda bit, rng: np.array([2**60 + bit]),
    "arrays of two shapes": lambda bit, rng: np.zeros((2, 1) if bit else (1, 2)),
    "tiny": lambda bit, rng: 1e-200 * (bit + rng.random()),
    "tiny steps": lambda bit, rng: [1e-12 * (2 * bit + rng.random()), rng.normal()],
    "beside huge": lambda bit, rng: [1e155 * rng.normal(), 3.0 * bit + rng.random()],
    "huge": lambda bit, rng: [1e300 * (2 * bit + rng.random()), rng.normal()],
    "beside heavy tails": lambda bit, rng: [float(np.exp(rng.normal(0, 100))), float(bit), rng.normal()],
    "both ends": lambda bit, rng: [1.7e308 * (1 - 2 * bit), rng.normal()],
}
EXTREME = ("beside huge", "huge", "beside heavy tails", "both ends")


@pytest.mark.few(12)
@pytest.mark.parametrize(
    ("form", "runs"),
    [(form, 2000) for form in SHOWN] + [pytest.param(form, 41_000, marks=pytest.mark.slow) for form in EXTREME],
)
def test_a_bit_in_any_form_is_seen(form, runs):
    """At 41,000 runs trees are grown as well. By chance a bound misses 1 with probability below 1e-6."""

    def mechanism(data, rng):
        return SHOWN[form](data if rng.random() < 0.9 else 1 - data, rng)

    result = falsify_mechanism(mechanism, Claim(epsilon=1.0), left=1, right=0, runs=runs)
    assert result.verdict is Verdict.FALSIFIED, str(result)


def text_and_list(data, rng):
    return [f"{rng.integers(10**9)}-{data if rng.random() < 0.9 else 1 - data}", [rng.normal()] * int(rng.integers(3))]


@pytest.mark.slow(reason="two audits of 20,000 runs")
def test_processes_encode_alike():
    one, two = (
        falsify_mechanism(text_and_list, Claim(epsilon=1.0), left=1, right=0, runs=20_000, jobs=jobs)
        for jobs in (1, 2)
    )
    assert one.certificate == two.certificate
    assert one.event == two.event


@pytest.mark.parametrize(
    "shown",
    [
        lambda bits, _: 2**60 + bits.astype(np.int64),
        lambda bits, _: np.uint64(2**63) + bits.astype(np.uint64),
        lambda bits, _: np.where(bits, -0.0, 0.0),
        lambda bits, other: np.stack([other, np.where(bits, -0.0, 0.0)]),
        lambda bits, _: 1e-300 * (bits + 1.0),
        lambda bits, _: bits + 1j,
        lambda bits, _: [10**30 + bit for bit in bits.tolist()],
    ],
    ids=["whole", "unsigned", "zero", "zeros", "tiny", "complex", "larger"],
)
def test_a_bit_in_any_batch_is_seen(shown):
    @batched
    def mechanism(data, draws, runs):
        return shown(draws.uniform(runs) < 0.1 + 0.8 * data, draws.uniform(runs))

    result = falsify_mechanism(mechanism, Claim(epsilon=1.0), left=1, right=0, runs=2000)
    assert result.verdict is Verdict.FALSIFIED, str(result)


class Slots:
    __slots__ = ("value",)


class Fitted:
    """A model as scikit-learn's: its text says how it was made, not what it has learned."""

    def __init__(self, learned=None):
        self.coef_ = learned

    def fit(self, data):
        return Fitted(data)

    def __repr__(self):
        return "Fitted()"


async def coroutine(data, rng):
    return data


def generator(data, rng):
    yield data


async def asynchronous_generator(data, rng):
    yield data


@pytest.mark.parametrize(
    ("mechanism", "name"),
    [
        (coroutine, "a coroutine"),
        (generator, "a generator"),
        (asynchronous_generator, "an async_generator"),
        (lambda data, rng: Slots(), "a Slots"),
        (lambda data, rng: [1, {"x": object()}], "an object"),
        (lambda data, rng: print, "a builtin_function_or_method"),
        (batched(lambda data, draws, runs: Slots()), "a Slots"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_name(mechanism, name):
    with pytest.raises(LearnerError, match=f"returned {name}: expected a number, a text"):
        falsify_mechanism(mechanism, Claim(epsilon=1.0), left=1, right=0, runs=200)


def test_a_fitted_model_is_not_read_by_its_text():
    def fit(data, rng):
        return {"model": Fitted().fit(data + rng.laplace())}

    with pytest.raises(LearnerError, match=r"returned a Fitted: expected .*; which attributes .*--attributes .*says$"):
        falsify_mechanism(fit, Claim(epsilon=1.0), left=1, right=0, runs=200)


@dataclass(frozen=True)
class Weight:
    """No model: its text says all that it is, and lambda is a word of Python's."""

    lambda_: float


def test_an_attribute_that_ends_in_an_underscore_makes_no_model():
    def release(data, rng):
        return Weight(lambda_=float(data + rng.laplace(scale=0.2) > 0.5))

    result = falsify_mechanism(release, Claim(epsilon=1.0), left=1, right=0, runs=2000)
    assert result.verdict is Verdict.FALSIFIED, str(result)


@dataclass
class Quiet:
    """Its text does not show the value."""

    name: str
    value: float = field(repr=False)


def in_a_hidden_field(value):
    return Quiet("count", value)


def in_a_sparse_matrix(value):
    return sparse.csr_matrix([[0.0, value], [0.0, 0.0]])


def in_a_large_sparse_array(value):
    return sparse.coo_array(([1.0, value], ([0, 1], [7, 10**6])), shape=(2, 10**7))


@pytest.mark.few(1)
@pytest.mark.parametrize("hide", [in_a_hidden_field, in_a_sparse_matrix, in_a_large_sparse_array])
def test_a_value_that_the_text_of_an_object_does_not_show_is_seen(hide):
    result = falsify_mechanism(
        lambda data, rng: hide(data + rng.laplace(scale=0.3)), Claim(epsilon=1.0), left=1, right=0, runs=2000
    )
    assert result.verdict is Verdict.FALSIFIED, str(result)


def test_an_object_whose_text_leaves_parts_out_is_refused():
    def release(data, rng):
        return SimpleNamespace(counts=np.append(np.zeros(2000), data + rng.laplace()))

    with pytest.raises(LearnerError, match="returned a SimpleNamespace, whose text leaves parts out: expected a num"):
        falsify_mechanism(release, Claim(epsilon=1.0), left=1, right=0, runs=200)
    assert category(ValueError("wait...")) == "ValueError('wait...')"


def test_endless_nesting_is_refused():
    def cycle(data, rng):
        output = [data]
        output.append(output)
        return output

    with pytest.raises(LearnerError, match="levels of nesting"):
        falsify_mechanism(cycle, Claim(epsilon=1.0), left=1, right=0, runs=200)


def test_ragged_batches_are_refused_in_one_line():
    ragged = batched(lambda data, draws, runs: [[1]] + [[1, 1]] * (runs - 1))
    with pytest.raises(LearnerError, match=r"must return \(\d+,\) or \(dim, \d+\) outputs, got ragged lists"):
        falsify_mechanism(ragged, Claim(epsilon=1.0), left=1, right=0, runs=200)


def test_scalars_of_nested_outputs():
    leaves = list(scalars({"b": (1, None), "a": np.array([2.0])}))
    assert leaves == [
        ((), Size("dict", 4)),
        ((0,), "'a'"),
        (("'a'",), Size("list", 1)),
        (("'a'", 0), 2.0),
        ((2,), "'b'"),
        (("'b'",), Size("tuple", 2)),
        (("'b'", 0), 1),
        (("'b'", 1), None),
        ((-1,), Size("list", 2)),
        ((-1, 0), 1),
        ((-1, 1), 0),
    ]
    assert list(scalars({"a": np.array([2.0]), "b": (1, None)})) == leaves[:-3]


@batched
def even_noise(data, draws, runs):
    return data + 2.0 * np.round(draws.generator.laplace(scale=1000.0, size=runs))


def test_the_parity_of_whole_numbers_is_seen():
    """Seeded. The worlds have no output in common; a threshold on numbers tells nothing of that."""
    result = falsify_mechanism(even_noise, Claim(epsilon=1.0), left=0, right=1, runs=4_000)
    assert result.epsilon_lower > 5.0


def mask_of_bits(data, rng, size=48):
    """One bit of a number is a randomised response of epsilon 2, all others are fair."""
    told = (rng.random() < 1 / (1 + math.exp(-2.0))) == data
    return int(rng.integers(2**size)) & ~(1 << 20) | told << 20


def bytes_of_bits(data, rng):
    return (mask_of_bits(data, rng) << 16).to_bytes(16, "little")


@pytest.mark.few(1)
@pytest.mark.parametrize("release", [mask_of_bits, bytes_of_bits])
def test_the_bits_of_whole_numbers_are_seen(release):
    """Seeded: 8592. Thresholds and parities of the numbers tell nothing of one bit in the middle."""
    result = falsify_mechanism(release, Claim(epsilon=1.0), left=True, right=False, runs=4_000, seed=8592)
    assert result.epsilon_lower > 1.5


def in_order(data, rng):
    """Noise of epsilon 1 hides the counts; which of them is the larger one, their order tells."""
    counts = {"a": data[0], "b": data[1]}
    return {key: counts[key] + rng.laplace(scale=2.0) for key in sorted(counts, key=lambda key: -counts[key])}


def in_order_of_labels(data, rng):
    return pytest.importorskip("pandas").Series(in_order(data, rng))


def in_order_of_columns(data, rng):
    return pytest.importorskip("pandas").DataFrame([in_order(data, rng)])


@pytest.mark.few(2)
@pytest.mark.parametrize("mechanism", [in_order, in_order_of_labels, in_order_of_columns])
def test_the_order_of_keys_labels_and_columns_is_seen(mechanism):
    """Seeded. Keys were sorted before anything looked at them: each was said to be private."""
    result = falsify_mechanism(mechanism, Claim(epsilon=1.0), left=[3, 2], right=[2, 3], runs=2_000)
    assert result.epsilon_lower > 3.0


def rows_of_a_slice(data, rng):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"v": rng.laplace(size=3)}, index=pandas.RangeIndex(data[0], data[0] + 3))


@pytest.mark.slow(reason="one form of output more")
def test_the_labels_of_a_slice_of_rows_are_seen():
    """A range was taken for no labels at all, whatever it began with."""
    result = falsify_mechanism(rows_of_a_slice, Claim(epsilon=1.0), left=[4], right=[3], runs=2_000)
    assert result.epsilon_lower > 5.0


def test_encoder_marks_unseen_categories_and_missing_scalars():
    encoder = Encoder.fit([("a", 1.0), ("b",)])
    columns = encoder([("c", 2.0), ("a",)])
    #                                       the number, its kind and that of the text; two sizes
    np.testing.assert_array_equal(columns, [[2, np.nan], [UNSEEN, 1], [0, MISSING], [2, 1], [1, 1]])


def randomised_bits(data, rng):
    """Twenty bits as a text: each is kept with a chance of e^(1/4) to 1, and four of them differ."""
    keep = rng.random(len(data)) < 1 / (1 + math.exp(-1 / 4))
    return "".join(bit if kept else "10"[int(bit)] for bit, kept in zip(data, keep, strict=True))


@pytest.mark.slow(reason="one form of output more")
def test_each_character_of_texts_of_one_length_is_seen():
    """Seeded. Of a million texts of twenty bits the number that their digits make told next to nothing."""
    left, right = "0" * 20, "01" + "0" * 8 + "1" + "0" * 8 + "1"
    result = falsify_mechanism(randomised_bits, Claim(epsilon=1.0), left=left, right=right, runs=20_000)
    assert result.epsilon_lower > 0.5


@pytest.mark.parametrize("style", ["{:.3f}, {:.3f}", "[{:.3f},{:.3f}]", "a={:+.3f} b={:+.3f}"])
def test_the_sign_of_a_number_in_a_text_is_its_own(style):
    """Which of two numbers has the larger value is told by both with their signs."""
    encoder = Encoder.fit([style.format(x, -x) for x in np.linspace(-3, 3, 101)])
    columns = encoder([style.format(-1.25, 2.5)])
    assert {-1.25, 2.5} <= set(columns[:, 0].tolist())


def test_a_hyphen_between_numbers_is_no_sign():
    columns = Encoder.fit([f"2026-{i:02d}-7" for i in range(100)])(["2026-11-7"])
    assert {2026.0, 11.0, 7.0} <= set(columns[:, 0].tolist())


def test_vectors_are_columns_as_they_are():
    numbers = np.random.default_rng(0).normal(size=(3, 50))
    assert np.shares_memory(Encoder.fit(numbers)(numbers), numbers)
    np.testing.assert_array_equal(Encoder.fit(numbers.T.tolist())(numbers.T.tolist()), numbers)
    np.testing.assert_array_equal(Encoder.fit(list(numbers.T))(list(numbers.T)), numbers)
    np.testing.assert_array_equal(Encoder.fit(numbers[0].tolist())(numbers[0].tolist()), numbers[:1])


def test_vectors_of_another_form_after_training():
    encoder = Encoder.fit([[1.0, -0.0], [2.0, 0.0]])
    np.testing.assert_array_equal(encoder([[3.0, None], [4.0, -0.0]]), [[3, 4], [np.nan, -0.0], [UNSEEN, 1]])
    assert Encoder.fit([(1, "a")] * 9 + [(2, "b")])(np.ones((2, 4))).shape == (4, 4)


def test_large_whole_numbers_keep_their_low_digits():
    numbers = [MAX_INTEGER * 3 + 5, -MAX_INTEGER * 2 - 1, 7]
    np.testing.assert_array_equal(Encoder.fit(numbers)(numbers)[1], [5, MAX_INTEGER - 1, 7])
    np.testing.assert_array_equal(Encoder.fit([*numbers, None])(numbers)[1], [5, MAX_INTEGER - 1, 7])


def test_numbers_too_large_for_a_float_are_infinite():
    columns = Encoder.fit([(1, "a"), (2, "b")])([(10**400, "a"), (-(10**400), "b")])
    np.testing.assert_array_equal(columns[0], [math.inf, -math.inf])


@pytest.mark.few(2)
@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1.0, 1e60, 1e200, 1e308])
def test_features_and_scores_are_finite_and_silent(scale):
    rng = np.random.default_rng(0)
    columns = np.clip(rng.standard_cauchy((3, 9000)), -1.7, 1.7) * scale
    left = rng.random(9000) < 0.5
    columns[1, ::7] = math.inf
    features = Features(columns)
    extreme = np.array([[1e308, -1e308, 5e-324, math.nan], [-math.inf, 1.0, 0.0, LARGE], [1e-5, 1e300, 3.0, -0.0]])
    for matrix in (columns, extreme):
        assert np.isfinite(features.matrix(features.view(matrix))).all()
    train = features.view(columns).labelled(left)
    for attack in attacks_on(train, thorough=True):
        assert np.isfinite(attack.learn(train)(features.view(extreme))).all()


@pytest.mark.few(2)
@pytest.mark.parametrize("power", [-200, -40, 40, 200])
def test_the_unit_of_the_outputs_does_not_matter(power):
    """Scores are rounded to 9 digits: in small units every number was 0, and only bins of it were seen."""

    def bound(power):
        @batched
        def mechanism(data, draws, runs):
            rare = draws.uniform(runs) < 0.02 * data
            return np.ldexp(draws.normal(runs) + rare * draws.uniform(runs) + 30 * rare, power)

        return falsify_mechanism(mechanism, Claim(epsilon=1.0), left=1, right=0, runs=60_000).epsilon_lower

    assert bound(power) > bound(0) - 0.01
    assert bound(power) > 2


def test_columns_of_whole_numbers_and_texts_are_those_of_each_output():
    """What is equal may be seen as different: -0.0 and 0.0, True and 1."""
    outputs = [[-0.0, True, 10**400, "a"], [0.0, 1, 3, b"a"], [math.nan, 1.0, -5, None]] * 3
    encoder = Encoder.fit(outputs)
    together = encoder(outputs)
    np.testing.assert_array_equal(together, np.hstack([encoder([output]) for output in outputs]))
    assert len(set(map(tuple, together.T.tolist()[:2]))) == 2
    codes = [place.codes for place in encoder.places]
    assert codes[1:4] == [{"-0.0": 1}, {"bool": 1, "int": 2}, {"int": 1, "int of 1329 bits": 2}]


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ([{"a": 1, "b": 2}, {"b": 3, "c": 4}], [[1, math.nan], [2, 3], [math.nan, 4]]),
        ([set("abcdefgh"), set("bcdefghi")] * 5, [[1, 0], [0, 1]]),
        ([list("aabbccde"), list("edccbbba")] * 5, [[2, 1], [2, 3]]),
        ([[(1, "x")] * 8, [(1, "x"), (2, "x")] * 4] * 5, [[8, 4], [0, 4]]),
    ],
)
def test_what_a_dictionary_has_by_key_and_a_list_or_set_in_any_order_has_a_column(outputs, expected):
    columns = Encoder.fit(outputs)(outputs)[:, :2]
    for row in expected:
        assert any(np.array_equal(column, row, equal_nan=True) for column in columns)


@pytest.mark.slow(reason="16,000 lists")
def test_the_parts_of_many_lists_have_no_more_columns_than_those_of_one():
    outputs = [[[(run + i * row) % 90 for i in range(8)] for row in range(1, 41)] for run in range(400)]
    together = Encoder.fit(outputs)
    assert sum(map(len, together.bags.values())) == MOST_COUNTED
    assert len(together(outputs)) <= MOST_COUNTED + 40 * (8 + 1) + 1 + 2 * MOST_READ  # as a table, by an id too
