"""A published statement about privacy: of a paper, or of a library's documentation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A published statement about privacy.

    Attributes
    ----------
    source : str
        Paper and number, or library, version and place. Two cases with one source are about one statement.
    text : str
        The words that matter, one sentence at most.
    where : str
        Where a reader finds them.
    false : str
        What is false about it; nothing where no audit of ours falsifies it.
    answer : str
        What its authors could answer.
    repair : str
        What would make it true.
    undisclosed : bool
        Whether it is false of published software, and the authors were not told so yet.
    """

    source: str
    text: str
    where: str
    false: str = ""
    answer: str = ""
    repair: str = ""
    undisclosed: bool = False

    def __post_init__(self) -> None:
        for name in ("source", "text", "where"):
            if not getattr(self, name).strip():
                raise ValueError(f"a statement must have a {name}, got {getattr(self, name)!r}")
        stated = [bool(getattr(self, name)) for name in ("false", "answer", "repair")]
        if any(stated) and not all(stated):
            raise ValueError(f"{self.source}: what is false about it, an answer and a repair must be given together")
