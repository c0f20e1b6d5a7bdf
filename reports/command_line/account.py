"""`overclaim account`: a claimed epsilon against dp_accounting's figure for a configuration; nothing is played."""

from __future__ import annotations

from collections.abc import Mapping

import click

from ..sanitise import json_text
from ..status import FALSIFIED, OK
from .console import Once, command, say
from .options import JSON, option


@click.command(cls=Once)
@option("dp_sgd", rare=False)
@click.option("--claimed", type=float, metavar="NUMBER", required=True, help="Claimed epsilon, at its delta")
@JSON
@command
def account(dp_sgd: Mapping[str, object] | None, claimed: float, as_json: bool) -> int:
    """Compare a claimed epsilon with dp_accounting's figure for a configuration of DP-SGD, without a target.

    Examples
    --------
      overclaim account --dp-sgd noise_multiplier=1.1,sampling=poisson:0.01,steps=1000,delta=1e-5 --claimed 1.68

    Exit code 1: the claim is below the figure. The code may still differ from the configuration; `check` tests that.
    """
    from ...audit.statistics.digits import at_most, exactly
    from ...mechanisms.claim import Claim
    from ...mechanisms.dp_sgd import DPSGD, EXAMPLE

    if dp_sgd is None:
        raise ValueError(f"account needs a configuration: --dp-sgd {EXAMPLE}")
    configuration = DPSGD.of(dp_sgd)
    Claim(epsilon=claimed)  # raises for what is no epsilon
    epsilon = configuration.measure().epsilon
    covered = claimed >= epsilon
    if as_json:
        record = {
            "claimed": {"epsilon": claimed, "delta": configuration.delta},
            "accountant": {"epsilon": epsilon, "delta": configuration.delta, "source": configuration.source},
            "covered": covered,
        }
        say(json_text(record, indent=1))
    else:
        relation = "covers" if covered else "is below"
        say(
            f"The claimed epsilon {exactly(claimed)} {relation} dp_accounting's figure, "
            f"{at_most(epsilon, '.6g')} at delta {exactly(configuration.delta)}\n"
            f"Source      {configuration.source.removeprefix('claim by ')}\n"
            f"Meaning     {_SUPPORTED if covered else _UNSUPPORTED}"
        )
    return OK if covered else FALSIFIED


_SUPPORTED = "the claim is right for this configuration; `overclaim check` tests whether the code keeps to it"
_UNSUPPORTED = "this accountant does not support the claim; its figure is an upper bound, rounded up"
