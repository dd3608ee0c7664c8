# SPDX-License-Identifier: Apache-2.0
"""Builds what the labels need, runs their tests, and counts test cases; see docs/testing.md.

usage: scripts/test [LABEL...]

Without a LABEL: all that CI runs. The last line is `N passed, N failed` or `N passed, N failed, N skipped`;
the exit status is 0 if nothing failed and every label ran something.
"""

import argparse
import glob
import os
import shlex
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import ctest_list
import gtest_results
from tally import Tally
from turns import Turns

TOP = Path(__file__).resolve().parent.parent.parent
RESULTS = TOP / "build/results"


@dataclass(frozen=True)
class Testbed:
    """One boot of scripts/testbed, in which the tests of a label run; `filter` selects gtest cases.

    `guest_kernel` is the one that Linux guests boot (see scripts/images), if the label has any. A testbed that is
    `complete` lacks, where it is emulated, nothing in tests/harness/capabilities.cpp that a selected case may need: a
    skip is a failure. The cases that `alone` selects need the CPUs for themselves: they run last, and while no other
    testbed runs any.
    """

    name: str
    options: tuple
    filter: str = "*"
    alone: str = ""
    guest_kernel: str = ""
    timeout_s: int = 3600
    complete: bool = False

    def parts(self):
        """The filter of each part of the cases: first those that may run beside others."""
        if not self.alone:
            return {"": self.filter}
        selected, _, left_out = self.filter.partition("-")
        return {"": f"{selected}-{left_out}:{self.alone}", ".alone": f"{self.alone}-{left_out}"}


@dataclass(frozen=True)
class Label:
    """What `scripts/test NAME` runs. Scripts are patterns of paths from the top of the tree.

    Testbeds and scripts run one after the other, or, but for what has to be `alone`, `side_by_side`.
    """

    name: str
    native: bool = False
    testbeds: tuple = ()
    side_by_side: bool = False
    scripts: tuple = ()
    only_by_name: bool = False
    tests_of: tuple = ()  # ctest labels whose tests run in the testbeds; the label itself by default
    presets: tuple = field(default=())


# Suites of `guest` that hold what a guest or a BPF program sees of preempted threads against what the host does.
SHARING_OF_CPUS = "Bpf*:*PvTest.*:*PvRunTest.*:*PvCountTest.*"

# A guest of so many vCPUs that two emulated CPUs barely keep up with its ticks: beside another testbed its boot takes ten times
# as long.
MANY_VCPUS = "*SeventeenCpusComeOnline"

# Suites that show what the kernel series change: records, FP registers and address spaces of vCPUs.
LINUX_AND_RECORDS = "GuestRecordsTest.*:*LinuxGuestTest.*PvVcpuState*:LinuxGuestTest.FourCpus*:LinuxGuestTest.Reboot*"
SWITCHING = f"Pv*:*/Pv*:{LINUX_AND_RECORDS}:Cpus/*AllOfRam*"

LABELS = (
    Label("check", side_by_side=True, scripts=("scripts/check_*", "tests/scripts/*_test")),
    Label("unit", native=True, presets=("host",), scripts=("tests/vmid/vmid_test",)),
    Label("contract", native=True, presets=("host",)),
    Label("package", presets=("arm64",), scripts=("tests/package/*_test",)),
    Label("testbed", scripts=("tests/testbed/*_test",)),
    Label(
        "guest",
        presets=("arm64",),
        side_by_side=True,
        testbeds=(
            Testbed("max", ("--cpu", "max", "--kernel", "stock"), "-Soak*", SHARING_OF_CPUS, complete=True),
            Testbed(
                "a72",
                ("--cpu", "cortex-a72", "--kernel", "stock"),
                "-Soak*:ConsoleTest.*:VsockNonsenseTest.*:*FiftyResets*",
                SHARING_OF_CPUS,
            ),
            Testbed(
                "gicv2",
                ("--cpu", "cortex-a72", "--host-gic", "2", "--kernel", "stock"),
                "-Soak*:ConsoleTest.*:VsockNonsenseTest.*:*FiftyResets*:*HundredResets*:Features*:Bpf*:*PvCount*",
                SHARING_OF_CPUS,
            ),
        ),
    ),
    Label(
        "system",
        presets=("arm64",),
        side_by_side=True,
        testbeds=(
            Testbed("stock", ("--cpu", "max", "--kernel", "stock"), "-Soak*", MANY_VCPUS, guest_kernel="stock"),
            Testbed("stock-16k", ("--kernel", "stock-16k"), "LinuxGuestTest.FourCpus*", guest_kernel="stock-16k"),
            Testbed(
                "a72",
                ("--cpu", "cortex-a72", "--kernel", "stock"),
                "LinuxGuestTest.FourCpus*:LinuxGuestTest.Reboot*:KernelPageSizeTest.*",
                guest_kernel="stock",
            ),
            Testbed(
                "gicv2",
                ("--cpu", "cortex-a72", "--host-gic", "2", "--kernel", "stock"),
                "LinuxGuestTest.FourCpus*:LinuxGuestTest.Reboot*:Gic/*",
                guest_kernel="stock",
            ),
        ),
    ),
    Label(
        "migration",
        presets=("arm64",),
        side_by_side=True,
        testbeds=(
            Testbed("stock", ("--cpu", "max", "--kernel", "stock"), "-Soak*", guest_kernel="stock"),
            Testbed("a72", ("--cpu", "cortex-a72", "--kernel", "stock"), "Cpus/*AllOfRam*", guest_kernel="stock"),
        ),
    ),
    Label(
        "kernel",
        presets=("arm64",),
        only_by_name=True,
        tests_of=("guest", "system", "migration"),
        testbeds=(
            Testbed(
                "tandem",
                ("--cpu", "max", "--kernel", "tandem"),
                "-Soak*",
                SHARING_OF_CPUS + ":" + MANY_VCPUS,
                guest_kernel="tandem",
            ),
            Testbed(
                "nvhe",
                ("--cpu", "max", "--kernel", "tandem", "--append", "kvm-arm.mode=nvhe"),
                SWITCHING,
                guest_kernel="tandem",
            ),
            Testbed("a72", ("--cpu", "cortex-a72", "--kernel", "tandem"), SWITCHING, guest_kernel="tandem"),
            Testbed("stock-guest", ("--cpu", "max", "--kernel", "tandem"), LINUX_AND_RECORDS, guest_kernel="stock"),
            Testbed("stock-host", ("--cpu", "max", "--kernel", "stock"), LINUX_AND_RECORDS, guest_kernel="tandem"),
        ),
        scripts=("tests/kernel/cpu_parity.sh", "tests/kernel/selftests.sh", "tests/kernel/vmid_rollover.sh"),
    ),
    Label(
        "soak",
        presets=("arm64",),
        only_by_name=True,
        tests_of=("guest", "system", "migration"),
        testbeds=(Testbed("max", ("--cpu", "max", "--kernel", "stock"), "Soak*", guest_kernel="stock", timeout_s=14400),),
        scripts=("tests/vmid/soak",),
    ),
)


