# SPDX-License-Identifier: Apache-2.0
"""Reads the result files that gtest programs write (GTEST_OUTPUT=xml:...)."""

import xml.etree.ElementTree as ElementTree


def file_name(test_name):
    """The result file of a test, as tandem_test() in scripts/cmake/tandem.cmake names it."""
    return test_name.replace("/", "_") + ".xml"


def tells_progress(line):
    return line.startswith(("[       OK ]", "[  FAILED  ]", "[  SKIPPED ]")) and line.endswith(" ms)\n")


def count(tally, name, directory, ended_well, how_it_ended, test_name=None, filtered=False):
    """Adds the cases of one test program to the tally.

    A program that wrote no results (it crashed, hung, or is no gtest program) counts as one case; one whose
    exit status and results disagree has one failure more. Only a program that a filter was put on may have no case.
    """
    path = directory / file_name(test_name or name)
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        cases = None
    if cases is None:
        if ended_well:
            tally.passed += 1
        else:
            tally.fail(name, how_it_ended)
        return
    failed_before = tally.failed
    for case in cases:
        _count_case(tally, name, case)
    if not cases and not filtered:
        tally.fail(name, "the program has no test case")
    elif not ended_well and tally.failed == failed_before:
        tally.fail(name, how_it_ended)


def _count_case(tally, program, case):
    name = f"{program}: {case.get('classname')}.{case.get('name')}"
    failures = case.findall("failure")
    skipped = case.find("skipped")
    if failures:
        tally.fail(name, "\n".join(failure.text or failure.get("message", "") for failure in failures))
    elif case.get("status") == "notrun" or case.get("result") == "suppressed":
        return  # Not selected by the filter.
    elif skipped is not None or case.get("result") == "skipped":
        tally.skip(f"{name}: {(skipped.get('message') if skipped is not None else '') or 'no reason given'}")
    else:
        tally.passed += 1
