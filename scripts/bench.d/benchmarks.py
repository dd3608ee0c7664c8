# SPDX-License-Identifier: Apache-2.0
"""The benchmarks. Each is a function of the options that returns a Report."""

import os
import re
import resource
import shlex
import subprocess
import time

import guest_runs
from figures import Figure, Report
from fp import fp
from guest_runs import (PLACE, QEMU, TANDEM, TANDEM_WITHOUT_PV, TOP, BenchFailed, Run, build, icount_clock, icount_options,
                        output_of, show)
from moves import migrate, restore, save

PEER_PACKAGES = ("kvmtool", "firecracker", "cloud-hypervisor", "crosvm")
QUIET_CONSOLE = "console=ttyAMA0 quiet"
SUBJECTS = (TANDEM, TANDEM_WITHOUT_PV, QEMU)
MACHINE = "this machine"
TESTBED_LIMIT_S = 4  # docs/testbed.md: what a testbed may cost besides its command, and a busybox guest until it is up


def _shown(subject, command):
    """A command line as someone would type it who has the files in the current directory."""
    root = "(in a root of QEMU's packages) " if subject is QEMU else ""
    return root + shlex.join(command).replace(f"{PLACE}/", "")


def _peer_note(version):
    packaged = output_of(TOP / "scripts/bench.d/prepare", "packaged", *PEER_PACKAGES).split()
    absent = [name for name in PEER_PACKAGES if name not in packaged]
    notes = [f"qemu: {version}"]
    if absent:
        notes.append(f"not measured, because this distribution has no arm64 package of them: {', '.join(absent)}")
    if packaged:
        notes.append(f"packaged, but this benchmark does not know their command lines: {', '.join(packaged)}")
    return notes


def first_instruction_ms(timed):
    """Milliseconds from exec to the guest's first instruction, which the payload has printed."""
    match = re.search(r"first-instruction ([0-9a-f]{16})", timed.output)
    if not match:
        raise BenchFailed(f"the payload did not say when it began: {timed.output.strip() or 'no output'}")
    return timed.ms_until(int(match.group(1), 16))


def boot(options):
    """exec of the VMM until the guest's first instruction, and until a minimal Linux guest has powered off."""
    build()
    payload, kernel, initrd = "first_instruction.img", "Image", "init.cpio"
    linux = options.guest_kernel or "small"
    binaries = TOP / "build/arm64/bench"
    prepare = TOP / "scripts/bench.d/prepare"
    files = {payload: binaries / f"payloads/{payload}",
             kernel: output_of(TOP / "scripts/images", "kernel", "--kernel", linux),
             initrd: output_of(prepare, "initramfs", str(binaries / "poweroff_init"))}
    commands = {(subject, what): command for subject in SUBJECTS for what, command in
                (("first", subject.boot(payload)), ("off", subject.boot(kernel, initrd, QUIET_CONSOLE)))}
    runs = [Run(f"{subject.name}-{what}", subject, tuple(command)) for (subject, what), command in commands.items()]
    show(f"boot: {options.runs} runs of each of {len(runs)} command lines in the testbed")
    version, timed = guest_runs.measure(icount_options(), files, runs * options.runs, output_of(prepare, "qemu"))
    figures = []
    for (subject, what), command in commands.items():
        seen = timed[f"{subject.name}-{what}"]
        name, values = (("exec to first guest instruction", [first_instruction_ms(one) for one in seen]) if what == "first" else
                        ("exec to power-off of Linux", [one.total_ms() for one in seen]))
        figures.append(Figure(name, subject.name, "ms", tuple(values), _shown(subject, command)))
    notes = [f"guests have 1 vCPU and 128 MiB; Linux is the kernel '{linux}' with an initramfs that only powers off"]
    return Report("boot", f"scripts/bench boot --runs {options.runs} --guest-kernel {linux}", icount_clock(),
                  figures, notes + _peer_note(version), lowest=TANDEM.name)


def instructions_per_exit(timed):
    """For each access that the payload timed: nanoseconds of each, from the difference of its two counts."""
    seen = {}
    for name, count, ticks in re.findall(r"exits (\S+) (\d+) (\d+)", timed.output):
        seen.setdefault(name, []).append((int(count), int(ticks)))
    if not seen or any(len(pairs) != 2 for pairs in seen.values()):
        raise BenchFailed(f"the payload did not time all accesses: {timed.output.strip() or 'no output'}")
    return {name: (many[1] - few[1]) * 1e9 / timed.frequency_hz / (many[0] - few[0]) for name, (few, many) in seen.items()}


