# SPDX-License-Identifier: Apache-2.0
"""scripts/bench fp: what exits cost in each mode of the kernel series lazy-fp, and how often FP registers are switched."""

import re
import shlex

from figures import Figure, Report
from guest_runs import PLACE, TOP, BenchFailed, build, is_native, output_of, show

# Each: name, kvm-arm.fp_mode and kvm-arm.fp_keep.
MODES = (("worldswitch", "worldswitch", 0), ("loadput", "loadput", 0), ("lazy", "lazy", 0), ("adaptive", "adaptive", 0),
         ("lazy, keep", "lazy", 1), ("adaptive, keep", "adaptive", 1))
UNPATCHED = "unpatched"
COUNTERS = ("fp_trap", "fp_eager_load", "fp_guest_save", "fp_host_save", "fp_keep_hit")
EXITS = {"vmm": "exit to the VMM", "kvm": "exit to KVM", "wfi": "WFI ping-pong"}
USES = {"none": "no FP", "every": "FP in each interval", "tenth": "FP in each tenth", "bursts": "256 with, 256 without",
        "sve": "SVE in each interval"}
PERIOD_US = 200
SPINS = 100000
# One guest that exits, and one that does not beside a thread that preempts it.
SCRIPT = """
set -e
mkdir {place}
mkfifo {place}/input
cp build/arm64/tandem build/arm64/bench/preemptor build/arm64/bench/payloads/fp_exits.img {place}
knobs=/sys/module/kvm_arm/parameters
[ -e $knobs/fp_mode ] || knobs=/sys/module/kvm-arm/parameters
run="{place}/tandem run --kernel {place}/fp_exits.img --memory 64M --pv-vcpu-state off"
for mode in {modes}; do
  echo "@mode $mode"
  if [ $mode != {unpatched} ]; then
    echo ${{mode%:*}} >$knobs/fp_mode
    echo ${{mode#*:}} >$knobs/fp_keep
  fi
  sleep 1000 >{place}/input &
  writer=$!
  $run --cpus 2 <{place}/input >{place}/output 2>&1 &
  guest=$!
  until grep -q DONE {place}/output; do sleep 0.1; kill -0 $guest; done
  cat {place}/output
  for counter in {counters}; do
    [ $mode = {unpatched} ] || echo "counter $counter $(cat /sys/kernel/debug/kvm/$counter)"
  done
  echo x >{place}/input
  wait $guest
  kill $writer
  [ {spins} != 0 ] || continue
  echo "@spin alone"
  $run --cmdline spin={spins} </dev/null
  {place}/preemptor {period} &
  preemptor=$!
  echo "@spin preempted"
  $run --cmdline spin={spins} </dev/null
  kill $preemptor
done
"""


def exit_costs(text):
    """For each EXIT/USE: nanoseconds of one exit, from the difference of two counts. 1 GHz counts under icount."""
    seen = {}
    for name, count, ticks in re.findall(r"exits (\S+) (\d+) (\d+)", text):
        seen.setdefault(name, []).append((int(count), int(ticks)))
    if len(seen) < len(EXITS) * (len(USES) - 1) or any(len(pairs) != 2 for pairs in seen.values()):
        raise BenchFailed(f"the payload did not time all exits: {text.strip()[-400:] or 'no output'}")
    return {name: (many[1] - few[1]) / (many[0] - few[0]) for name, (few, many) in seen.items()}


def preemption_costs(text, frequency_hz):
    """For each use: nanoseconds that one preemption costs a guest, of the time that it takes longer."""
    if "@spin" not in text:
        return {}
    alone, preempted = (dict((use, int(ticks) * 1e9 / frequency_hz) for use, ticks in re.findall(r"spin (\w+) \d+ (\d+)", part))
                        for part in text.split("@spin ")[1:])
    if alone.keys() != preempted.keys() or not alone:
        raise BenchFailed(f"the payload did not time its loop: {text.strip()[-400:] or 'no output'}")
    return {f"preempt/{use}": (preempted[use] - alone[use]) / (preempted[use] / 1e3 / PERIOD_US) for use in alone}


def _session(testbed_options, modes):
    # By the clock of this machine an emulated CPU is too slow for so many preemptions.
    spins = SPINS if is_native() or "--icount" in testbed_options else 0
    script = SCRIPT.format(place=PLACE, modes=" ".join(modes), counters=" ".join(COUNTERS), unpatched=UNPATCHED, spins=spins,
                           period=PERIOD_US)
    return output_of(TOP / "scripts/testbed", *testbed_options, "--timeout", "3000", "--", "sh", "-c", script)


def measure(testbed_options, modes):
    """For each mode (fp_mode:fp_keep, or UNPATCHED): costs by EXIT/USE, and the host's counters at the end."""
    found = {}
    for block in _session(testbed_options, modes).split("@mode ")[1:]:
        mode, _, text = block.partition("\n")
        match = re.search(r"frequency (\d+)", text)
        hz = int(match[1]) if match else 0
        if hz == 0:
            raise BenchFailed(f"{mode}: the payload did not say how fast its counter is: {text.strip()[-400:] or 'no output'}")
        costs = {name: ticks * 1e9 / hz for name, ticks in exit_costs(text).items()} | preemption_costs(text, hz)
        found[mode] = costs, {name: int(count) for name, count in re.findall(r"^counter (\w+) (\d+)$", text, re.MULTILINE)}
    if list(found) != list(modes):
        raise BenchFailed(f"{len(modes)} modes were started, {len(found)} were seen")
    return found


def _name(key):
    kind, _, use = key.partition("/")
    return f"{EXITS.get(kind, 'preemption')}, {USES[use]}"


def fp(options):
    """What exits cost a guest that uses FP registers more or less, in each mode of the series lazy-fp."""
    build()
    unit = "ns" if is_native() else "instructions"
    icount = ("--icount", "--memory", "2G")
    modes = {f"{mode}:{keep}": name for name, mode, keep in MODES}
    base = output_of(TOP / "scripts/kernel", "--base")
    figures = []
    for kernel, wanted in ((base, {UNPATCHED: UNPATCHED}), ("tandem", modes)):
        show(f"fp: {options.runs} testbeds with kernel {kernel}")
        runs = [measure((*icount, "--kernel", kernel), tuple(wanted)) for _ in range(options.runs)]
        figures += [Figure(_name(key), subject, unit, tuple(run[mode][0][key] for run in runs), "what the payload fp_exits prints")
                    for mode, subject in wanted.items() for key in runs[0][mode][0]]
        figures += [Figure(f"{counter}, VHE", subject, "events", tuple(run[mode][1][counter] for run in runs), "/sys/kernel/debug/kvm, at the end of the payload")
                    for mode, subject in wanted.items() for counter in runs[0][mode][1]]
    show("fp: a testbed with nVHE")
    nvhe = measure(("--kernel", "tandem", "--smp", "1", "--append", "kvm-arm.mode=nvhe"), tuple(modes))
    figures += [Figure(f"{counter}, nVHE", subject, "events", (nvhe[mode][1][counter],), "/sys/kernel/debug/kvm, at the end of the payload")
                for mode, subject in modes.items() for counter in nvhe[mode][1]]
    notes = ["guest, KVM and VMM together; the figures of the preemption include the thread that preempts"]
    return Report("fp", shlex.join(["scripts/bench", "fp", "--runs", str(options.runs)]),
                  "virtual time of scripts/testbed --icount: 1 instruction = 1 ns", figures, notes)
