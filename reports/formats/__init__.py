"""Formats of a report, each a module with `render(record)`, from the record alone.

A new one is a module beside these and a line in `FORMATS`: its option of `overclaim report`, and what that says.
"""

#: What each writes, by module and option.
FORMATS = {
    "html": "Write the report, one page",
    "markdown": "Write a summary for a pull request",
    "junit": "Write JUnit XML",
    "sarif": "Write SARIF 2.1.0, for code scanning",
    "evidence": "Write YAML for a register of deployments: what was claimed, tested and not tested",
}