def exits(options):
    """Cost of an access to a device register that the VMM answers."""
    build()
    payload = "mmio_exits.img"
    commands = {subject: subject.boot(payload) for subject in SUBJECTS}
    runs = [Run(subject.name, subject, tuple(command)) for subject, command in commands.items()]
    show(f"exits: {options.runs} runs of each of {len(runs)} command lines in the testbed")
    version, timed = guest_runs.measure(icount_options(), {payload: TOP / f"build/arm64/bench/payloads/{payload}"},
                                        runs * options.runs, output_of(TOP / "scripts/bench.d/prepare", "qemu"))
    unit = "ns" if guest_runs.is_native() else "instructions"
    figures = []
    for subject, command in commands.items():
        seen = [instructions_per_exit(one) for one in timed[subject.name]]
        figures += [Figure(f"{access.replace('-', ' ')}", subject.name, unit, tuple(one[access] for one in seen),
                           _shown(subject, command)) for access in seen[0]]
    notes = ["each figure is what 2000 more accesses cost, divided by 2000: guest, KVM and VMM together"]
    return Report("exits", f"scripts/bench exits --runs {options.runs}", icount_clock(), figures,
                  notes + _peer_note(version), lowest=TANDEM.name)


def _testbed_seconds(kernel):
    """Wall-clock and CPU seconds of one start and end of the testbed."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [TOP / "scripts/testbed", "--kernel", kernel, "--", "true"]
    if subprocess.run(command, cwd=TOP, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        raise BenchFailed(f"scripts/testbed --kernel {kernel} -- true failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - started, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def testbed(options):
    """What a testbed costs besides its command, and how long a busybox guest takes in it."""
    build()
    kernel = options.guest_kernel or "tandem"
    images = TOP / "scripts/images"
    files = {"Image": output_of(images, "kernel", "--kernel", kernel),
             "initramfs.cpio": output_of(images, "initramfs", "--kernel", kernel)}
    command = TANDEM.boot("Image", "initramfs.cpio", f'{QUIET_CONSOLE} tandem.exec="true"')
    _testbed_seconds(kernel)  # makes what is not in the cache
    load = os.getloadavg()[0]
    show(f"testbed: {options.runs} starts of the testbed, then as many guests in one")
    overhead = [_testbed_seconds(kernel) for _ in range(options.runs)]
    _, timed = guest_runs.measure(["--kernel", kernel], files, [Run("busybox", TANDEM, tuple(command))] * options.runs)
    start, guest = f"scripts/testbed --kernel {kernel} -- true", f"in a testbed: {_shown(TANDEM, command)}"
    figures = [Figure("testbed besides its command", MACHINE, "s", tuple(wall for wall, _ in overhead), start, TESTBED_LIMIT_S),
               Figure("the same, CPU time of all processes", MACHINE, "s", tuple(cpu for _, cpu in overhead), start),
               Figure("busybox guest, exec to power-off", MACHINE, "s",
                      tuple(one.total_ms() / 1e3 for one in timed["busybox"]), guest, TESTBED_LIMIT_S)]
    return Report("testbed", f"scripts/bench testbed --runs {options.runs} --guest-kernel {kernel}",
                  "wall clock of this machine, with whatever else it does", figures,
                  [f"load average of the last minute at the start: {load:.1f} on {os.cpu_count()} CPUs"])


VMS_ON_HOST = (1, 8, 40)
SWITCHES = 20000
TASKS = {"unrelated": "unrelated task", "vcpu": "vCPU thread"}


def cost_per_switch(output):
    """Of what bench/switch_cost printed: nanoseconds of one switch, for each kind of task and number of VMs."""
    cost = {(task, int(vms)): int(time_ns) / int(count)
            for task, vms, count, time_ns in re.findall(r"^switch (\w+) (\d+) ([1-9]\d*) (\d+)$", output, re.MULTILINE)}
    wanted = [("unrelated", 0), *((task, vms) for task in TASKS for vms in VMS_ON_HOST)]
    if any(key not in cost for key in wanted):
        raise BenchFailed(f"switch_cost did not measure all: {output.strip() or 'no output'}")
    return cost


def pv_overhead(options):
    """What the BPF back end of PV vCPU state adds to a context switch of the host."""
    build()
    program = ["build/arm64/bench/switch_cost", str(SWITCHES), "0", *map(str, VMS_ON_HOST)]
    command = [TOP / "scripts/testbed", *icount_options(), "--timeout", "1800", "--", *program]
    show(f"pv-overhead: {options.runs} testbeds")
    runs = [cost_per_switch(output_of(*command)) for _ in range(options.runs)]
    unit = "ns" if guest_runs.is_native() else "instructions"
    figures = [Figure("a switch without Tandem", TASKS["unrelated"], unit, tuple(run["unrelated", 0] for run in runs),
                      shlex.join(program))]
    figures += [Figure(f"added by {vms} VM{'s' if vms > 1 else ''}", name, unit,
                       tuple(run[task, vms] - run["unrelated", 0] for run in runs), shlex.join(program))
                for vms in VMS_ON_HOST for task, name in TASKS.items()]
    notes = ["two threads of one CPU take turns; as vCPUs they are active ones of one VM, and are preempted each time",
             "every VM has a BPF program of its own"]
    return Report("pv-overhead", f"scripts/bench pv-overhead --runs {options.runs}", icount_clock(), figures, notes)


AGENT_READY_LIMIT_MS = 1000
EXECS = 10
AGENT_SCRIPT = """
set -e
mkdir {place}
vsock={place}/vsock
build/arm64/tandem run --kernel {kernel} --initrd {initrd} --memory 256M --console none --vsock $vsock \\
  --cmdline 'quiet tandem.exec="sleep 2147483647"' &
