// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/vmid/explored_state.hpp"

namespace tandem::vmid {

/// A set of states, of which it keeps hashes of 64 bits: among ten million states two have the same with a probability of
/// about three in a million.
class SeenStates {
 public:
  /// @return whether the state is new
  bool insert(const State& state) {
    if ((size_ + 1) * 10 > slots_.size() * 7) grow();
    const std::uint64_t hash = hash_of(state);
    std::uint64_t& slot = find(hash);
    if (slot == hash) return false;
    slot = hash;
    size_++;
    return true;
  }

  std::size_t size() const { return size_; }

 private:
  static std::uint64_t hash_of(const State& state) {
    constexpr std::size_t kWords = (sizeof(State) + 7) / 8;
    std::uint64_t words[kWords] = {};
    std::memcpy(words, &state, sizeof(State));
    std::uint64_t hash = 0x9e3779b97f4a7c15;
    for (const std::uint64_t word : words) {
      hash = (hash ^ word) * 0xff51afd7ed558ccd;
      hash ^= std::rotr(hash, 29);
      hash = hash * 0xc4ceb9fe1a85ec53 + 0x52dce729;
    }
    hash ^= hash >> 32;
    return hash == 0 ? 1 : hash;  // 0 is a free slot
  }

  std::uint64_t& find(std::uint64_t hash) {
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at] != 0 && slots_[at] != hash) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }

  void grow() {
    std::vector<std::uint64_t> old(slots_.size() * 2);
    std::swap(old, slots_);
    for (const std::uint64_t hash : old) {
      if (hash != 0) find(hash) = hash;
    }
  }

  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(1 << 20);
  std::size_t size_ = 0;
};

}  // namespace tandem::vmid
