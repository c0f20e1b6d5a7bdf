"""Objects of libraries that are read by their values, since their texts round numbers and cut long ones off."""

import warnings

import numpy as np
import pytest

from overclaim import Claim, Verdict, falsify_mechanism
from overclaim.audit.assumptions.attributes import WithAttributes
from overclaim.audit.attacks.places import scalars
from overclaim.learners.protocol import LearnerError

VALUE = 1e6 + 0.25


class Short:
    """Its text rounds its numbers."""

    name = "a"

    def __init__(self, values):
        self.values = values

    def __repr__(self):
        return f"[{self.values[0]:.6g}]"


class Series(Short):
    def to_list(self):
        return self.values


class Frame(Short):
    def get_columns(self):
        return [Series(self.values)]


class LazyFrame(Short):
    def collect(self):
        return Frame(self.values)


class Column(Short):
    def to_pylist(self):
        return self.values


class Table(Short):
    """As one of pyarrow: two columns may have one name."""

    column_names = ("a", "a")

    @property
    def columns(self):
        return [Column(self.values), Column([1.0])]


class Scalar(Short):
    def as_py(self):
        return self.values[0]


class Tensor(Short):
    def __array__(self, dtype=None, copy=None):
        return np.array(self.values)


for one in (Series, Frame, LazyFrame):
    one.__module__ = "polars.stub"
for one in (Column, Table, Scalar):
    one.__module__ = "pyarrow.stub"


@pytest.mark.parametrize("kind", [Series, Frame, LazyFrame, Column, Table, Scalar, Tensor])
def test_a_value_that_a_text_rounds_is_seen(kind):
    assert VALUE in [leaf for _, leaf in scalars({"x": kind([VALUE])})]


@pytest.mark.parametrize("kind", [Frame, Table, Scalar, Tensor])
def test_as_an_attribute_it_is_seen_too(kind):
    model = Short([0.0])
    model.learned_ = kind([VALUE])
    read = WithAttributes(lambda data, rng: model, "fitted")(1, None)
    assert VALUE in [leaf for _, leaf in scalars(read)]


def test_a_model_that_can_be_called_is_told_of_attributes_too():
    """As a module of PyTorch is."""
    model = type("Module", (), {"__call__": lambda self: 0})()
    model.weight = 1.0
    with pytest.raises(LearnerError, match=r"returned a Module: expected .*--attributes"):
        list(scalars(model))


def test_large_numbers_in_texts_warn_of_nothing():
    """Warnings of a matrix that was hard to invert filled the screen."""

    def text(data, rng):
        return f"<{1e12 + data + rng.laplace(scale=0.4)}>"

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = falsify_mechanism(text, Claim(epsilon=1.0), left=1, right=0, runs=2000)
    assert result.verdict is Verdict.FALSIFIED