tandem agent $vsock --wait 600 info --json
tandem agent $vsock exec -- sh -c 'echo @mark >/dev/kmsg; echo "@uptime $(cat /proc/uptime)"; dmesg | grep -e @mark -e "as init process"'
for run in $(seq {execs}); do
  build/arm64/bench/timed_run /dev/null build/arm64/tandem agent $vsock exec true
  tandem agent $vsock ping --json
done
tandem agent $vsock shutdown
wait
"""


def agent_figures(output):
    """Of what AGENT_SCRIPT printed, in ms: agent ready after userspace started, exec round trips, ping round trips."""
    found = [re.search(pattern, output) for pattern in (
        r'"agent_ready_ns":(\d+)', r"@uptime ([0-9.]+) ", r"\[ *([0-9.]+)\] @mark", r"\[ *([0-9.]+)\] Run \S+ as init process")]
    execs = [(int(end) - int(start)) * 1e3 / int(hz)
             for start, end, hz in re.findall(r"^timed (\d+) (\d+) (\d+) 0$", output, re.MULTILINE)]
    pings = [int(ns) / 1e6 for ns in re.findall(r'"round_trip_ns":(\d+)', output)]
    if not (all(found) and len(execs) == len(pings) == EXECS):
        raise BenchFailed(f"the agent was not measured: {output.strip()[-400:] or 'no output'}")
    ready_ns, uptime_s, mark_s, userspace_s = (float(match[1]) for match in found)
    # The kernel's log has a clock of its own, which does not lose the ticks that uptime loses early in the boot.
    return ready_ns / 1e6 + (mark_s - uptime_s - userspace_s) * 1e3, execs, pings


def agent(options):
    """Userspace's start until the guest agent listens, and round trips to it."""
    build()
    linux = options.guest_kernel or "stock"
    images = TOP / "scripts/images"
    script = AGENT_SCRIPT.format(place=PLACE, execs=EXECS, kernel=shlex.quote(output_of(images, "kernel", "--kernel", linux)),
                                 initrd=shlex.quote(output_of(images, "initramfs", "--kernel", linux)))
    command = [TOP / "scripts/testbed", *icount_options(), "--timeout", "1800", "--", "sh", "-c", script]
    show(f"agent: {options.runs} testbeds with a guest each")
    runs = [agent_figures(output_of(*command)) for _ in range(options.runs)]
    figures = [Figure("userspace's start to agent ready", "guest", "ms", tuple(run[0] for run in runs),
                      "agent_ready_ns of tandem agent VM info, less the time of 'Run /init' in the kernel's log", AGENT_READY_LIMIT_MS),
               Figure("exec round trip", "host", "ms", tuple(ms for run in runs for ms in run[1]), "tandem agent VM exec true"),
               Figure("ping round trip", "host", "ms", tuple(ms for run in runs for ms in run[2]), "tandem agent VM ping --json")]
    notes = [f"the guest is the kernel '{linux}' with the initramfs of scripts/images, 1 vCPU and 256 MiB",
             "exec counts all of the command on the host, its start included; ping only question and answer"]
    return Report("agent", f"scripts/bench agent --runs {options.runs} --guest-kernel {linux}", icount_clock(), figures, notes)


BENCHMARKS = {"boot": boot, "exits": exits, "testbed": testbed, "pv-overhead": pv_overhead, "agent": agent,
              "save": save, "restore": restore, "migrate": migrate, "fp": fp}
