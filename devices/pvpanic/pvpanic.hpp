// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "devices/bus/fdt_node.hpp"
#include "devices/bus/mmio_handler.hpp"
#include "vmm/lib/state/component.hpp"

namespace tandem::devices {

/// Hears of a guest that crashes. Called on the vCPU's thread with the device's mutex held: it takes note, and acts later.
class PanicSink {
 public:
  virtual ~PanicSink() = default;
  /// The guest has panicked, and does no more.
  virtual void on_panic() = 0;
  /// The guest has panicked, and goes on in its crash kernel.
  virtual void on_crash_loaded() = 0;
};

/// pvpanic behind MMIO: a guest's kernel tells of its panic. Spec: QEMU documentation, "PVPANIC DEVICE".
class PvPanic final : public MmioHandler, public Component {
 public:
  static constexpr uint64_t kWindowBytes = 2;

  /// @pre  `sink` outlives the device.
  PvPanic(std::string name, PanicSink& sink) : name_(std::move(name)), sink_(sink) {}

  MmioRead read(MmioAccess access) override;
  MmioWrite write(MmioAccess access, uint64_t value) override;

  [[nodiscard]] std::string_view name() const override { return name_; }
  Result<void> reset() override { return {}; }
  Result<void> pause() override { return {}; }
  Result<void> resume() override { return {}; }
  Result<StateRecord> save() override;
  Result<void> restore(const StateRecord& record) override;

  /// The node "pvpanic@…". (Linux binding "qemu,pvpanic-mmio")
  [[nodiscard]] FdtNode describe(GuestRange window) const;

 private:
  const std::string name_;
  PanicSink& sink_;
};

}  // namespace tandem::devices
