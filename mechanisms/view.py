"""The views: what the adversary sees of a learner's runs. The one registry; a claim names its view by its word."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    """What the adversary sees of a run.

    Attributes
    ----------
    name : str
        The word of command line, plan and Python: `surface`.
    seen : str
        What is seen, in words.
    actions : bool
        Whether the actions are seen.
    channel : str
        The learner's method whose value is seen after each update; empty where none is.
    last : bool
        Whether the value after the last round is seen: no action depends on it.
    without_own : bool
        Whether the rounds of whoever differs are hidden: joint differential privacy.
    """

    name: str
    seen: str
    actions: bool = True
    channel: str = ""
    last: bool = False
    without_own: bool = False

    def updates(self, rounds: int) -> int:
        """Return after how many of so many rounds the learner is fed back: what comes after shows nothing."""
        return rounds if self.last else rounds - 1

    @property
    def plays_losses(self) -> bool:
        """Whether a pair of losses is played on it directly, where laws are known; else as two sequences of rounds."""
        return self.actions and not self.without_own


ACTIONS = View("actions", "actions")
RELEASE = View("release", "release", channel="release")
PUBLICATION = View("publication", "publication", channel="release", last=True)
JOINT = View("joint", "others' actions", without_own=True)
REPORTS = View("reports", "reports", actions=False, channel="report", last=True)
MODEL = View("model", "models", actions=False, channel="model", last=True)
#: By their words.
VIEWS = {view.name: view for view in (ACTIONS, RELEASE, PUBLICATION, JOINT, REPORTS, MODEL)}
