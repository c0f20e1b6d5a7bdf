"""Recommends articles by a bandit of river, from clicks that are reported with noise: epsilon = 1 for each click."""

import math

from river import bandit

TRUTH = math.e / (1 + math.e)  # the probability that a click is reported as it was


class Recommender:
    feedback = "bandit"

    def __init__(self, arms, rounds, rng):
        self.articles, self.rng = list(range(arms)), rng
        self.policy = bandit.UCB(delta=1.0, seed=int(rng.integers(2**31)))

    def act(self):
        self.article = self.policy.pull(self.articles)
        return self.article

    def update(self, feedback):
        click = self.rng.random() >= feedback  # a loss: 0 for a click, 1 for none
        reported = click if self.rng.random() < TRUTH else not click
        self.policy.update(self.article, float(reported))
