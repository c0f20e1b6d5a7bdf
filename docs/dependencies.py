"""What is locked, what it is for, its licence and its size: `python docs/dependencies.py` writes docs/dependencies.md.

    python docs/dependencies.py [SITE_PACKAGES]

Names and what needs them come from requirements.lock, licences from the metadata of the installed packages. A package
that is not installed here, such as one for another system, keeps the licence that the page gives. Sizes are those that
the page gives, or those of a folder `site-packages` that is named.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distributions, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "dependencies.md"
#: What an Apache-2.0 package may depend on: permissive licences, and the MPL, whose copyleft ends at its own files.
ALLOWED = {
    *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD", "BSD-2-Clause", "BSD-3-Clause"),
    *("CC0-1.0", "ISC", "MIT", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Zlib"),
}
#: What older metadata says, in SPDX's words. "BSD" is one of the two BSD licences.
SPDX = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "2-clause BSD": "BSD-2-Clause",
    "BSD 2-Clause License": "BSD-2-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
HEAD = """\
# Dependencies

`requirements.lock` pins every package that `make` and the GitHub action install, with its hashes; mutmut, for
`make mutation`, is installed by hand, and `make libraries` has `benchmarks/libraries.txt`, versions without hashes. A
package that runs with overclaim must be under a permissive licence or the MPL; a test refuses any
other. Tools of development are listed too; overclaim does not ship them.

To look for known vulnerabilities: `pip-audit --require-hashes --disable-pip -r requirements.lock`.

Sizes are in MB on disk, on Linux with Python 3.11 and without bytecode, which adds two fifths. A dash is a package
that was not measured. What overclaim itself needs takes {core:.0f} MB, and the extra `figures` {figures:.0f} MB more.
statsmodels needs pandas, and optuna needs sqlalchemy; both are used in most audits.
"""


def locked() -> dict[str, set[str]]:
    """Return the locked packages, each with those that need it; "overclaim" among them where overclaim does."""
    wanted_by: dict[str, set[str]] = {}
    name = ""
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        if pinned := re.match(r"([a-z][a-z0-9-]*)(?:\[[a-z,]+\])?==", line):
            name = pinned[1]
            wanted_by.setdefault(name, set())
        elif via := re.fullmatch(r"    # (?:via| ) ([a-z0-9-]+)(?: \(pyproject\.toml\))?", line):
            wanted_by[name].add(via[1])
    return wanted_by


def uses() -> dict[str, str]:
    """Return what each locked package is for: "run time", the names of the extras, or "development"."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: needs for name, needs in project["optional-dependencies"].items() if name not in ("dev", "docs")}
    above = locked()
    closures = {
        name: _closure(needs, above) for name, needs in {"run time": project["dependencies"], **extras}.items()
    }
    use_of = {}
    for name in above:
        inside = [use for use, members in closures.items() if name in members]
        use_of[name] = "run time" if "run time" in inside else ", ".join(inside) or "development"
    return use_of


def _closure(needs: list[str], above: dict[str, set[str]]) -> set[str]:
    members = {re.match(r"[A-Za-z0-9-]+", need)[0] for need in needs}
    while more := {name for name, parents in above.items() if parents & members} - members:
        members |= more
    return members


def licence(name: str, shown: dict[str, str]) -> str:
    """Return the licence of a package as an SPDX expression where its metadata allows that.

    Raises
    ------
    ValueError
        If neither the metadata nor the page tells.
    """
    try:
        data = metadata(name)
    except PackageNotFoundError:
        if name not in shown:
            raise ValueError(f"{name} is not installed here: write its licence into {PAGE.name}") from None
        return shown[name]
    said = data.get("License-Expression") or data.get("License") or ""
    classifiers = [c.split(" :: ")[-1] for c in data.get_all("Classifier") or [] if c.startswith("License ::")]
    if not said or "\n" in said or len(said) > 60:  # a whole text, or nothing
        said = next((c for c in reversed(classifiers) if c in SPDX), "")
    if not said:
        raise ValueError(f"{name} does not tell its licence: {classifiers}")
    return SPDX.get(said, said)


def is_allowed(expression: str) -> bool:
    """Tell whether a licence expression of AND and OR, in which OR binds closer, can be met by allowed licences."""
    parts = expression.replace("(", "").replace(")", "").split(" AND ")
    return all(any(choice in ALLOWED for choice in part.split(" OR ")) for part in parts)


def shown() -> dict[str, str]:
    """Return the licences that the page gives."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return dict(re.findall(r"^\| ([a-z0-9-]+) \| ([^|]+) \|", text, re.MULTILINE))


def sizes() -> dict[str, float]:
    """Return the sizes that the page gives, in MB."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    found = re.findall(r"^\| ([a-z0-9-]+) \| [^|]+ \| [^|]+ \| ([\d.]+) \|$", text, re.MULTILINE)
    return {name: float(size) for name, size in found}


def measured(folder: str) -> dict[str, float]:
    """Return the sizes of what is installed in a folder, in MB, without bytecode."""
    size_of = {}
    for one in distributions(path=[folder]):
        files = [Path(file.locate()) for file in one.files or () if file.suffix != ".pyc"]
        name = re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower()
        size_of[name] = sum(file.stat().st_size for file in files if file.exists()) / 1e6
    return size_of


def page(size_of: dict[str, float] | None = None) -> str:
    """Return the page, with sizes of its own unless others are given."""
    known, use_of, size_of = shown(), uses(), sizes() if size_of is None else size_of
    total = {
        use: sum(round(size_of.get(name, 0.0), 1) for name, its in use_of.items() if its == use)
        for use in ("run time", "figures")
    }
    head = HEAD.format(core=total["run time"], figures=total["figures"])
    lines = [head, "| package | licence | for | MB |", "|---|---|---|---:|"]
    order = {"run time": 0, "development": 2}
    for name, use in sorted(use_of.items(), key=lambda item: (order.get(item[1], 1), item)):
        size = f"{size_of[name]:.1f}" if name in size_of else "-"
        lines.append(f"| {name} | {licence(name, known)} | {use} | {size} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(measured(sys.argv[1]) if sys.argv[1:] else None), encoding="utf-8")
