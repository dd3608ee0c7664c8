# SPDX-License-Identifier: Apache-2.0
"""Runs benchmarks, prints a table of each and writes JSON; see docs/bench.md.

usage: scripts/bench NAME... [--runs N] [--guest-kernel K] [--json FILE]

Exit status: 0, 1 if a benchmark failed or a median is not where it has to be, 2 for a usage error.
"""

import argparse
import sys
from pathlib import Path

import figures
from benchmarks import BENCHMARKS
from guest_runs import TOP, BenchFailed, show


def parse_arguments(argv):
    known = "\n".join(f"  {name:11}  {function.__doc__}" for name, function in BENCHMARKS.items())
    parser = argparse.ArgumentParser(prog="scripts/bench", formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description="Runs benchmarks, prints a table of each and writes JSON.",
                                     epilog=f"benchmarks:\n{known}\n\nSee docs/bench.md.")
    parser.add_argument("names", nargs="+", metavar="NAME", help="what to measure, see below")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs behind each median [5]")
    parser.add_argument("--guest-kernel", metavar="K",
                        help="kernel of Linux guests: small, tandem, stock, stock-16k, or a path [small]; testbed: of the host too [tandem]")
    parser.add_argument("--json", metavar="FILE", help="where to write JSON [build/bench/NAME.json for each NAME]")
    options = parser.parse_args(argv)
    for name in options.names:
        if name not in BENCHMARKS:
            parser.error(f"no benchmark '{name}': there are {', '.join(BENCHMARKS)}")
    if not 1 <= options.runs <= 1000:
        parser.error(f"--runs is a number from 1 to 1000, not {options.runs}")
    return options


def write_json(path, reports):
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(figures.as_json(reports), encoding="utf-8")
    except OSError as error:
        raise BenchFailed(f"cannot write {path}: {error.strerror}") from error
    show(f"wrote {path}")


def run(options):
    """Runs the benchmarks; returns the lines that tell of medians which are not where they have to be."""
    reports = []
    for name in dict.fromkeys(options.names):
        report = BENCHMARKS[name](options)
        reports.append(report)
        print(figures.table(report), end="\n\n", flush=True)
        if not options.json:
            write_json(TOP / f"build/bench/{name}.json", [report])
    if options.json:
        write_json(Path(options.json), reports)
    return [line for report in reports for line in figures.offences(report)]


def main(argv):
    options = parse_arguments(argv)
    try:
        found = run(options)
    except BenchFailed as error:
        show(str(error))
        return 1
    for line in found:
        show(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
