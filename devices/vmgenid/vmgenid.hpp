// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "devices/backend/entropy_source.hpp"
#include "devices/bus/fdt_node.hpp"
#include "devices/bus/irq_line.hpp"
#include "devices/bus/mmio_handler.hpp"
#include "vmm/lib/mapped_region/mapped_region.hpp"
#include "vmm/lib/state/component.hpp"

namespace tandem::devices {

/// Virtual machine generation id: 16 random bytes in memory of its own, which change when the guest may be one of several
/// that go on from the same state, and an interrupt that says so. A guest then seeds its random numbers anew.
/// Spec: Microsoft "Virtual Machine Generation ID"; Linux binding "microsoft,vmgenid".
///
/// The guest reads the id as memory. Only stores to it come here, and are refused. A restore keeps the saved id, because a
/// machine that moves is the same machine; whoever copies one calls `renew`.
class VmGenId final : public MmioHandler, public Component {
 public:
  /// Size of the memory [bytes]: a multiple of every page size of an arm64 host.
  static constexpr uint64_t kWindowBytes = 0x1'0000;
  static constexpr size_t kIdBytes = 16;
  using Id = std::array<uint8_t, kIdBytes>;

  /// Starts with a random id.
  /// @param irq   an edge-triggered interrupt.
  /// @errors      Errc::kOutOfMemory, and those of `entropy`, which outlives the device.
  static Result<std::unique_ptr<VmGenId>> create(std::string name, IrqLine irq, EntropySource& entropy);

  /// The memory that is to back the guest's window, aligned to host pages. It stays where it is.
  [[nodiscard]] std::span<std::byte> memory() { return memory_.bytes(); }

  /// Draws a new id, shows it to the guest, and interrupts it.
  /// @pre  no vCPU runs, and the interrupt controller's state is restored.
  Result<void> renew();

  MmioRead read(MmioAccess access) override;
  MmioWrite write(MmioAccess access, uint64_t value) override;

  [[nodiscard]] std::string_view name() const override { return name_; }
  Result<void> reset() override { return {}; }  // the next guest is no copy of another
  Result<void> pause() override { return {}; }
  Result<void> resume() override { return {}; }
  Result<StateRecord> save() override;
  Result<void> restore(const StateRecord& record) override;

  /// The node "rng@…".
  [[nodiscard]] FdtNode describe(const FdtPlacement& placement) const;

 private:
  VmGenId(std::string name, IrqLine irq, EntropySource& entropy, MappedRegion memory)
      : name_(std::move(name)), irq_(irq), entropy_(entropy), memory_(std::move(memory)) {}
  Result<void> draw();
  void show(const Id& id);

  const std::string name_;
  IrqLine irq_;
  EntropySource& entropy_;
  MappedRegion memory_;  // the id, and zeros behind it
};

}  // namespace tandem::devices
