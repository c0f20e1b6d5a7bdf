"""Relations of a learner's losses alone: what it observes before it acts stays."""

from __future__ import annotations

from typing import Any

from .of_users import OfUser
from .records import Choose, Parts
from .relation import Relation


class ReplaceLosses(Relation):
    """The losses of one round are others."""

    name, for_data, for_rounds, losses_alone = "replace-losses", False, True, True
    data_text = rounds_text = "the losses of one round replaced, its context the same"

    def change(self, parts: Parts, record: Any, other: Any, choose: Choose) -> Any:
        """Return the round with the losses of the other."""
        return parts.with_losses(record, other)


class UserLosses(OfUser):
    """The losses of all rounds of one user, or of up to K, are others."""

    name, for_data, losses_alone = "user-losses", False, True
    data_text = rounds_text = "the losses of {user_rounds} replaced, their contexts the same"

    def change(self, parts: Parts, record: Any, other: Any, choose: Choose) -> Any:
        """Return the round with the losses of the other."""
        return parts.with_losses(record, other)
