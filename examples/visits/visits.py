"""Visitors, counted with OpenDP: that one more or one less was there shall not be seen, epsilon = 1."""

import opendp.prelude as dp
import pandas as pd

dp.enable_features("contrib")
CITIES, AGES = ["Bern", "Oslo"], ["young", "old"]
COUNTS = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
NOISE = dp.m.make_laplace(*COUNTS, scale=3.0)  # a visitor is in three counts


def release(visitors):
    """Count the visitors by city, by age, and all; `visitors` has a row for each."""
    cities, ages = visitors["city"].value_counts(), visitors["age"].value_counts()
    exact = [*(cities.get(city, 0) for city in CITIES), *(ages.get(age, 0) for age in AGES), len(visitors)]
    return pd.Series(NOISE([int(count) for count in exact]), index=[*CITIES, *AGES, "all"])
