"""What a user writes beside code that is neither a learner nor a function of its data: a few lines each."""

import a5_rewards_inside
import b3_hybrid_spends_twice
import b4_restart_and_fresh


class Table:
    """Rewards as the input says them, in place of those that the code draws."""

    def __init__(self, rewards):
        self.rewards = rewards

    def reward(self, arm, t):
        return self.rewards[t][arm]


def played(kind, data):
    simulation = kind(n_arms=len(data[0]), T=len(data), epsilon=1.0)
    simulation.environment = Table(data)
    return simulation.run()


def published(kind, data):
    counter = kind(T=len(data), epsilon=1.0)
    add = getattr(counter, "add", None) or counter.update
    shown = []
    for number in data:
        value = add(number)
        shown.append(counter.release() if value is None else value)
    return shown


def a5_buggy(data):
    return played(a5_rewards_inside.Buggy, data)


def a5_fixed(data):
    return played(a5_rewards_inside.Fixed, data)


def b3_buggy(data):
    return published(b3_hybrid_spends_twice.Buggy, data)


def b3_fixed(data):
    return published(b3_hybrid_spends_twice.Fixed, data)


def b4_buggy(data):
    return published(b4_restart_and_fresh.Buggy, data)


def b4_fixed(data):
    return published(b4_restart_and_fresh.Fixed, data)
