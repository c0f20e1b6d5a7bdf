"""Features have names, and the name says what the feature is."""

import numpy as np

from overclaim.audit.attacks.outputs.output_attacks import attacks_on
from overclaim.audit.encoding.encoder import Encoder
from overclaim.audit.encoding.features import Features
from overclaim.audit.pipeline.falsify import falsify_mechanism
from overclaim.mechanisms.claim import Claim


def test_a_name_says_what_its_feature_is():
    """The second column is constant and dropped: the others keep their numbers."""
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(5, 400))
    columns[1], columns[4, ::4] = 7.0, np.nan
    features = Features(columns)
    assert len(features.names) == len(set(features.names)) == len(features.rows)
    view = features.view(columns)
    values_of = {name: row(view) for name, row in zip(features.names, features.rows, strict=True)}
    kept = np.where(np.isnan(columns), features.columns[-1].centre, columns)[[0, 2, 3, 4]]
    wanted = {
        "column 1": columns[0],
        "column 3": columns[2],
        "column 5 is nan": np.isnan(columns[4]),
        "sum of the first half": kept[:2].sum(axis=0),
        "sum of the second half": kept[2:].sum(axis=0),
        "square of the second half's sum": kept[2:].sum(axis=0) ** 2,
        "sum": kept.sum(axis=0),
        "product of the halves' sums": kept[:2].sum(axis=0) * kept[2:].sum(axis=0),
        "position of the largest": kept.argmax(axis=0),
        "position of the smallest": kept.argmin(axis=0),
        "step to column 3": kept[1] - kept[0],
        "1 of 4 in order of size": kept.min(axis=0),
        "4 of 4 in order of size": kept.max(axis=0),
        "how many are nan": np.isnan(columns[4]),
        "position of the first number": np.zeros(400),
    }
    for name, values in wanted.items():
        np.testing.assert_allclose(values_of[name], values, atol=1e-8, err_msg=name)
    for name, centred in (("side of column 1", kept[0]), ("side of the step to column 4", kept[2] - kept[1])):
        assert np.mean(np.sign(values_of[name]) == np.sign(centred - np.median(centred))) > 0.95, name


def test_names_of_discrete_features():
    columns = np.random.default_rng(0).integers(0, 3, (3, 400)).astype(float)
    features = Features(columns)
    values_of = dict(zip(features.names, (row(features.view(columns)) for row in features.rows), strict=True))
    assert len(values_of) == len(features.rows)
    np.testing.assert_array_equal(values_of["largest"], columns.max(axis=0))
    np.testing.assert_array_equal(values_of["smallest"], columns.min(axis=0))
    np.testing.assert_array_equal(values_of["column 2 is 1"], columns[1] == 1)
    assert "column 1 is 1234568" in Features(columns[:1] + 1234567).names


def test_the_first_column_is_the_first_number_whatever_the_order_of_the_keys():
    outputs = [{"z": float(i), "a": float(-i), "b": {"y": 1.0, "x": 2.0}} for i in range(30)]
    columns = Encoder.fit(outputs)(outputs)
    np.testing.assert_array_equal(columns[0], -np.arange(30.0))
    np.testing.assert_array_equal(columns[1:4, 0], [2.0, 1.0, 0.0])


class Third:
    """Only its third number says anything."""

    batched = True

    def __call__(self, data, draws, runs):
        return np.stack([np.full(runs, 7.0), np.zeros(runs), data + draws.generator.laplace(size=runs)])


def test_the_attack_says_which_feature_it_looks_at():
    result = falsify_mechanism(Third(), Claim(epsilon=1.0), left=2, right=0, runs=20_000)
    assert result.attack == "single feature (column 3)"
    models = attacks_on(_view(), thorough=True)
    assert "single feature (sum)" in {model.name for model in models}


def _view():
    """The worlds differ in every column."""
    rng = np.random.default_rng(0)
    left = rng.random(4000) < 0.5
    columns = rng.normal(size=(4, left.size)) + 0.5 * left
    return Features(columns).view(columns).labelled(left)
