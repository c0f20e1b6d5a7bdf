"""A mechanism on inputs: what is given becomes the pairs to choose from, or the space to search, and the audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...errors import about, exclude, hinted, must_be, takes_no
from ...mechanisms.claim import Claim
from ...mechanisms.global_random import FRESH_SEEDS
from ...mechanisms.parameters import with_plain_numbers
from ...mechanisms.weakening import with_parameter
from ..execution.execution import Budget, Execution
from ..play.attributes import WithAttributes
from ..play.call_limit import check_limit
from ..play.data import DataPair
from ..play.raising import Outcomes
from ..play.unseeded import OnGlobals, Unseeded
from .anytime import check_measure
from .blind_spot_search import weakening
from .given import Given, Setup
from .mechanism_stages import MechanismAudit


def read_data(
    mechanism: Any, claim: Claim, budget: Budget, execution: Execution, inputs: Given, *, kind: Any = MechanismAudit
) -> Setup:
    """Return the audit of a mechanism on the pairs of inputs that are given, or on a space of them.

    Raises
    ------
    ValueError
        For what does not fit the mechanism.
    """
    check_limit(inputs.call_limit)
    _check_options(mechanism, claim, budget, inputs)
    mechanism = with_plain_numbers(mechanism)
    weakened = weakening(inputs.weaken, mechanism, partial(with_parameter, mechanism))
    for wrap in _wrappers(inputs, claim.raising):
        mechanism, weakened = wrap(mechanism), weakened and weakened.through(wrap)
    target = Unseeded(mechanism) if inputs.os_random else mechanism
    if inputs.os_random:  # a generator of its own may begin anew elsewhere, and when an audit is resumed
        execution = replace(execution, memory=None, cluster=None)
    audit_options: Any = {"claim": claim, "budget": budget, "execution": execution}
    audit = kind(mechanism=target, bits=inputs.bits, call_limit=inputs.call_limit, score=inputs.score, **audit_options)
    if inputs.inputs is None:
        options = _pairs(inputs.left, inputs.right, inputs.pairs)
        return Setup(audit, options, weakening=weakened, pair_given=len(options) == 1)
    _refuse_both(inputs.left, inputs.right, inputs.pairs)
    from ..spaces.related import space_of

    return Setup(audit, (), space_of(inputs.inputs, budget.seed), weakened)


def check_no_game(claim: Claim) -> None:
    """Raise ValueError where a claim says what is for learners alone: it would not be heeded."""
    default = Claim(measure=claim.measure)
    refused = [name for name in ("losses", "neighbours", "surface") if getattr(claim, name) != getattr(default, name)]
    if refused:
        cure = "`left` and `right`, `pairs` or `inputs` say which inputs are neighbours"
        raise takes_no(
            "the claim is about a mechanism",
            [f'{name}="{getattr(claim, name)}"' for name in refused],
            cure if "neighbours" in refused else "",
        )


def _wrappers(inputs: Given, raising: str) -> list[Callable[[Any], Callable[..., object]]]:
    """Return what reads, calls or catches the outputs of a mechanism for us, the innermost first."""
    wrappers: list[tuple[bool, Callable[[Any], Callable[..., object]]]] = [
        (inputs.attributes is not None, lambda mechanism: WithAttributes(mechanism, inputs.attributes or ())),
        (bool(inputs.global_random), partial(OnGlobals, seeding=inputs.global_random)),
        (raising == "outcome", Outcomes),
    ]
    return [wrap for is_asked, wrap in wrappers if is_asked]


def _check_options(mechanism: object, claim: Claim, budget: Budget, inputs: Given) -> None:
    """Raise ValueError for options that do not go together."""
    if inputs.call_limit is not None and inputs.inputs is None and not hasattr(mechanism, "play_block"):
        raise about(
            "call_limit", ValueError("call_limit is for searched inputs (`inputs`), of which it leaves out slow ones")
        )
    if inputs.global_random and inputs.os_random:
        option = "`reseed`" if inputs.global_random == FRESH_SEEDS else "`global_random`"
        raise exclude("`os_random`", option, "the first has no seed, the second has one")
    if budget.stop != "early":
        return
    check_measure(claim)
    if inputs.os_random:
        reason = "it learns from runs that a resumed audit plays again, and these cannot be"
        raise exclude('`stop="early"`', "`os_random`", reason)


def _pairs(left: object, right: object, pairs: Iterable[tuple[object, object]] | None) -> list[DataPair]:
    if pairs is not None:
        if left is not None or right is not None:
            raise exclude("`left` and `right`", "`pairs`")
        if not isinstance(pairs, Iterable):
            raise must_be("pairs", "pairs of inputs, (left, right) each", pairs)
        options = [_pair(pair) for pair in pairs]
        if not options:
            raise ValueError("there is no pair of inputs to audit on")
        return options
    if left is None and right is None:
        raise hinted(ValueError("the two neighbouring inputs are missing"), "give `left` and `right`, or `inputs`")
    return [DataPair(left, right)]


def _refuse_both(left: object, right: object, pairs: object) -> None:
    if left is not None or right is not None or pairs is not None:
        raise exclude("`inputs`", "`left` and `right`, or with `pairs`")


def _pair(pair: object) -> DataPair:
    if not isinstance(pair, Sequence) or isinstance(pair, str | bytes) or len(pair) != 2:
        raise must_be("a pair", "two inputs, (left, right)", pair)
    return DataPair(*pair)
