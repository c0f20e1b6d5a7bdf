"""Neighbour relations: which two inputs are neighbours, one class each."""

# Relations are listed in the order in which these modules enter them.
# isort: off
from .of_records import Replace
from .of_users import User
from .of_losses import ReplaceLosses
from .distances import Distance
from .canonical import RelationError
from .relation import Relation

# isort: on

__all__ = ["Distance", "Relation", "RelationError", "Replace", "ReplaceLosses", "User"]
