"""Draws that keep what they drew, for a slow twin of a learner that is fed the same numbers."""

from overclaim.mechanisms.draws import Draws


class Tape(Draws):
    """Keep every uniform that was drawn, so that a twin can be fed the same."""

    def __init__(self, seed):
        super().__init__(seed)
        self.rows = []

    def uniform(self, shape):
        row = super().uniform(shape)
        self.rows.append(row.copy())
        return row

    def of_run(self, run):
        return iter([row[..., run] for row in self.rows])
