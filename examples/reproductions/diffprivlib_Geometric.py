"""Beyond 2^53 neighbouring integers are rounded to different floats before the noise is added."""

from diffprivlib.mechanisms import Geometric

mechanism = Geometric(epsilon=1, sensitivity=1)
value = 2**60 + 128
drawn = [{mechanism.randomise(number) for _ in range(2000)} for number in (value, value + 1)]
print(f"outputs that both have: {len(drawn[0] & drawn[1])} of {len(drawn[0] | drawn[1])}")
assert not drawn[0] & drawn[1]
