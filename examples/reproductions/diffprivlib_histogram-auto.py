"""The number of bins is computed from the data, and released without noise."""

from diffprivlib.tools import histogram


def bin_counts(data):
    return {len(histogram(data, epsilon=1, bins="auto", range=(0, 1))[0]) for _ in range(200)}


three, one = bin_counts([0.1, 0.5, 0.9]), bin_counts([0.1])
print(f"bins: {three} of three records, {one} of one of them")
assert not three & one
