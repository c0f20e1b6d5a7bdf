"""A bandit of river made private: rewards reach it as noisy means of batches. The bare one is falsified.

overclaim check examples/river_bandit.py:Private --epsilon 1 --rounds 6 --runs 6000
overclaim check examples/river_bandit.py:Bare --epsilon 1 --rounds 6 --runs 6000
"""

from river import bandit


class Bare:
    """river's epsilon-greedy bandit as it is: it claims no privacy, and has none."""

    feedback = "bandit"

    def __init__(self, arms, rounds, rng):
        self.arms, self.rng = list(range(arms)), rng
        self.policy = bandit.EpsilonGreedy(epsilon=0.1, seed=int(rng.integers(2**31)))

    def act(self):
        self.arm = self.policy.pull(self.arms)
        return self.arm

    def update(self, feedback):
        self.policy.update(self.arm, 1 - feedback)  # river learns from rewards


class Private(Bare):
    """The same bandit behind the batched conversion: (epsilon, 0)-DP for losses in [0, 1], whatever it does."""

    def __init__(self, arms, rounds, rng, epsilon=1.0, batch=2):
        super().__init__(arms, rounds, rng)
        self.scale, self.batch, self.losses = 1 / (batch * epsilon), batch, []

    def act(self):
        return self.arm if self.losses else super().act()  # an arm is held for a batch

    def update(self, feedback):
        self.losses.append(feedback)
        if len(self.losses) == self.batch:
            noisy = sum(self.losses) / self.batch + self.rng.laplace(0, self.scale)
            self.losses = []
            super().update(noisy)


class HalfNoise(Private):
    """The bug: the noise is divided by the batch twice."""

    def __init__(self, arms, rounds, rng):
        super().__init__(arms, rounds, rng)
        self.scale /= self.batch
