"""The models of diffprivlib, each released as what it has learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

import numpy as np

from ...library_entry import Finding, LibraryEntry, Mechanism, Strategy
from .package import LIBRARY, NONE_FOUND, TRACKER, accounted_alone, hundredths, library_entry, random_state


def _rows(features: int, values: Strategy, labels: Strategy, min_rows: int = 2, max_rows: int = 5) -> Strategy:
    """Return the strategy of (X, y), rows of numbers with their labels."""

    def strategy(st: ModuleType) -> object:
        row = st.tuples(*[values(st)] * features, labels(st))
        lists = st.lists(row, min_size=min_rows, max_size=max_rows)
        return lists.map(lambda rows: (np.array([row[:-1] for row in rows]), np.array([row[-1] for row in rows])))

    return strategy


def _points(values: Strategy, features: int, min_points: int = 2) -> Strategy:
    def strategy(st: ModuleType) -> object:
        lists = st.lists(st.tuples(*[values(st)] * features), min_size=min_points, max_size=5)
        return lists.map(lambda rows: np.array(rows, dtype=float))

    return strategy


def _classes(st: ModuleType) -> object:
    return st.integers(0, 1)


def _both_classes(data: Sequence[float]) -> bool:
    return len(np.unique(data[1])) == 2


def _signs(st: ModuleType) -> object:
    return st.sampled_from([1.0, -1.0])


def _hundreds(st: ModuleType) -> object:
    return st.sampled_from([0.0, 100.0, -100.0])


def _model(name: str, attributes: tuple[str, ...], **options: object) -> Callable[[], Mechanism]:
    """Return what fits a model and releases what it has learned."""

    def build() -> Mechanism:
        kind = getattr(LIBRARY.load("diffprivlib.models"), name)

        def mechanism(data: object, rng: np.random.Generator) -> object:
            parts = data if isinstance(data, tuple) else (data,)
            model = kind(epsilon=1.0, random_state=random_state(rng), **options).fit(*parts)
            return {attribute: np.asarray(getattr(model, attribute)) for attribute in attributes}

        return accounted_alone(mechanism)

    return build


def _decisions() -> Mechanism:
    """Return what fits a logistic regression and releases what it decides at 1 and -1, cut off at 100 beyond 0.

    Its intercept is often near 1e17, beside which attacks on it lose what the small ones tell.
    """
    kind = LIBRARY.load("diffprivlib.models").LogisticRegression

    def mechanism(data: Sequence[object], rng: np.random.Generator) -> object:
        model = kind(epsilon=1.0, data_norm=1.0, random_state=random_state(rng)).fit(*data)
        return np.clip(model.decision_function(np.array([[1.0], [-1.0]])), -100, 100)

    return accounted_alone(mechanism)


def _forest(name: str, **options: object) -> Callable[[], Mechanism]:
    """Return what fits trees of one split on one feature in [0, 1], and releases their thresholds and labels."""

    def build() -> Mechanism:
        kind = getattr(LIBRARY.load("diffprivlib.models"), name)
        parameters = {"max_depth": 1, "bounds": (0, 1), "classes": [0, 1], **options}

        def mechanism(data: Sequence[object], rng: np.random.Generator) -> object:
            model = kind(epsilon=1.0, random_state=random_state(rng), **parameters).fit(*data)
            trees = [tree.tree_ for tree in getattr(model, "estimators_", [model])]
            return {
                "threshold": [float(tree.threshold[0]) for tree in trees],
                "label": [tree.value[1:, 0].argmax(axis=1).tolist() for tree in trees],  # below it, and above
            }

        return accounted_alone(mechanism)

    return build


_LABELS = Finding(
    false="a record whose label is replaced moves two counts of a leaf, and the label is chosen as if one moved "
    "(`_FittingTree.fit` in `diffprivlib/models/forest.py`: PermuteAndFlip with sensitivity 1 and monotonic=True)",
    answer='The option monotonic is documented by "adding an individual to the underlying dataset": neighbours could be '
    "meant to have one record more or less. The relation of the model is not documented.",
    repair="say so, or leave out monotonic=True",
    upstream=NONE_FOUND,
)
_LINEAR = Finding(
    false="the sensitivity of the sums of squares of a feature is the square of its lower bound, whatever its upper one: "
    "with the bounds (0, 1) they have no noise (`_construct_regression_obj` in "
    "`diffprivlib/models/linear_regression.py`: bounds_X[0][i] stands there twice)",
    answer="A slip, which the tracker knows; without an intercept it is harmless for bounds that are symmetric around 0.",
    repair="take the larger of |bounds_X[0][i]| and |bounds_X[1][i]|",
    upstream=f"{TRACKER}/104 and {TRACKER}/105, open, with a patch in /110",
    disclosed="2025-09-20",
)
_LOGISTIC = Finding(
    false="the second derivative of the objective is bounded by 0.25 times the square of the data's norm, and the noise "
    "is calculated with 0.25 times the norm itself (`_logistic_regression_path` in "
    "`diffprivlib/models/logistic_regression.py` and `Vector.randomise` in `diffprivlib/mechanisms/vector.py`)",
    answer="For vectors of norm at most 1, as in the paper, it is the same: for data of that norm without an intercept.",
    repair="function_sensitivity = 0.25 * data_norm",
    upstream=f"in {TRACKER}/10, closed, an author derives the bound for a norm q: 2 c q, where the proof has 2 c for the "
    f"norm 1; of the square {NONE_FOUND}",
)
_INTERCEPT = Finding(
    false="the intercept, which is fitted by default, is not regularised, and the noise is calculated as if every coefficient "
    "were (`_logistic_regression_path` in `diffprivlib/models/logistic_regression.py`: LinearModelLoss of scikit-learn leaves "
    "the intercept out of its penalty, and Vector is given alpha = 1 / C)",
    answer="The documentation cites the paper for what it adapts, and the paper has no intercept; what is released is cut off "
    "by us.",
    repair="regularise the intercept: with a column of ones in the data and fit_intercept=False no violation was found",
    upstream=NONE_FOUND,
)
_NAIVE = Finding(
    false="which classes occur is released, so a label that no other record has shows; and the noisy counts of the classes "
    "lie between 1 and the number of records, and add up to it, so that is released too (`_noisy_class_counts` in "
    "`diffprivlib/models/naive_bayes.py`: unique_y, upper=n_total)",
    answer="The classes that occur, and the number of records, could be meant to be public. Neither is documented.",
    repair="say so, or take the classes as an argument and the number of records with noise",
    upstream=NONE_FOUND,
    reading=True,  # with the classes public, under replace
)
_COUNTS = Finding(
    false="the noisy counts of the classes lie between 1 and the number of records, and add up to it: it is released "
    "(`_noisy_class_counts` in `diffprivlib/models/naive_bayes.py`: upper=n_total)",
    answer="Neighbours could be meant to replace a record, and so to have as many: then no violation was found in data with "
    "both classes. The relation is not documented.",
    repair="say so",
    upstream=NONE_FOUND,
)
_SAMPLES = Finding(
    false="the noisy eigenvalues are divided by the number of records less one (`_fit_full` in "
    "`diffprivlib/models/pca.py`), so the scale of the noise says how many there are",
    answer="Neighbours could be meant to replace a record, and so to have as many: then no violation was found. The "
    "relation is not documented.",
    repair="say so",
    upstream=NONE_FOUND,
)
_BOX: dict[str, object] = {"bounds": (0, 1)}
_COEFFICIENTS = ("coef_", "intercept_")
#: Name of the entry, model, what it releases, its options, its data, its documentation's sentence, finding.
_MODELS: tuple[tuple[str, str, tuple[str, ...], dict[str, object], Strategy, str, Finding | None], ...] = (
    (
        "LinearRegression", "LinearRegression", ("coef_",),
        {"bounds_X": (0, 1), "bounds_y": (0, 1), "fit_intercept": False}, _rows(1, hundredths, hundredths),
        "Ordinary least squares Linear Regression with differential privacy.", _LINEAR,
    ),
    (
        "LogisticRegression-norm-100", "LogisticRegression", _COEFFICIENTS, {"data_norm": 100.0},
        _rows(1, _hundreds, _classes, min_rows=3), "Logistic Regression (aka logit, MaxEnt) classifier with differential privacy.", _LOGISTIC,
    ),
    (
        "LogisticRegression", "LogisticRegression", _COEFFICIENTS, {"data_norm": 1.0}, _rows(1, hundredths, _classes),
        "Logistic Regression (aka logit, MaxEnt) classifier with differential privacy.", None,
    ),
    (
        "GaussianNB", "GaussianNB", ("theta_", "var_", "class_count_"), _BOX, _rows(1, hundredths, _classes),
        "Gaussian Naive Bayes (GaussianNB) with differential privacy", _NAIVE,
    ),
    (
        "GaussianNB-both-classes", "GaussianNB", ("theta_", "var_", "class_count_"), _BOX,
        _rows(1, hundredths, _classes, min_rows=3),
        "Gaussian Naive Bayes (GaussianNB) with differential privacy", _COUNTS,
    ),
    (
        "KMeans", "KMeans", ("cluster_centers_",), {"n_clusters": 2, **_BOX}, _points(hundredths, 1),
        "K-Means clustering with differential privacy.", None,
    ),
    (
        "PCA", "PCA", ("components_", "explained_variance_"), {"n_components": 1, "data_norm": 1.0, "centered": True},
        _points(lambda st: st.integers(-7, 7).map(lambda tenth: tenth / 10), 2),
        "Principal component analysis (PCA) with differential privacy.", _SAMPLES,
    ),
    (
        "StandardScaler", "StandardScaler", ("mean_", "var_"), _BOX, _points(hundredths, 1),
        "Standardize features by removing the mean and scaling to unit variance, calculated with differential privacy guarantees.",
        None,
    ),
)  # fmt: skip
#: Model, its options, its documentation's sentence: all choose their labels alike.
_FORESTS: tuple[tuple[str, dict[str, object], str], ...] = (
    ("DecisionTreeClassifier", {}, "Decision Tree Classifier with differential privacy."),
    ("RandomForestClassifier", {"n_estimators": 2}, "Random Forest Classifier with differential privacy."),
)
#: Runs, where a fit takes long.
_RUNS = {
    "LogisticRegression": 2000,
    "LogisticRegression-norm-100": 60_000,
    "GaussianNB": 3000,
    "GaussianNB-both-classes": 3000,
    "KMeans": 1000,
    "PCA": 10_000,
    "DecisionTreeClassifier": 10_000,
    "StandardScaler": 6000,
}
#: Seconds of a fit beyond which inputs are left out: without noise on a sum of squares that is 0 its optimiser runs away.
_LIMITS = {"LinearRegression": 0.1}


#: The relations under which a model's claim is expected to be false: where noise is missing, any; else where that was
#: certified or read.
_RELATIONS_OF: dict[str, tuple[str, ...]] = {
    "LinearRegression": ("replace", "add-remove"),
    "LogisticRegression-norm-100": ("replace", "add-remove"),
    "GaussianNB": ("replace", "add-remove"),
    "GaussianNB-both-classes": ("add-remove",),
    "PCA": ("add-remove",),
}


def _models() -> Iterator[LibraryEntry]:
    for subject, model, attributes, options, data, quotation, finding in _MODELS:
        yield library_entry(
            what=subject,
            quotation=quotation,
            where=f"documentation of diffprivlib.models.{model}",
            strategy=data,
            build=_model(model, attributes, **options),
            # Of one class alone its logistic regression raises: so an exception tells the labels.
            allowed=_both_classes if subject.endswith("both-classes") or model == "LogisticRegression" else None,
            runs=_RUNS.get(subject, LibraryEntry.runs),
            call_limit=_LIMITS.get(subject),
            finding=finding,
            false_under=_RELATIONS_OF.get(subject, ()),
        )
    yield library_entry(
        what="LogisticRegression-decisions",
        quotation="Logistic Regression (aka logit, MaxEnt) classifier with differential privacy.",
        where="documentation of diffprivlib.models.LogisticRegression",
        strategy=_rows(1, _signs, _classes, max_rows=3),
        build=_decisions,
        allowed=_both_classes,
        finding=_INTERCEPT,
        false_under=LibraryEntry.relations,
    )
    for name, options, quotation in _FORESTS:
        yield library_entry(
            what=name,
            quotation=quotation,
            where=f"documentation of diffprivlib.models.{name}",
            strategy=_rows(1, hundredths, _classes, min_rows=1),
            build=_forest(name, **options),
            runs=_RUNS.get(name, 4000),
            finding=_LABELS,
            false_under=("replace",),
        )


ENTRIES: tuple[LibraryEntry, ...] = tuple(_models())
