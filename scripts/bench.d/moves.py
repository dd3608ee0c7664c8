# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of machines that are saved, restored and moved. The guest is bench/waiting_guest.c, with one vCPU."""

import json
import shlex
from dataclasses import dataclass

import guest_runs
from figures import Figure, Report
from guest_runs import PLACE, TOP, BenchFailed, build, icount_clock, icount_options, show

MEMORIES = ("128M", "512M", "1G", "4G")
HOST_MEMORY = "6G"
FILLED_MIB = 64
FLAT = 1.25  # how much more a restore of the largest machine may take than one of the smallest
SNAPSHOTS_ARE = "snapshots are in a tmpfs"
GUESTS = {"idle": 0, "writing": 5}  # pages that the guest writes in each millisecond
SNAPSHOT, ADDRESS = f"{PLACE}/snapshot", f"unix:{PLACE}/there"
SHELL_LIBRARY = f"""
export TANDEM_RUNTIME_DIR={PLACE}/vms PATH={PLACE}:$PATH
boot() {{
  rm -f {PLACE}/console
  tandem run --name vm --kernel {PLACE}/waiting_guest.img --memory $1 --cmdline "quiet=1 fill={FILLED_MIB} write=$2" \\
    </dev/null >{PLACE}/console &
  until grep -qs READY {PLACE}/console || ! kill -0 $!; do usleep 10000; done
}}
listen() {{
  tandem receive {ADDRESS} --name there --console none </dev/null >/dev/null &
  until [ -S {PLACE}/there ] || ! kill -0 $!; do usleep 10000; done
}}
printf q >{PLACE}/key
"""


@dataclass(frozen=True)
class Step:
    """One run that is to be timed, with what a shell does before and after it."""

    key: str
    command: tuple
    before: str = ""
    after: str = ""
    options: tuple = ()  # of timed_run

    def shell_lines(self):
        timed = shlex.join([f"{PLACE}/timed_run", *self.options, f"{PLACE}/output", *self.command])
        return f"{self.before}\necho '@run {self.key}'\n{timed}\ncat {PLACE}/output; echo\n{self.after}\n"


def _shown(command):
    return shlex.join(command).replace(f"{PLACE}/", "")


def _measure(steps):
    """What was seen of each step; all take place in one testbed."""
    first, *others = steps
    steps = [Step(first.key, first.command, SHELL_LIBRARY + first.before, first.after, first.options), *others]
    files = {"waiting_guest.img": TOP / "build/arm64/bench/payloads/waiting_guest.img"}
    return guest_runs.measure(icount_options(HOST_MEMORY), files, steps)[1]


def _report(name, options, figures, *notes):
    guest = f"the guest has 1 vCPU and has filled {FILLED_MIB} MiB of its RAM"
    return Report(name, f"scripts/bench {name} --runs {options.runs}", icount_clock(), figures, [guest, *notes])


def save(options):
    """A save, by size of RAM, from exec of `tandem save` to its end."""
    build()
    command = (f"{PLACE}/tandem", "save", "vm", SNAPSHOT)
    show(f"save: {options.runs} saves of each of {len(MEMORIES)} machines in the testbed")
    steps = []
    for memory in MEMORIES:
        steps += [Step(memory, command, after=f"rm -r {SNAPSHOT}") for _ in range(options.runs)]
        steps[-options.runs] = Step(memory, command, f"boot {memory} 0", f"rm -r {SNAPSHOT}")
        last = steps[-1]
        steps[-1] = Step(memory, command, last.before, last.after + "; tandem stop vm --force; wait")
    timed = _measure(steps)
    figures = [Figure("save", memory, "ms", tuple(one.total_ms() for one in timed[memory]), _shown(command)) for memory in MEMORIES]
    return _report("save", options, figures, SNAPSHOTS_ARE)


