"""One measurement of regret: an entry's printed bound, or a plan's own, and the price of privacy."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...learners.entry import Entry, Setting
from ...learners.scalar import arms_of, is_mechanism
from ...mechanisms.library_entry import LibraryEntry
from ...mechanisms.specimen import Specimen
from ..execution.execution import IN_PROCESS, Budget, Execution
from ..record_types import RegretJson
from ..regret.adversaries import regret_losses
from ..regret.check_regret import audit_own_bound
from ..regret.measurement import MIN_RUNS, Played, Regret, play_sequences, regrets
from ..regret.regret_audit import SEARCH_RESULT, RegretRequest, audit_regret, says_something
from .catalogues import catalogue
from .targets import learners_only, losses_given_once, parse_parameters, resolve

#: The epsilons at which the price of privacy is measured.
PRICED = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
#: Noise for this epsilon is next to nothing: what a learner's regret is without privacy.
UNNOTICED = 1e6
#: The runs of a measurement of regret, beside which its bound is shown.
BUDGET_OF_REGRET = Budget(runs=400)
#: Where a bound is VACUOUS whatever the runs are, they show the mean alone: one of so many of them is played.
SPARED = 10


@dataclass(frozen=True)
class RegretTask:
    """Regret to be measured on adversarial losses and held against a plan's bound, or an entry's printed one."""

    target: str
    rounds: int = 1024
    budget: Budget = BUDGET_OF_REGRET
    bound: float | None = None
    arms: int | None = None
    losses: str | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    spare: bool = False  # whether fewer runs are played of a bound that is VACUOUS whatever they are

    def measure(self, execution: Execution = IN_PROCESS) -> RegretJson:
        """Return the measurement: what `overclaim regret` prints, with the target's name."""
        if self.bound is not None:
            learner, setting, parameters = regret_setting(
                self.target, self.rounds, self.arms, self.losses, self.parameters
            )
            own_bound = audit_own_bound(learner, self.bound, setting, self.budget, execution, parameters=parameters)
            return {"name": self.target, **own_bound.to_json()}
        entry = catalogue().lookup(self.target)
        setting = entry.setting(rounds=self.rounds)
        if self.spare and not says_something(entry, setting, self.budget):
            fewer = replace(self.budget, runs=max(MIN_RUNS, self.budget.runs // SPARED))
            return replace(self, budget=fewer, spare=False).measure(execution)
        audit = audit_regret(RegretRequest(entry, setting, search_where_binding=True), self.budget, execution)
        listed = len(audit.means) - (audit.adversary is not None)
        played = audit.plays.get(self.rounds // 4, ())[:listed]
        adversary = audit.adversary if audit.sequence == SEARCH_RESULT else None  # else the worst is a listed one
        price = self._price(entry, execution, {setting.epsilon: played})
        means, intervals = [regret.mean for regret in price], [list(regret.interval) for regret in price]
        return {
            "name": self.target,
            **audit.to_json(),
            "replay": self.command() if adversary is None else replay(self.command(), adversary.to_json()),
            "epsilons": list(PRICED),
            "price": means[:-1],
            "price_intervals": intervals[:-1],
            "unnoticed": {"epsilon": UNNOTICED, "mean_regret": means[-1], "interval": intervals[-1]},
        }

    def command(self) -> str:
        """Return the command that repeats the measurement; without a bound of the plan's own."""
        arguments = ["overclaim", "regret", self.target, "--rounds", str(self.rounds), "--runs", str(self.budget.runs)]
        arguments += ["--seed", str(self.budget.seed)]
        arguments += [] if self.budget.stop == Budget.stop else ["--stop", self.budget.stop]
        arguments += [
            word
            for name in ("arms", "losses")
            if (value := getattr(self, name)) is not None
            for word in (f"--{name}", str(value))
        ]
        arguments += [word for name, value in self.parameters.items() for word in ("--set", f"{name}={value}")]
        return shlex.join(arguments)

    def _price(
        self, entry: Entry, execution: Execution, played_before: Mapping[float, Sequence[Played]]
    ) -> list[Regret]:
        """Return the regret at every epsilon on the worst sequence, at a quarter of the horizon.

        The error is shared by the sequences, among which the worst is chosen by the same runs.
        """
        worst, n_sequences = [], 1
        for epsilon in (*PRICED, UNNOTICED):
            played = played_before.get(epsilon) or self._play(entry, epsilon, execution)
            worst.append(max(played, key=lambda regret: regret.mean))
            n_sequences = max(n_sequences, len(played))
        return regrets(worst, 1 - self.budget.alpha / n_sequences)

    def _play(self, entry: Entry, epsilon: float, execution: Execution) -> list[Played]:
        setting = entry.setting(rounds=max(1, self.rounds // 4), epsilon=epsilon)
        learner = entry.build(setting)
        worlds = [*regret_losses(entry, setting, learner, self.budget.seed).values()]
        return play_sequences(learner, worlds, self.budget, execution, part=f"epsilon {epsilon}")


def not_measured() -> list[dict[str, str]]:
    """Return the catalogue's regret claims that `overclaim run` leaves out, and why."""
    return [
        {
            "name": entry.name,
            "source": entry.regret.source,
            "reason": f"it takes long: overclaim regret {entry.name} measures it",
        }
        for entry in catalogue().entries().values()
        if entry.regret and not entry.regret.measured
    ]


def replay(command: str, blocks: Sequence[object]) -> str:
    """Return the command that plays what a search found again, alone, and so on other random numbers."""
    return f"{command} --sequence {shlex.quote(json.dumps(blocks))}"


def regret_setting(
    target: str, rounds: int | None, arms: int | None, losses: str | None, parameters: Mapping[str, object]
) -> tuple[object, Setting, Mapping[str, object]]:
    """Return a target with the setting and the parameters of its own in which its regret is measured.

    Growth needs long horizons: `rounds` is that of a `RegretTask` where it is not given.

    Raises
    ------
    ValueError
        For a target, parameter or value that does not fit.
    """
    resolved = resolve(target)
    if isinstance(resolved, Specimen | LibraryEntry) or is_mechanism(resolved):
        raise learners_only("regret measures", target)
    parsed = parse_parameters(resolved, parameters)
    arms = arms if isinstance(resolved, Entry) else arms_of(resolved, arms)
    fields = {"arms": arms, "losses": losses_given_once(losses, parsed.setting), **parsed.setting}
    changes = {name: value for name, value in fields.items() if value is not None}
    rounds = RegretTask.rounds if rounds is None else rounds
    if rounds < 1 or changes.get("arms", 1) < 1:
        raise ValueError(f"rounds and arms must be at least 1, got {rounds!r} and {arms!r}")
    if isinstance(resolved, Entry):
        return resolved, resolved.setting(rounds=rounds, **changes), parsed.arguments
    return resolved, Setting(rounds=rounds, **changes), parsed.arguments
