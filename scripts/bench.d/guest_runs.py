# SPDX-License-Identifier: Apache-2.0
"""Runs VMMs in one testbed, one after the other, and takes the time of each run by bench/timed_run."""

import os
import platform
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
PLACE = "/tmp/tandem-bench"  # in the testbed's memory: no shared directory has a part in what is measured
QEMU_ROOT = f"{PLACE}/qemu"
HOST_KERNEL = "stock"


class BenchFailed(Exception):
    """A benchmark could not be measured: one line that says why."""


def is_native():
    """True where scripts/testbed runs commands on the machine itself."""
    return platform.machine() == "aarch64" and os.path.exists("/dev/kvm")


def show(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def output_of(*command):
    """What one of our scripts prints: a path, or words."""
    run = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        raise BenchFailed(f"{Path(command[0]).name} {command[1]} ended with status {run.returncode}")
    return run.stdout.strip()


def icount_options(memory="2G"):
    return ["--icount", "--kernel", HOST_KERNEL, "--memory", memory]


def icount_clock():
    if is_native():
        return "time of this machine's counter"
    return f"virtual time of scripts/testbed --icount --kernel {HOST_KERNEL}: 1 instruction = 1 ns"


def build():
    """Builds Tandem and what is measured with it."""
    if subprocess.run([TOP / "scripts/build", "arm64"], stdin=subprocess.DEVNULL, check=False).returncode != 0:
        raise BenchFailed("cannot build arm64")


@dataclass(frozen=True)
class Subject:
    """A VMM as `timed_run` starts it; `options` are those of timed_run, `file` makes a path of a file's name."""

    name: str
    options: tuple
    program: tuple

    def is_tandem(self):
        return self.program[0] == f"{PLACE}/tandem"

    def boot(self, kernel, initrd=None, cmdline=""):
        """The command line of a guest with one vCPU and 128 MiB."""
        command = [*self.program, "--kernel" if self.is_tandem() else "-kernel", f"{PLACE}/{kernel}"]
        if initrd:
            command += ["--initrd" if self.is_tandem() else "-initrd", f"{PLACE}/{initrd}"]
        if cmdline:
            command += ["--cmdline" if self.is_tandem() else "-append", cmdline]
        return command


TANDEM = Subject("tandem", (), (f"{PLACE}/tandem", "run", "--memory", "128M"))
# Without the interface that the other VMMs do not have either, and its back end, which takes time to load.
TANDEM_WITHOUT_PV = Subject("tandem, no PV", (), (*TANDEM.program, "--pv-vcpu-state", "off", "--no-pv-time"))
QEMU = Subject("qemu", ("--root", QEMU_ROOT), (
    "/usr/bin/qemu-system-aarch64", "-M", "virt,gic-version=host", "-cpu", "host", "-accel", "kvm", "-m", "128", "-smp", "1",
    "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio"))


@dataclass(frozen=True)
class Run:
    """One run that is to be timed; `key` tells those of one kind from others."""

    key: str
    subject: Subject
    command: tuple

    def shell_lines(self):
        timed = [f"{PLACE}/timed_run", *self.subject.options, f"{PLACE}/output", *self.command]
        return f"echo '@run {self.key}'\n{shlex.join(timed)}\ncat {PLACE}/output; echo\n"


@dataclass(frozen=True)
class Timed:
    """What was seen of one run. Times are counter values."""

    start: int
    end: int
    frequency_hz: int
    output: str

    def ms_until(self, counter):
        return (counter - self.start) * 1e3 / self.frequency_hz

    def total_ms(self):
        return self.ms_until(self.end)


def _set_up(files, qemu_archive):
    """Shell lines that bring everything into the testbed's memory, and take it away again."""
    lines = ["set -e", f"mkdir {PLACE}"]
    lines.append(f"""trap 'umount {QEMU_ROOT}{PLACE} {QEMU_ROOT}/dev 2>/dev/null; rm -rf {PLACE}' EXIT""")
    lines += [f"cp {shlex.quote(str(path))} {PLACE}/{name}" for name, path in files.items()]
    if qemu_archive:
        lines += [f"mkdir -p {QEMU_ROOT}/dev {QEMU_ROOT}{PLACE}", f"tar -xf {shlex.quote(qemu_archive)} -C {QEMU_ROOT}",
                  f"mount --bind /dev {QEMU_ROOT}/dev", f"mount --bind {PLACE} {QEMU_ROOT}{PLACE}",
                  f"chroot {QEMU_ROOT} /sbin/ldconfig",
                  f"echo \"@version $(chroot {QEMU_ROOT} {QEMU.program[0]} --version | head -n 1)\""]
    return "\n".join([*lines, "set +e", ""])


def parse(text):
    """Splits a session's output: the version of QEMU, and for each run its key and what was seen of it.

    Raises BenchFailed for a run that did not end well or was not timed.
    """
    version, timed = "", []
    for block in text.split("@run ")[1:]:
        key, _, rest = block.partition("\n")
        line, _, output = rest.partition("\n")
        words = line.split()
        if len(words) != 5 or words[0] != "timed":
            raise BenchFailed(f"{key}: was not timed: {rest.strip() or 'no output'}")
        start, end, frequency_hz, status = map(int, words[1:])
        if status != 0:
            raise BenchFailed(f"{key}: ended with status {status}: {output.strip() or 'no output'}")
        timed.append((key, Timed(start, end, frequency_hz, output)))
    for line in text.splitlines():
        if line.startswith("@version "):
            version = line.removeprefix("@version ")
    return version, timed


def measure(testbed_options, files, runs, qemu_archive=None):
    """Runs all `runs` in one boot of the testbed; returns QEMU's version, and a list of Timed for each key."""
    binaries = TOP / "build/arm64"
    files = {"tandem": binaries / "tandem", "timed_run": binaries / "bench/timed_run"} | files
    script = _set_up(files, qemu_archive) + "".join(run.shell_lines() for run in runs)
    command = [TOP / "scripts/testbed", *testbed_options, "--timeout", "1800", "--", "sh", "-c", script]
    session = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, text=True, errors="replace", check=False)
    if session.returncode != 0:
        raise BenchFailed(f"the testbed ended with status {session.returncode}: {session.stdout.strip()[-400:]}")
    version, timed = parse(session.stdout)
    if len(timed) != len(runs):
        raise BenchFailed(f"{len(runs)} runs were started, {len(timed)} were seen")
    by_key = {}
    for key, seen in timed:
        by_key.setdefault(key, []).append(seen)
    return version, by_key
