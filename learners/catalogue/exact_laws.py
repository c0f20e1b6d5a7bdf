"""Exact laws of falsified rows, known before any run: `runs_of` in `audit/plans/plan.py` sets their runs by them.

Written by `benchmarks/catalogue/exact_laws.py`. A row that is not in the table has the runs of its case.
"""

from __future__ import annotations

from ..entry import Case, Entry


def key_of(entry: Entry, case: Case) -> str:
    """Return what names a row: all that its claim and its target depend on."""
    setting, own_parameters = entry.setting_of(case)
    claim = entry.claim(setting)
    parameters = ", ".join(f"{name}={value}" for name, value in sorted({**case.parameters, **own_parameters}.items()))
    game = f"{case.surface} {case.neighbours} {setting.losses} T={setting.rounds} K={setting.arms}"
    game += "" if setting.published else f" {case.calibration}"
    return f"{entry.name} {game} ({claim.epsilon:g}, {claim.delta:g}) {parameters}".strip()


#: By `key_of`, of the event A that tells most at the claim: P(A) - e^epsilon Q(A) - delta, and the runs in which its
#: count is no proof once in a million.
EXACT_LAWS: dict[str, tuple[float, int]] = {
    "agarwal-singh/ftrl-experts actions replace symmetric T=4 K=2 (1, 0.001)": (0.0071, 578759),
    "agarwal-singh/ftrl-experts release replace symmetric T=4 K=2 (1, 0)": (0.0903, 11825),
    "agarwal-singh/ftrl-experts release replace unit T=3 K=2 (1, 0)": (0.0184, 128665),
    "agarwal-singh/ftrl-experts release replace unit T=4 K=2 (1, 0) base=e": (0.0333, 44985),
    "agarwal-singh/ftrl-experts publication replace unit T=2 K=2 (1, 0)": (0.0903, 11825),
    "agarwal-singh/ftrl-ball release replace l2-ball T=4 K=2 (1, 0)": (0.0903, 11825),
    "agarwal-singh/ftrl-ball release zero-out l2-ball T=3 K=2 (1, 0)": (0.0184, 128665),
    "agarwal-singh/ftrl-cube release replace l1-ball T=4 K=2 (1, 0)": (0.2418, 2086),
    "agarwal-singh/ftrl-cube release zero-out l1-ball T=3 K=2 (1, 0)": (0.0184, 128665),
    "agarwal-singh/ftrl-cube publication replace l1-ball T=2 K=1 (1, 0)": (0.6088, 220),
    "agarwal-singh/ftrl-cube publication zero-out l1-ball T=2 K=1 (1, 0)": (0.2418, 2086),
    "agarwal-singh/ftpl-simplex actions replace symmetric T=2 K=2 (1, 0) noise_delta=0.5": (0.2555, 3072),
    "agarwal-singh/ftpl-simplex actions replace symmetric T=2 K=2 (0.5, 0) base=10, noise_delta=0.5": (0.1464, 5658),
    "agarwal-singh/ftpl-simplex publication replace symmetric T=2 K=1 (3, 0.1) base=2, theorem=A.1": (0.2982, 5192),
    "agarwal-singh/reduction-threshold actions replace symmetric T=2 K=2 (1, 0)": (0.3159, 1089),
    "agarwal-singh/reduction-threshold release replace symmetric T=2 K=2 (1, 0)": (0.3932, 909),
    "agarwal-singh/reduction-exp2 actions replace symmetric T=4 K=2 (1, 0) eta=2.0, gamma=0.02": (0.3098, 1741),
    "agarwal-singh/gaussian-threshold release replace symmetric T=2 K=2 (2, 0.1)": (0.1285, 12784),
    "asi-raman-talwar/batched-exp3 actions replace symmetric T=4 K=2 (1, 0) batch=1, eta=2.0, gamma=0.02": (
        0.3098,
        1741,
    ),
    "asi-raman-talwar/batched-threshold actions replace symmetric T=2 K=2 (1, 0)": (0.3159, 1089),
    "asi-raman-talwar/exp4-local actions replace symmetric T=4 K=2 (1, 0) eta=2.0, gamma=0.02": (0.2685, 2358),
    "ene-nguyen-vladu/tree-aggregation publication replace l1-ball T=4 K=1 (1, 0)": (0.3132, 1102),
    "ene-nguyen-vladu/tree-aggregation publication zero-out l1-ball T=2 K=1 (1, 0)": (0.2418, 2086),
    "ene-nguyen-vladu/tree-aggregation publication replace l1-ball T=2 K=1 (3, 0.1) noise=gaussian": (0.2982, 5192),
    "smith-thakurta/pftal release replace lipschitz T=4 K=1 (1, 0)": (0.083, 18021),
    "smith-thakurta/pftal release replace lipschitz T=8 K=1 (1, 0)": (0.0691, 17308),
    "smith-thakurta/pftal publication replace lipschitz T=4 K=1 (1, 0)": (0.1471, 4318),
    "smith-thakurta/pftal-lipschitz release replace lipschitz T=4 K=1 (1, 0) radius=0.1": (0.0478, 53708),
    "smith-thakurta/pftal-bandit release replace lipschitz T=4 K=1 (1, 0)": (0.083, 18020),
    "smith-thakurta/pftal-bandit release replace lipschitz T=8 K=1 (1, 0)": (0.0691, 17307),
    "smith-thakurta/tree-aggregation publication replace l2-ball T=2 K=1 (1, 0)": (0.2418, 2086),
    "smith-thakurta/pftal-bandit-lipschitz release replace lipschitz T=5 K=1 (1, 0) radius=0.68": (0.0399, 47903),
    "smith-thakurta/pftal-bandit-experts release replace lipschitz T=5 K=1 (1, 0)": (0.038, 52702),
    "smith-thakurta/pftal-bandit-adaptive release replace lipschitz T=4 K=1 (1, 0)": (0.083, 18020),
}