def show(text):
    """Prints progress at once, on stderr: stdout carries the outcome."""
    print(f"test: {text}", file=sys.stderr, flush=True)


def build(presets):
    """Builds the presets; ends the program if that fails, with a last line that says so."""
    for preset in presets:
        if subprocess.run([TOP / "scripts/build", preset], check=False).returncode != 0:
            print(f"scripts/test: cannot build {preset}")
            print("0 passed, 1 failed")
            sys.exit(1)


def run_native(label):
    """Runs the label's ctest tests of build/host, all CPUs busy."""
    directory = TOP / "build/host"
    shutil.rmtree(directory / "results", ignore_errors=True)
    junit = RESULTS / f"{label.name}.xml"
    junit.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", directory, "-L", f"^{label.name}$", "--no-tests=error", "--output-on-failure"]
    command += ["--parallel", str(os.cpu_count()), "--output-junit", junit, "--test-output-size-failed", "1000000"]
    subprocess.run(command, stdout=sys.stderr, check=False)
    tally = Tally()
    if junit.exists():
        for case in ElementTree.parse(junit).getroot().iter("testcase"):
            name = case.get("name")
            ended = "ended well" if case.get("status") == "run" else case.findtext("system-out") or "did not run"
            gtest_results.count(tally, name, directory / "results", case.get("status") == "run", ended)
    return tally


def is_emulated():
    """Whether testbeds have the CPU that their options name: on an arm64 host they are the machine itself."""
    return os.uname().machine != "aarch64" or not os.path.exists("/dev/kvm")


def guest_environment(testbed):
    """Prepares the images of Linux guests; returns the variables that name them."""
    if not testbed.guest_kernel:
        return {}

    def image(*what):
        command = [TOP / "scripts/images", *what]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    kernel = ("--kernel", testbed.guest_kernel)
    return {
        "TANDEM_GUEST": testbed.guest_kernel,
        "TANDEM_GUEST_KERNEL": image("kernel", *kernel),
        "TANDEM_GUEST_INITRAMFS": image("initramfs", *kernel),
        "TANDEM_EXT4_IMAGE": image("ext4"),
    }


def run_in_testbed(label, testbed, turns):
    """Runs the label's tests of build/arm64 in one testbed, one after the other."""
    labels = label.tests_of or (label.name,)
    tests = [test for name in labels for test in ctest_list.read(TOP / "build/arm64", name)]
    results = TOP / "build/arm64/results" / label.name / testbed.name
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    tally = Tally()
    parts = ["".join(_shell_lines(test, results, part, selected) for test in tests) for part, selected in testbed.parts().items()]
    command = [TOP / "scripts/testbed", *testbed.options, "--timeout", str(testbed.timeout_s)]
    command += ["--log", results / "machine.log", "--", "sh", "-c", ASK_FOR_TURN.join(parts)]
    environment = os.environ | guest_environment(testbed)
    statuses = {}
    if tests:
        with turns.beside_others() as turn:
            statuses = _stream(command, environment, testbed.name, results / "output.log", turn)
    for part in testbed.parts():
        for test in tests:
            status = statuses.get(test.name + part)
            ended = f"exit status {status}" if status else "the testbed ended before the test did"
            gtest_results.count(tally, f"{test.name} [{testbed.name}]", results, status == "0", ended, test.name + part,
                                filtered=testbed.filter != Testbed.filter)
    if not tally.ran():
        tally.fail(f"{label.name} [{testbed.name}]", f"no test case is selected by {testbed.filter}")
    if testbed.complete and is_emulated():
        tally.refuse_skips(f"the testbed {testbed.name} lacks nothing")
    return tally


