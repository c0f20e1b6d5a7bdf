"""`overclaim register`: a static site of audited claims, from records alone."""

from __future__ import annotations

from pathlib import Path

import click

from .console import Once, command, say
from .options import FILE


@click.command(cls=Once)
@click.argument("record_files", metavar="RECORD.json...", nargs=-1, required=True, type=FILE)
@click.option("--out", type=FILE, default=Path("site"), help="Folder of the site [default: site]")
@command
def register(record_files: tuple[Path, ...], out: Path) -> None:
    """Write a register of audited claims: one page and one badge for each claim, and an index to filter.

    A claim's address depends on its question alone. Of several audits of one claim the newest is shown. A fault of
    a library that its authors were not told of is left out.
    """
    from ...audit.plans.paths import check_folder
    from ..consistency import check_consistent
    from ..record import read_record
    from ..register.site import is_publishable, newest_audits, write_site

    check_folder(out, "index.html", "filter.js", read={})
    records = []
    for file in record_files:
        record = read_record(file)
        check_consistent(record, str(file))
        records.append(record)
    audits = newest_audits(records)
    publishable = [audit for audit in audits if is_publishable(audit.claim)]
    count = write_site(publishable, out)
    if hidden := len(audits) - len(publishable):
        say(f"left out {hidden} that {'are' if hidden > 1 else 'is'} false and not disclosed to the authors yet")
    say(f"wrote {out / 'index.html'}: {count} claim{'s' * (count != 1)}")
