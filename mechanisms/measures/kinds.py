"""The kinds of measures, an entry each: what a claim is called, the option that makes it, and its class.

It imports the standard library alone: options and reports know measures by it, and the classes load NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Kind:
    """One kind of measure.

    Attributes
    ----------
    place : str
        Its class, as "module:name"; the module is one of this folder.
    unit : str
        The name of its level.
    symbol : str
        Of that level.
    name, short : str
        What it is called in a sentence, and in few words.
    help, metavar : str
        Of its option.
    schema : dict
        Of what a plan says, as JSON.
    reader : str
        How the command line reads it (`KINDS` in `command_line/options.py`).
    rare : bool
        Whether `--help-all` alone shows it.
    """

    place: str
    unit: str
    symbol: str
    name: str
    short: str
    help: str
    metavar: str
    schema: dict[str, Any]
    reader: str = "float"
    rare: bool = True


_POSITIVE, _ARRAY = {"type": "number", "exclusiveMinimum": 0}, {"type": "array"}

#: All but an epsilon at a delta, by the words of plans, which are the options of the command line too.
KINDS = {
    "gdp": Kind(
        *("gaussian_dp:GDP", "mu", "μ", "Gaussian DP", "Gaussian DP"),
        *("Claimed mu of Gaussian DP, in place of an epsilon", "MU", _POSITIVE),
        rare=False,
    ),
    "zcdp": Kind(
        *("renyi:ZCDP", "rho", "ρ", "zero-concentrated DP", "zCDP"),
        *("Claimed rho of zero-concentrated DP", "RHO", _POSITIVE),
    ),
    "rdp": Kind(
        *("renyi:RDP", "epsilon", "ε", "Rényi DP", "Rényi DP"),
        *("Claimed Rényi DP of one order", "ORDER:EPSILON", _ARRAY, "rdp"),
    ),
    "profile": Kind(
        *("approximate:Profile", "multiple", "×", "privacy", "profile"),
        *("Claimed points, a JSON list of [epsilon, delta]", "FILE", _ARRAY, "file"),
    ),
}