# What a testbed does between its parts: it asks, and goes on when a line comes.
ASK_FOR_TURN = "echo; echo '@turn'; read -r turn\n"


def _shell_lines(test, results, part, selected):
    output = shlex.quote(f"xml:{results}/{gtest_results.file_name(test.name + part)}")
    words = " ".join(shlex.quote(word) for word in test.command)
    environment = f"TANDEM_REQUIRE_KVM=1 GTEST_FILTER={shlex.quote(selected)} GTEST_OUTPUT={output}"
    environment += f" TANDEM_TEST_LOGS={shlex.quote(str(results))}"
    run = f"{environment} timeout -k 10 {test.timeout_s} {words} </dev/null 2>&1"
    return f"{run}; status=$?; echo; echo '@end' {test.name}{part} $status\n"


def _stream(command, environment, name, log_path, turn):
    """Runs the command, passes on what tells of progress, and returns each test's exit status."""
    statuses = {}
    pipe = subprocess.PIPE
    with open(log_path, "w", encoding="utf-8") as log:
        with subprocess.Popen(command, cwd=TOP, env=environment, stdin=pipe, stdout=pipe, text=True, errors="replace") as process:
            for line in process.stdout:
                log.write(line)
                if line.startswith("@end "):
                    _, test, status = line.split()
                    statuses[test] = status
                elif line == "@turn\n":
                    turn.wait_until_alone()
                    process.stdin.write("go\n")
                    process.stdin.flush()
                elif gtest_results.tells_progress(line):
                    show(f"{name}: {line.rstrip()}")
        if process.returncode != 0:
            show(f"{name}: the testbed ended with status {process.returncode}; its output: {log_path}")
    return statuses


def run_script(path):
    """Runs a script that prints `ok: NAME`, `FAILED: NAME...` or `skipped: NAME...`; one that prints none is one case."""
    name = str(path.relative_to(TOP))
    run = subprocess.run([path], cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    output = run.stdout + run.stderr
    tally = Tally()
    for line in run.stdout.splitlines():
        kind, _, text = line.partition(": ")
        if kind == "ok":
            tally.passed += 1
        elif kind == "FAILED":
            tally.fail(f"{name}: {text}", "")
        elif kind == "skipped":
            tally.skip(f"{name}: {text}")
    if not tally.ran() and run.returncode == 0:
        tally.passed += 1
    elif run.returncode != 0 and not tally.failed:
        tally.fail(name, f"exit status {run.returncode}\n{output}")
    elif tally.failed:
        show(f"{name}:\n{output}")
    return tally


def run_label(label):
    started = time.monotonic()
    show(f"--- {label.name}")
    tally = Tally()
    if label.native:
        tally.add(run_native(label))
    places = os.cpu_count() if label.side_by_side else 1
    turns = Turns(places)
    paths = [Path(path) for pattern in label.scripts for path in sorted(glob.glob(str(TOP / pattern)))]
    # Each testbed has a thread, which waits for its turn.
    with ThreadPoolExecutor(max(1, len(label.testbeds))) as testbeds:
        for one in testbeds.map(lambda testbed: run_in_testbed(label, testbed, turns), label.testbeds):
            tally.add(one)
    with ThreadPoolExecutor(places) as pool:
        for one in pool.map(run_script, paths):
            tally.add(one)
    if tally.ran() == 0:
        tally.fail(label.name, "no test ran: there is none with this label")
    for name, text in tally.failures:
        print(f"FAILED: {name}\n{text}".rstrip(), flush=True)
    for name in tally.skips:
        print(f"skipped: {name}", flush=True)
    print(f"{label.name}: {tally} in {time.monotonic() - started:.0f} s", flush=True)
    return tally


def parse_labels():
    names = [label.name for label in LABELS]
    parser = argparse.ArgumentParser(
        prog="scripts/test",
        description="Builds and runs tests; without a LABEL all that CI runs.",
        epilog=f"labels: {', '.join(names)}. See docs/testing.md.",
    )
    parser.add_argument("labels", nargs="*", metavar="LABEL")
    chosen = parser.parse_args().labels
    for name in chosen:
        if name not in names:
            parser.error(f"no label '{name}': there are {', '.join(names)}")
    return [label for label in LABELS if (label.name in chosen if chosen else not label.only_by_name)]


def main():
    labels = parse_labels()
    RESULTS.mkdir(parents=True, exist_ok=True)
    build(dict.fromkeys(preset for label in labels for preset in label.presets))
    total = Tally()
    for label in labels:
        total.add(run_label(label))
    print(total, flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
