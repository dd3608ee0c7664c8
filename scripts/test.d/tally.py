# SPDX-License-Identifier: Apache-2.0
"""Counts of test cases, with what is to be said about those that did not pass."""


class Tally:
    """How many cases passed, failed and were skipped."""

    def __init__(self):
        self.passed = 0
        self.failures = []  # (name, text)
        self.skips = []  # "name: reason"

    @property
    def failed(self):
        return len(self.failures)

    def fail(self, name, text):
        self.failures.append((name, text))

    def skip(self, text):
        self.skips.append(text)

    def refuse_skips(self, why):
        """Makes failures of all skips so far: of tests that had what they needed."""
        for text in self.skips:
            self.fail(text, f"skipped itself, and may not: {why}")
        self.skips = []

    def ran(self):
        return self.passed + len(self.failures) + len(self.skips)

    def add(self, other):
        self.passed += other.passed
        self.failures += other.failures
        self.skips += other.skips

    def __str__(self):
        text = f"{self.passed} passed, {self.failed} failed"
        return f"{text}, {len(self.skips)} skipped" if self.skips else text
