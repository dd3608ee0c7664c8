# SPDX-License-Identifier: Apache-2.0
"""Ways to break the kernel's allocator of VMIDs, each of which a program of this folder has to notice.

A mutant is what is wrong with it, the text of the source that it changes, and into what.
"""

MUTANTS = (
    ("no CPU is marked for a flush", "cpu->flush_pending = !info->flush_all;", "cpu->flush_pending = false;"),
    ("only the CPU that rolls over is marked for a flush", "cpu->flush_pending = !info->flush_all;",
     "cpu->flush_pending = !info->flush_all && cpu == this_cpu_ptr(info->cpu);"),
    ("a pending flush is forgotten", "\t\tinfo->flush_cpu();\n", ""),
    ("a pending flush is done after the id is active", "\tatomic64_set(&cpu->active, asid);\n\traw_spin_unlock",
     "\traw_spin_unlock", "\tcpu = this_cpu_ptr(info->cpu);\n",
     "\tcpu = this_cpu_ptr(info->cpu);\n\tatomic64_set(&cpu->active, asid);\n"),
    ("the put of a vCPU overwrites the mark of a rollover",
     "unlikely(!old || !atomic64_cmpxchg_relaxed(active, old,\n\t\t\t\t\t\t       ASID_ACTIVE_NONE))",
     "atomic64_set(active, ASID_ACTIVE_NONE), !old"),
    ("the put of a vCPU looks at the mark of a rollover, and overwrites one that comes then",
     "unlikely(!old || !atomic64_cmpxchg_relaxed(active, old,\n\t\t\t\t\t\t       ASID_ACTIVE_NONE))",
     "!old || (atomic64_set(active, ASID_ACTIVE_NONE), false)"),
    ("giving a reservation up takes the mark with it", "\tthis_cpu_ptr(info->cpu)->reserved = 0;\n",
     "\tthis_cpu_ptr(info->cpu)->reserved = 0;\n\tatomic64_set(&this_cpu_ptr(info->cpu)->active, ASID_ACTIVE_NONE);\n"),
    ("giving a reservation up takes the pending flush with it", "\tthis_cpu_ptr(info->cpu)->reserved = 0;\n",
     "\tthis_cpu_ptr(info->cpu)->reserved = 0;\n\tthis_cpu_ptr(info->cpu)->flush_pending = false;\n"),
    ("a reservation is given up without the lock",
     "\traw_spin_lock_irqsave(&info->lock, flags);\n\tthis_cpu_ptr(info->cpu)->reserved = 0;\n"
     "\traw_spin_unlock_irqrestore(&info->lock, flags);\n", "\t(void)flags;\n\tthis_cpu_ptr(info->cpu)->reserved = 0;\n"),
    ("the fast path does not ask whether it has been marked",
     "atomic64_cmpxchg_relaxed(active, old, asid);\n}", "(atomic64_set(active, asid), true);\n}"),
    ("the fast path does not ask for the generation", "return old && asid_gen_match(info, asid) &&", "return old && asid &&"),
    ("a rollover does not mark", "asid = atomic64_xchg_acquire(&cpu->active, 0);", "asid = atomic64_read(&cpu->active);"),
    ("a rollover forgets who was running at the one before", "\t\t\tasid = cpu->reserved;\n", "\t\t\tasid = 0;\n"),
    ("a rollover does not take note of who is running", "\t\tcpu->reserved = asid;\n", ""),
    ("a rollover leaves the ids of those that run free", "\t\t__set_bit(asid_index(asid), info->map);\n", ""),
    ("a rollover does not start from the template",
     "bitmap_copy(info->map, info->template, BIT(info->bits));", "info->map[0] = 1;"),
    ("a rollover leaves the generation as it is", "atomic64_add_return_relaxed(ASID_FIRST_VERSION,",
     "atomic64_add_return_relaxed(0,"),
    ("only one reserved copy of an id is renewed", "\t\t\tcpu->reserved = newasid;\n", "\t\t\tcpu->reserved = newasid;\n\t\t\tbreak;\n"),
    ("reserved copies of an id are not renewed", "\t\t\tcpu->reserved = newasid;\n", ""),
    ("whoever asks is told that its id is reserved", "\tbool hit = false;", "\tbool hit = true;"),
    ("the id of a past generation is taken again though another one has it",
     "if (!__test_and_set_bit(asid_index(asid), info->map))", "if ((__set_bit(asid_index(asid), info->map), true))"),
    ("an id that is taken again is not marked as taken", "if (!__test_and_set_bit(asid_index(asid), info->map))",
     "if (!(info->map[0] >> asid_index(asid) & 1))"),
    ("a new id is not marked as taken", "\t__set_bit(asid, info->map);\n", ""),
    ("the search after a rollover starts from id 0, which nothing reserves",
     "asid = find_next_zero_bit(info->map, BIT(info->bits), 1);", "info->map[0] &= ~1UL;\n"
     "\t\tasid = find_next_zero_bit(info->map, BIT(info->bits), 0);"),
    ("the slow path does not renew an id", "if (!asid_gen_match(info, asid)) {", "if (!asid) {"),
    ("the slow path leaves the VM with its old id", "\t\tatomic64_set(id, asid);\n", ""),
)


def apply(mutant, sources):
    """The sources with the mutant's changes. `sources` are texts by name."""
    name, *texts = mutant
    changed = dict(sources)
    for old, new in zip(texts[::2], texts[1::2]):
        holders = [file for file in changed if changed[file].count(old) == 1]
        if len(holders) != 1:
            raise ValueError(f"mutant '{name}': what it changes is not there once: {old!r}")
        changed[holders[0]] = changed[holders[0]].replace(old, new)
    return changed
