// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace tandem::vmid {

inline constexpr int kMaxCpus = 3;
inline constexpr int kMaxVms = 6;
inline constexpr int kMaxLog = 10;

/// An id with its generation in a byte: 0 as in the kernel, else the generation in the upper five bits and the index in
/// the lower three. Generations are numbered as canonicalize() says, from kFirstGeneration.
using Id = std::uint8_t;
inline constexpr int kIndexBits = 3;
inline constexpr Id kIndexMask = (1 << kIndexBits) - 1;
inline constexpr int kPastGeneration = 1;      // of ids whose generation nothing can ask for any more
inline constexpr int kReservedGeneration = 2;  // of reserved ids that no VM has
inline constexpr int kFirstGeneration = 3;
inline constexpr Id kNone = kPastGeneration << kIndexBits;  // ASID_ACTIVE_NONE

constexpr Id make_id(int generation, int index) { return Id(generation << kIndexBits | index); }
constexpr int generation_of(Id id) { return id >> kIndexBits; }
constexpr int index_of(Id id) { return id & kIndexMask; }

/// Where a CPU is. In a slow part it waits for the lock if it has taken no step yet, else it holds it.
enum class Phase : std::uint8_t { kIdle, kActivating, kActivatingSlow, kInGuest, kDeactivating, kDeactivatingSlow };

struct Cpu {
  Phase phase = Phase::kIdle;
  std::uint8_t vm = 0;
  std::uint8_t steps = 0;                   // taken in this phase
  std::array<std::uint8_t, kMaxLog> log{};  // what they got
  Id active = 0;
  Id own_active = 0;                     // what this CPU wrote last, if it may not have seen yet that it is gone
  std::uint8_t seen = kFirstGeneration;  // the oldest generation that it can still read
  Id reserved = 0;
  bool flush_pending = false;
  bool in_guest = false;
  std::uint8_t guest_vm = 0;
  std::uint8_t guest_index = 0;
  std::array<std::uint8_t, kMaxVms> tlb{};  // of each VM: a bit for each index under which it has entries
};

struct Vm {
  Id id = 0;
  Id previous_id = 0;  // which a CPU may still read
};

/// All that CPUs, the allocator and TLBs are in at a moment. Only bytes, so that it can be compared as such.
struct State {
  std::uint8_t generation = kFirstGeneration;
  std::uint8_t map = 0;
  std::uint8_t cur_idx = 1;
  std::uint8_t lock_holder = 0;      // CPU + 1, or 0
  std::uint8_t lock_generation = 0;  // when it was taken
  Id lock_id = 0;                    // of the holder's VM, when it was taken
  std::array<Cpu, kMaxCpus> cpus{};
  std::array<Vm, kMaxVms> vms{};
};

/// Gives states that differ only in names the same form: VMs are sorted, generations numbered from kFirstGeneration in
/// the order of those that still matter. So a search ends though generations go on for ever.
///
/// @param oldest_read how many generations back a CPU may read that a rollover has marked. Of the allocator as it is no
/// such read makes a difference, so a small number is no loss; of one that loses marks it does.
void canonicalize(State& state, int cpus, int vms, int oldest_read);

}  // namespace tandem::vmid
