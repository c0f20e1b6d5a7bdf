"""A category beyond the largest one in the data is never sampled, although the categories are given."""

from snsynth import mwem, transform


def count_of_two(data):
    categories = transform.TableTransformer([transform.LabelTransformer(nullable=False)])
    categories.fit([(0,), (1,), (2,)])
    synthesizer = mwem.MWEMSynthesizer(epsilon=1.0, iterations=1, q_count=1)
    synthesizer.fit([(value,) for value in data], transformer=categories)
    return synthesizer.sample(300).count((2,))


without, single = ({count_of_two(data) for _ in range(10)} for data in ([0] * 9, [0] * 8 + [2]))
assert without == {0} != single, f"2 is sampled {without} times without a record 2, {single} with one"
