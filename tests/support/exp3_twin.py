"""EXP3 as its paper has it, one run at a time."""

import math


class Exp3Twin:
    """EXP3 by its definition, which reads its uniforms as ours does; `slip` plants a mistake."""

    feedback = "bandit"

    def __init__(self, arms, rounds, rng, eta=0.5, gamma=0.1, slip=""):
        self.arms, self.rng, self.eta, self.slip = arms, rng, eta, slip
        self.gamma = 0.0 if slip == "no mixing" else gamma
        self.estimates = [0.0] * arms

    def weights(self):
        return [math.exp(-self.eta * estimate) for estimate in self.estimates]

    def law(self):
        return [(1 - self.gamma) * w / sum(self.weights()) + self.gamma / self.arms for w in self.weights()]

    def act(self):
        u, self.arm = self.rng.random(), 0
        if u < self.gamma:
            self.arm = int(u / self.gamma * self.arms)
            return self.arm
        u = (u - self.gamma) / (1 - self.gamma) * sum(self.weights())
        for weight in self.weights()[:-1]:
            u -= weight
            self.arm += u >= 0
        return int(self.arm)

    def update(self, loss):
        self.estimates[self.arm] += loss / (1.0 if self.slip == "no weighting" else self.law()[self.arm])
