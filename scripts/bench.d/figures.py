# SPDX-License-Identifier: Apache-2.0
"""Measured figures, and how they are shown: as an aligned table, and as JSON."""

import json
import statistics
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """One quantity of one subject (a VMM, or this machine), measured several times."""

    name: str
    subject: str
    unit: str
    runs: tuple
    measured: str  # the command line that was measured, or how the figure follows from what a guest printed
    limit: float | None = None  # that the median is not to exceed

    @property
    def median(self):
        return statistics.median(self.runs)

    def as_json(self):
        shown = {"name": self.name, "subject": self.subject, "unit": self.unit, "median": self.median}
        shown |= {"runs": list(self.runs), "measured": self.measured}
        return shown | ({} if self.limit is None else {"limit": self.limit})


@dataclass
class Report:
    """What one benchmark found. `clock` says what its figures count."""

    benchmark: str
    command: str
    clock: str
    figures: list
    notes: list = field(default_factory=list)
    lowest: str = ""  # start of the names of the subjects whose figures are to be below everyone else's

    def as_json(self):
        shown = {"benchmark": self.benchmark, "command": self.command, "clock": self.clock}
        return shown | {"figures": [figure.as_json() for figure in self.figures], "notes": self.notes}


def _number(value):
    """Three digits are enough to compare by, but whole numbers stay whole."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _cells(report):
    """The table's rows of text, its header first."""
    subjects = list(dict.fromkeys(figure.subject for figure in report.figures))
    has_limits = any(figure.limit is not None for figure in report.figures)
    rows = [["median", *subjects] + (["limit"] if has_limits else []) + ["unit", "runs"]]
    for name in dict.fromkeys(figure.name for figure in report.figures):
        of_name = {figure.subject: figure for figure in report.figures if figure.name == name}
        shown = next(iter(of_name.values()))
        row = [name] + [_number(of_name[subject].median) if subject in of_name else "-" for subject in subjects]
        if has_limits:
            row.append("-" if shown.limit is None else f"{shown.limit:g}")
        rows.append(row + [shown.unit, str(len(shown.runs))])
    return rows


def table(report):
    """The report as text: one row for each quantity, one column for each subject."""
    rows = _cells(report)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    unit = len(rows[0]) - 2
    lines = [f"{report.benchmark}: {report.clock}", ""]
    for row in rows:
        cells = [cell.ljust(width) if column in (0, unit) else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  " + "  ".join(cells).rstrip())
    lines += ["", f"  reproduce: {report.command}", "  measured:"]
    lines += [f"    {line}" for line in dict.fromkeys(f"{figure.subject}: {figure.measured}" for figure in report.figures)]
    return "\n".join(lines + [f"  note: {note}" for note in report.notes])


def offences(report):
    """One line for each median that is not where it has to be."""
    found = [f"{report.benchmark}: {figure.name}, {figure.subject}: {_number(figure.median)} {figure.unit} is above "
             f"the limit of {figure.limit:g}" for figure in report.figures
             if figure.limit is not None and figure.median > figure.limit]
    lowest = [figure for figure in report.figures if report.lowest and figure.subject.startswith(report.lowest)]
    for ours in lowest:
        for other in report.figures:
            if other not in lowest and ours.name == other.name and ours.median >= other.median:
                found.append(f"{report.benchmark}: {ours.name}: {_number(ours.median)} {ours.unit} of {ours.subject} is "
                             f"not below {_number(other.median)} of {other.subject}")
    return found


def as_json(reports):
    return json.dumps({"benchmarks": [report.as_json() for report in reports]}, indent=2) + "\n"
