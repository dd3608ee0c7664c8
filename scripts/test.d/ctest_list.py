# SPDX-License-Identifier: Apache-2.0
"""The tests that a build directory registers with ctest."""

import json
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class CtestTest:
    """One registered test program."""

    name: str
    command: list
    timeout_s: int


def read(directory, label):
    """Returns the tests that carry the label, in the order of their registration."""
    command = ["ctest", "--test-dir", directory, "--show-only=json-v1", "-L", f"^{label}$"]
    listing = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    tests = []
    for test in listing["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        tests.append(CtestTest(test["name"], test["command"], int(properties.get("TIMEOUT", 120))))
    return tests
