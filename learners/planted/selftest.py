"""What the self-test audits: sound mechanisms, classes and learners, and the bugs that can be planted in them."""

from __future__ import annotations

from collections.abc import Sequence

from . import planted_learners, planted_regret, plants


def mechanisms() -> Sequence[plants.Subject]:
    """Return the mechanisms."""
    return plants.SUBJECTS


def planted(subject: plants.Subject, bug: str) -> plants.Planted:
    """Return a mechanism with one bug; sound where the name is empty."""
    return plants.planted(subject, bug)


def classes() -> Sequence[type]:
    """Return the plain classes, the sound one first; the docstring of another says its bug."""
    return (planted_learners.SOUND_CLASS, *planted_learners.CLASSES)


def learners() -> Sequence[planted_regret.RegretSubject]:
    """Return the learners whose regret is audited."""
    return planted_regret.SUBJECTS
