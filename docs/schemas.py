"""The JSON Schemas of what overclaim reads and writes: a hook of mkdocs that publishes each with the site."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from overclaim.addresses import PAGES, schema_address
from overclaim.audit.plans.plan_schema import PLAN
from overclaim.reports.formats import evidence
from overclaim.reports.record import SCHEMA
from overclaim.reports.record_schema import json_schema


def on_post_build(config: Any, **_: Any) -> None:
    """Publish each schema at the address that is its `$id`: called by mkdocs when the site is built."""
    for schema in schemas():
        file = Path(config["site_dir"]) / schema["$id"].removeprefix(f"{PAGES}/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(schema, indent=1), encoding="utf-8")


def schemas() -> Iterator[dict[str, Any]]:
    """Yield the schemas of plans, of records (baselines are records too), and of evidence."""
    yield dict(PLAN)
    of_reports = (("record", SCHEMA, json_schema()), ("evidence", evidence.VERSION, evidence.json_schema()))
    for name, version, schema in of_reports:
        head = {"$schema": PLAN["$schema"], "$id": schema_address(name, version), "title": f"overclaim {name}"}
        yield head | schema
