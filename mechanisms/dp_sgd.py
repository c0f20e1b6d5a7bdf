"""The claim of a DP-SGD configuration, computed by dp_accounting.

References
----------
.. [1] dp_accounting: privacy loss distributions, https://github.com/google/differential-privacy/tree/main/python.
.. [2] L. Chua, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi, A. Sinha, C. Zhang. How private are DP-SGD
   implementations? ICML 2024 (shuffled batches may have a far larger epsilon than Poisson sampling).
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..errors import hinted, must_be, must_be_one_of
from .claim import Claim
from .measures.approximate import ApproxDP
from .measures.measure import is_number

#: Relations by their words, as dp_accounting names them.
_RELATIONS: Final = {
    "add-remove": "ADD_OR_REMOVE_ONE",
    "replace": "REPLACE_ONE",
    "zero-out": "REPLACE_SPECIAL",
}
_KEYS: Final = ("noise_multiplier", "sampling", "steps", "delta")
_SHUFFLED: Final = (
    "sampling=shuffle has no valid accountant: dp_accounting accounts for batches that are drawn by Poisson sampling, "
    "and shuffled batches may have a far larger epsilon; claim without amplification (--gdp SQRT(EPOCHS) / "
    "NOISE_MULTIPLIER), or an epsilon of your own"
)


@dataclass(frozen=True)
class DPSGD:
    """A configuration of DP-SGD: clipped gradients are summed, and normal noise is added to each sum.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm.
    sampling : str
        "poisson:RATE", each example in each batch with that probability, or "full", every example in every batch.
        "shuffle" is refused: no accountant is valid for it.
    steps : int
        Noisy sums that are released.
    delta : float
        In (0, 1).
    relation : str
        "add-remove" (one example is there or not), "zero-out" (its gradient becomes 0), or "replace".

    Examples
    --------
    >>> DPSGD(1.1, "poisson:0.01", steps=1000, delta=1e-5).rate
    0.01
    """

    noise_multiplier: float
    sampling: str
    steps: int
    delta: float
    relation: str = "add-remove"

    def __post_init__(self) -> None:
        if not (is_number(self.noise_multiplier) and self.noise_multiplier > 0):
            raise must_be("noise_multiplier", "positive and finite", self.noise_multiplier)
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise must_be("steps", "a whole number of at least 1", self.steps)
        if not (is_number(self.delta) and 0 < self.delta < 1):
            raise must_be("delta", "in (0, 1)", self.delta)
        if self.relation not in _RELATIONS:
            raise must_be_one_of("relation", _RELATIONS, self.relation)
        _ = self.rate

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> DPSGD:
        """Return the configuration that a table says; raise ValueError, naming the key, for what is none."""
        keys = (*_KEYS, "relation")
        if unknown := [key for key in settings if key not in keys]:
            raise ValueError(f"dp_sgd takes {', '.join(keys)}, got {unknown[0]!r}")
        if missing := [key for key in _KEYS if key not in settings]:
            raise ValueError(f"dp_sgd needs {missing[0]}, as in {EXAMPLE}")
        return cls(**settings)  # type: ignore[arg-type]

    @property
    def rate(self) -> float:
        """The probability with which an example is in a batch."""
        kind, _, text = str(self.sampling).partition(":")
        if kind == "shuffle":
            raise ValueError(_SHUFFLED)
        if self.sampling == "full":
            return 1.0
        try:
            rate = float(text) if kind == "poisson" else -1.0
        except ValueError:
            rate = -1.0
        if not 0 < rate <= 1:
            raise must_be("sampling", "poisson:RATE, with a rate in (0, 1], or full", self.sampling)
        return rate

    @property
    def source(self) -> str:
        """Who computed the claim, for which relation and sampler."""
        sampling = "all examples in every batch" if self.rate == 1 else f"Poisson sampling at rate {self.rate:g}"
        return (
            f"claim by dp_accounting {_version()} (PLD accountant): noise multiplier {self.noise_multiplier:g}, "
            f"{sampling}, {self.steps:,} steps, relation {self.relation}"
        )

    def measure(self) -> ApproxDP:
        """Return what is claimed: the epsilon of a privacy loss distribution that is rounded up [1]_.

        Raises
        ------
        ValueError
            If dp_accounting is not installed, or finds no finite epsilon.
        """
        _version()
        import dp_accounting
        from dp_accounting.pld import PLDAccountant

        step = dp_accounting.GaussianDpEvent(self.noise_multiplier)
        event = step if self.rate == 1 else dp_accounting.PoissonSampledDpEvent(self.rate, step)
        accountant = PLDAccountant(dp_accounting.NeighboringRelation[_RELATIONS[self.relation]])
        accountant.compose(dp_accounting.SelfComposedDpEvent(event, self.steps))
        return ApproxDP(float(accountant.get_epsilon(self.delta)), self.delta)

    def claim(self) -> Claim:
        """Return the claim, with its source; its neighbours are those of the relation.

        Errors are those of `measure`.
        """
        return Claim(measure=self.measure(), neighbours=self.relation, source=self.source)


#: A configuration as the command line has it.
EXAMPLE: Final = "noise_multiplier=1.1,sampling=poisson:0.01,steps=1000,delta=1e-5"


def read_configuration(text: str) -> dict[str, object]:
    """Return the table that the text of an option says, as in `EXAMPLE`.

    Raises
    ------
    ValueError
        For a part that is not NAME=VALUE, or a name that is said twice.

    Examples
    --------
    >>> read_configuration("noise_multiplier=1.1,sampling=full,steps=10,delta=1e-5")["steps"]
    10
    """
    settings: dict[str, object] = {}
    for part in text.split(","):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if not (name and sign and value):
            raise must_be("dp_sgd", f"NAME=VALUE with commas between them, as in {EXAMPLE}", part)
        if name in settings:
            raise ValueError(f"dp_sgd: {name} is given twice")
        settings[name] = _number(value)
    return settings


def _number(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _version() -> str:
    try:
        return importlib.metadata.version("dp_accounting")
    except importlib.metadata.PackageNotFoundError:
        raise hinted(
            ValueError("a claim from a configuration is computed by dp_accounting, which is not installed"),
            "pip install 'overclaim[accounting]'",
        ) from None
