"""A user's learner, as the text of a file: private, as it never listens."""

COIN = """
class Coin:
    feedback = "full"
    def __init__(self, arms, rounds, rng):
        self.rng = rng
    def act(self):
        return int(self.rng.integers(2))
    def update(self, feedback):
        pass
"""