def restore(options):
    """A restore, by size of RAM, from exec of `tandem restore` until the guest has taken a character and powered off."""
    build()
    ways = {"restore": (), "restore --eager": ("--eager",)}
    show(f"restore: {options.runs} restores of each of {len(MEMORIES)} machines in each of {len(ways)} ways in the testbed")
    steps = []
    for memory in MEMORIES:
        of_memory = [Step(f"{way} {memory}", (f"{PLACE}/tandem", "restore", SNAPSHOT, *words), options=("--input", f"{PLACE}/key"))
                     for way, words in ways.items()] * options.runs
        first = of_memory[0]
        of_memory[0] = Step(first.key, first.command, f"rm -rf {SNAPSHOT}; boot {memory} 0; tandem save vm {SNAPSHOT} --stop; wait",
                            options=first.options)
        steps += of_memory
    timed = _measure(steps)
    seen = {key: tuple(one.total_ms() for one in runs) for key, runs in timed.items()}
    figures = [Figure(way, memory, "ms", seen[f"{way} {memory}"], _shown((f"{PLACE}/tandem", "restore", SNAPSHOT, *words)))
               for way, words in ways.items() for memory in MEMORIES]
    return _report("restore", options, [*figures, flatness(figures)], SNAPSHOTS_ARE,
                   "the process starts, and the guest goes on, takes a character from the console and powers off")


def flatness(figures):
    """How much longer a lazy restore of the largest machine takes than one of the smallest."""
    of_memory = {figure.subject: figure for figure in figures if figure.name == "restore"}
    small, large = of_memory[MEMORIES[0]], of_memory[MEMORIES[-1]]
    ratios = tuple(value / small.median for value in large.runs)
    return Figure(f"restore as a multiple of that of {MEMORIES[0]}", MEMORIES[-1], "times", ratios, large.measured, FLAT)


QUANTITIES = {
    "total": ("ms", lambda found: found["total_ns"] / 1e6),
    "downtime": ("ms", lambda found: found["downtime_ns"]["total"] / 1e6),
    "… pause and save": ("ms", lambda found: found["downtime_ns"]["pause"] / 1e6),
    "… remainder of RAM": ("ms", lambda found: found["downtime_ns"]["remainder"] / 1e6),
    "… state": ("ms", lambda found: found["downtime_ns"]["state"] / 1e6),
    "… hand-over": ("ms", lambda found: found["downtime_ns"]["hand_over"] / 1e6),
    "sent": ("MiB", lambda found: found["sent_bytes"] / 2**20),
    "rounds": ("", lambda found: found["rounds"]),
    "throttle": ("%", lambda found: found["throttle_percent"]),
}


def migration_figures(timed):
    """Of what `tandem migrate --json` printed: the value of each of QUANTITIES."""
    try:
        found = json.loads(timed.output)
        return {name: read(found) for name, (_, read) in QUANTITIES.items()}
    except (ValueError, KeyError, TypeError) as error:
        raise BenchFailed(f"tandem migrate did not report: {timed.output.strip() or 'no output'}") from error


def migrate(options):
    """A live migration to another process of the same host: time in all, downtime with its parts, and bytes."""
    build()
    command = (f"{PLACE}/tandem", "migrate", "vm", ADDRESS, "--json")
    show(f"migrate: {options.runs} moves of each of {len(GUESTS)} guests in the testbed")
    steps = [Step(guest, command, f"boot 512M {pages}; listen", "tandem stop there --force; wait")
             for _ in range(options.runs) for guest, pages in GUESTS.items()]
    timed = _measure(steps)
    seen = {guest: [migration_figures(one) for one in timed[guest]] for guest in GUESTS}
    figures = [Figure(name, guest, unit, tuple(one[name] for one in seen[guest]), _shown(command))
               for name, (unit, _) in QUANTITIES.items() for guest in GUESTS]
    return _report("migrate", options, figures, "the machine has 512 MiB, and both processes share one CPU; downtime may be 300 ms",
                   f"the writing guest writes {GUESTS['writing']} whole pages in each millisecond, in turn of all that it has filled")
