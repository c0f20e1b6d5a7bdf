"""A record of every kind of claim, one whose every text is hostile, and their pages."""

import copy

import pytest

from overclaim.audit.execution.execution import Budget
from overclaim.audit.plans.tasks import Task
from overclaim.reports.formats.html import render
from overclaim.reports.record import claim_record, run_record

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7 * 7 }}"


RTL = "\u202eevil\u202c שלום عليكم"


LONG = "agarwal-singh/" + "x" * 3000


def audited(target: str, expected: str, **options) -> dict:
    prepared = Task(target=target, expected=expected, **options, budget=Budget(runs=30_000)).prepare()
    return claim_record(prepared, prepared.audit(), with_evidence=True)


@pytest.fixture(scope="session")
def audited_once() -> dict:
    symmetric, exp2 = {"losses": "symmetric"}, "agarwal-singh/reduction-exp2"
    threshold = "agarwal-singh/reduction-threshold"
    claims = [
        audited(threshold, "falsified", **symmetric),
        audited(threshold, "falsified", surface="release", **symmetric),
        audited(threshold, "survived", neighbours="zero-out", **symmetric),
        audited(threshold, "survived", parameters={"calibration": "corrected"}, **symmetric),
        audited(exp2, "falsified", rounds=4, parameters={"eta": 2.0, "gamma": 0.02}, **symmetric),
        audited("asi-raman-talwar/exp3", "falsified", rounds=60),
        audited("asi-raman-talwar/batched-threshold", "survived"),
    ]
    regret = {
        "name": exp2,
        "mean_regret": 41.3,
        "interval": [40.1, 42.5],
        "bound": 180.2,
        "exponent": 0.5,
        "slope": 0.51,
        "slope_upper": 0.53,
        "horizons": [32, 64, 128, 256, 512, 1024],
        "regrets": [7, 10, 14.5, 20, 29.7, 41.3],
        "verdict": "HOLDS",
    }
    false = {"paper": "A & B", "statement": "regret <= T", "truth": "up to 2T", "witness": "losses in [-1, 1]"}
    errors = [{"name": "file.py:Mine", "kind": "crashed", "message": "ZeroDivisionError", "replay": ""}]
    return run_record(
        claims, seed=0, alpha=0.01, command="overclaim run", errors=errors, regret=[regret], utility=[false]
    )


@pytest.fixture
def record(audited_once) -> dict:
    """Return a record of the test's own: one that changed it made others fail, whichever came after it."""
    return copy.deepcopy(audited_once)


@pytest.fixture(scope="session")
def hostile(audited_once) -> dict:
    dirty = copy.deepcopy(audited_once)
    for number, claim in enumerate(dirty["claims"]):
        claim["name"] = (HOSTILE, RTL, LONG)[number % 3]
        for key in ("source", "note", "replay", "attack"):
            claim[key] = (LONG, HOSTILE, RTL)[number % 3]
    dirty["claims"][0]["pair"]["left"] = [HOSTILE, "same"]
    dirty["claims"][0]["pair"]["right"] = [LONG, "same"]
    dirty["command"] = HOSTILE
    dirty["errors"] = [{"name": HOSTILE, "kind": HOSTILE, "message": LONG, "replay": HOSTILE}]
    dirty["regret"][0]["name"] = HOSTILE
    dirty["utility"][0]["statement"] = LONG
    return dirty


@pytest.fixture(scope="session")
def page(audited_once) -> str:
    return render(audited_once)


@pytest.fixture(scope="session")
def hostile_page(hostile) -> str:
    return render(hostile)
