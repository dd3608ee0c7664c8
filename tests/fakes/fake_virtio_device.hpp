// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/virtio_queue/virtio_device.hpp"
#include "vmm/lib/bits/bits.hpp"

namespace tandem::devices {

/// A virtio device with two queues that remembers what its transport did to it. It touches its queues only when a test
/// tells it to.
class FakeVirtioDevice final : public VirtioDevice {
 public:
  static constexpr uint64_t kFeature = 1U << 5;
  static constexpr std::array<uint16_t, 2> kQueueSizes{8, 16};
  struct StateV1 {
    static constexpr StateKind kKind{"fake_virtio", 1};
    uint32_t number = 0;
    template <typename A>
    void fields(A& archive) {
      archive(1, number);
    }
  };

  [[nodiscard]] uint32_t device_id() const override { return 42; }
  [[nodiscard]] uint64_t device_features() const override { return kFeature; }
  [[nodiscard]] std::span<const uint16_t> queue_sizes() const override { return kQueueSizes; }
  void read_config(uint64_t offset, std::span<std::byte> out) override {
    for (size_t index = 0; index < out.size(); ++index) {
      out[index] = offset + index < config.size() ? config.at(offset + index) : std::byte{0};
    }
  }
  void write_config(uint64_t offset, std::span<const std::byte> bytes) override {
    for (size_t index = 0; index < bytes.size() && offset + index < config.size(); ++index) {
      config.at(offset + index) = bytes[index];
    }
  }
  void activate(const VirtioActivation& how) override {
    calls.emplace_back("activate");
    activation.emplace(how);
  }
  void notify(uint16_t queue) override { calls.push_back("notify " + std::to_string(queue)); }

  [[nodiscard]] std::string_view name() const override { return "fake0"; }
  Result<void> reset() override {
    calls.emplace_back("reset");
    activation.reset();
    number = 0;
    return {};
  }
  Result<void> pause() override {
    calls.emplace_back("pause");
    return {};
  }
  Result<void> resume() override {
    calls.emplace_back("resume");
    return {};
  }
  Result<StateRecord> save() override { return save_state(StateV1{.number = number}); }
  Result<void> restore(const StateRecord& record) override {
    number = TANDEM_TRY(load_state<StateV1>(record)).number;
    calls.emplace_back("restore");
    return {};
  }

  /// The calls since the last time this was asked.
  std::vector<std::string> take_calls() { return std::exchange(calls, {}); }

  std::array<std::byte, 8> config{};
  uint32_t number = 0;  ///< Saved state.
  std::optional<VirtioActivation> activation;
  std::vector<std::string> calls;
};

}  // namespace tandem::devices
