// SPDX-License-Identifier: Apache-2.0
#include "tests/vmid/explored_state.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace tandem::vmid {

namespace {

constexpr int kGenerations = 32;

/// Renumbers the generations of a state.
class Generations {
 public:
  Generations(State& state, int cpus, int vms, int oldest_read)
      : state_(state), cpus_(cpus), vms_(vms), oldest_read_(oldest_read) {}

  void renumber() {
    forget_what_nobody_reads();
    retire_ids();
    for_each_generation([this](std::uint8_t& generation) { used_ |= 1U << generation; });
    for_each_id([this](Id& id) { used_ |= 1U << generation_of(id); });
    for_each_generation([this](std::uint8_t& generation) { generation = std::uint8_t(renumbered(generation)); });
    for_each_id([this](Id& id) { id = id == 0 ? Id{0} : make_id(renumbered(generation_of(id)), index_of(id)); });
  }

 private:
  int renumbered(int generation) const {
    if (generation < kFirstGeneration) return generation;
    const std::uint32_t below = used_ & ((1U << generation) - 1) & ~((1U << kFirstGeneration) - 1);
    return kFirstGeneration + std::popcount(below);
  }

  void forget_what_nobody_reads() {
    oldest_seen_ = state_.generation;
    for (int cpu = 0; cpu < cpus_; cpu++) {
      Cpu& one = state_.cpus[cpu];
      if (one.active == 0) one.seen = std::uint8_t(std::max<int>(one.seen, state_.generation - oldest_read_));
      oldest_seen_ = std::min<int>(oldest_seen_, one.seen);
    }
    if (state_.lock_holder != 0) oldest_seen_ = std::min<int>(oldest_seen_, state_.lock_generation);
    for (int vm = 0; vm < vms_; vm++) {
      Id& previous = state_.vms[vm].previous_id;
      if (generation_of(previous) < oldest_seen_) previous = 0;
    }
  }

  bool is_id_of_vm(Id id) const {
    for (int vm = 0; vm < vms_; vm++) {
      if (state_.vms[vm].id == id || state_.vms[vm].previous_id == id) return true;
    }
    return id == state_.lock_id;
  }

  bool is_held_by_cpu(Id id) const {
    for (int cpu = 0; cpu < cpus_; cpu++) {
      const Cpu& one = state_.cpus[cpu];
      if (one.active == id || one.own_active == id || one.reserved == id) return true;
      if (std::find(one.log.begin(), one.log.end(), id) != one.log.end()) return true;
    }
    return id == state_.lock_id;
  }

  /// Of an id that no CPU holds and whose generation no CPU can read only the index matters; so it is with a reserved id
  /// that is no VM's.
  void retire_ids() {
    for (int cpu = 0; cpu < cpus_; cpu++) {
      Id& reserved = state_.cpus[cpu].reserved;
      if (reserved == 0 || reserved == kNone || is_id_of_vm(reserved)) continue;
      if (generation_of(reserved) < oldest_seen_) reserved = make_id(kReservedGeneration, index_of(reserved));
    }
    for (int vm = 0; vm < vms_; vm++) {
      Id& id = state_.vms[vm].id;
      if (id == 0 || generation_of(id) >= oldest_seen_ || is_held_by_cpu(id)) continue;
      id = make_id(kPastGeneration, index_of(id));
    }
  }

  template <typename Visit>
  void for_each_generation(Visit visit) {
    visit(state_.generation);
    visit(state_.lock_generation);
    for (int cpu = 0; cpu < cpus_; cpu++) visit(state_.cpus[cpu].seen);
  }

  template <typename Visit>
  void for_each_id(Visit visit) {
    visit(state_.lock_id);
    for (int vm = 0; vm < vms_; vm++) {
      visit(state_.vms[vm].id);
      visit(state_.vms[vm].previous_id);
    }
    for (int cpu = 0; cpu < cpus_; cpu++) {
      Cpu& one = state_.cpus[cpu];
      visit(one.active);
      visit(one.own_active);
      visit(one.reserved);
      for (Id& id : one.log) visit(id);
    }
  }

  State& state_;
  int cpus_;
  int vms_;
  int oldest_read_;
  int oldest_seen_ = 0;
  std::uint32_t used_ = 0;
};

static_assert(kGenerations << kIndexBits == 256);

/// What tells VMs apart: those for which it is the same are interchangeable.
auto signature(const State& state, int cpus, int vm) {
  std::uint64_t of_cpus = 0;
  for (int cpu = 0; cpu < cpus; cpu++) {
    const Cpu& one = state.cpus[cpu];
    const bool named = one.phase != Phase::kIdle && one.vm == vm;
    const bool in_guest = one.in_guest && one.guest_vm == vm;
    of_cpus = of_cpus << 16 | one.tlb[vm] << 2 | (named ? 2 : 0) | (in_guest ? 1 : 0);
  }
  return std::tuple(of_cpus, state.vms[vm].id, state.vms[vm].previous_id);
}

}  // namespace

void canonicalize(State& state, int cpus, int vms, int oldest_read) {
  Generations(state, cpus, vms, oldest_read).renumber();
  using Signature = decltype(signature(state, cpus, 0));
  std::array<Signature, kMaxVms> signatures{};
  for (int vm = 0; vm < vms; vm++) signatures[vm] = signature(state, cpus, vm);
  const State old = state;
  std::array<std::uint8_t, kMaxVms> place{};
  for (int vm = 0; vm < vms; vm++) {
    for (int other = 0; other < vms; other++) {
      const bool before = other < vm ? signatures[other] <= signatures[vm] : signatures[other] < signatures[vm];
      place[vm] = std::uint8_t(place[vm] + (before ? 1 : 0));
    }
  }
  for (int vm = 0; vm < vms; vm++) state.vms[place[vm]] = old.vms[vm];
  for (int cpu = 0; cpu < cpus; cpu++) {
    Cpu& one = state.cpus[cpu];
    one.vm = one.phase == Phase::kIdle ? std::uint8_t{0} : place[old.cpus[cpu].vm];
    one.guest_vm = one.in_guest ? place[old.cpus[cpu].guest_vm] : std::uint8_t{0};
    for (int vm = 0; vm < vms; vm++) one.tlb[place[vm]] = old.cpus[cpu].tlb[vm];
  }
}

}  // namespace tandem::vmid
