"""Data in a record: the labels of rows are a part of it, and what a record cannot hold is refused in one line."""

import numpy as np
import pytest

from overclaim.audit.play.data import DataPair, UnreadableDataError, from_json, key_of, shown, to_json

pd = pytest.importorskip("pandas")
DATES = pd.to_datetime(["2020-01-01", "2020-01-02"]).as_unit("us")
LABELLED = {
    "numbers": pd.Series([1.0, 2.0], index=[5, 6]),
    "a row less": pd.DataFrame({"a": [1, 2, 3]}).drop(1),
    "texts": pd.DataFrame({"a": [1, 2]}, index=["x", "y"]),
    "levels": pd.DataFrame({"a": [1, 2]}, index=pd.MultiIndex.from_tuples([("x", 1), ("y", 2)])),
    "dates": pd.Series([1, 2], index=DATES),
    "column of dates": pd.DataFrame({"a": DATES, "b": DATES - DATES[0]}),
    "no column": pd.DataFrame(index=[3, 4]),
}


@pytest.mark.parametrize("name", LABELLED)
def test_rows_read_back_with_their_labels(name):
    data = LABELLED[name]
    back = from_json(to_json(data))
    same = pd.testing.assert_series_equal if isinstance(data, pd.Series) else pd.testing.assert_frame_equal
    same(back, data, check_freq=False)
    assert key_of(back) == key_of(data)


def test_inputs_may_differ_in_the_labels_of_rows():
    """They were said to be the same, and a record held neither."""
    pair = DataPair(pd.Series([1, 2], index=["a", "b"]), pd.Series([1, 2], index=["a", "c"]))
    assert shown(pair.to_json()["right"]) == 'series([1, 2]; rows ["a", "c"])'


def test_dates_are_shown_as_such():
    assert shown(to_json([pd.Series(DATES[:1]), np.datetime64("2020-01-01")])) == (
        "[series([2020-01-01T00:00:00.000000]), 2020-01-01]"
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.ma.array([1, 2], mask=[False, True]), "a masked array\nhint: give its values and its mask$"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "a data frame with two columns of one name$"),
        (pd.Series([1], index=[DATES[0].tz_localize("UTC")]), "an input of the type Timestamp"),
        (type("Lines", (), {"__repr__": lambda _: "one\ntwo"})(), "an input of the type Lines: one two$"),
    ],
)
def test_what_a_record_cannot_hold_is_refused_in_one_line(data, message):
    with pytest.raises(UnreadableDataError, match=f"^a record cannot hold {message}"):
        to_json(data)
