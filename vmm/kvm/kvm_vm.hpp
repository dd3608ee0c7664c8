// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "devices/bus/doorbell_host.hpp"
#include "devices/bus/hypercall_bus.hpp"
#include "devices/bus/irq_line.hpp"
#include "vmm/kvm/kvm.hpp"
#include "vmm/lib/checked_range/checked_range.hpp"
#include "vmm/vcpu/register_set.hpp"

namespace tandem {

/// Owns a VM of KVM: memory slots, in-kernel devices, interrupts in and doorbells out.
class KvmVm final : public devices::IrqSink, public devices::DoorbellHost {
 public:
  /// Creates a VM with the smallest guest-physical address space that holds `last_addr`.
  /// @pre     `kvm` outlives the VM.
  /// @errors  Errc::kUnsupported: the host's is too small, or it lacks a capability that Tandem needs.
  static Result<std::unique_ptr<KvmVm>> create(const Kvm& kvm, GuestAddr last_addr);

  [[nodiscard]] const Kvm& kvm() const { return kvm_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] unsigned ipa_bits() const { return ipa_bits_; }

  /// What the guest may do with memory. A store to kReadOnly comes out as an access to nothing does.
  enum class MemoryAccess : uint8_t { kReadWrite, kReadOnly };
  /// Puts `host` behind the guest's `range`, as the next memory slot. @pre sizes are equal, both aligned to host pages.
  Result<void> add_memory(GuestRange range, std::span<std::byte> host, MemoryAccess access = MemoryAccess::kReadWrite);
  /// The memory slot that was added as `range`. @pre there is one.
  [[nodiscard]] uint32_t slot_of(GuestRange range) const;
  enum class WriteLogging : uint8_t { kOff, kOn };
  /// Whether KVM logs which pages of a slot are written.
  Result<void> set_write_logging(uint32_t slot, WriteLogging logging);

  /// Kept for KvmVcpu, on behalf of all vCPUs: the registers of one that has not run, once they are known.
  [[nodiscard]] std::optional<RegisterSet>& reset_registers() const { return reset_registers_; }

  /// Whether `forward_hypercalls` works: since Linux 6.4.
  [[nodiscard]] bool can_forward_hypercalls() const;
  /// Makes the guest's calls of these functions HypercallExits. @pre no vCPU has run.
  Result<void> forward_hypercalls(devices::FunctionRange functions);

  /// Makes a vCPU that waits sleep at once. It would poll for a while, which looks like running.
  Result<void> disable_halt_polling();

  /// KVM_CREATE_DEVICE. @return the device's descriptor.
  Result<UniqueFd> create_device(uint32_t type, std::string_view name) const;
  /// Whether KVM_CREATE_DEVICE would make one of `type`.
  [[nodiscard]] bool has_device(uint32_t type) const;

  /// Prepares an SPI for `pulse`. @pre the interrupt controller is initialised.
  Result<void> connect_edge(devices::Intid intid);

  void set_level(devices::Intid intid, bool high) override;
  void pulse(devices::Intid intid) override;
  void restore_level(devices::Intid intid, bool high) override { set_level(intid, high); }
  Result<void> add_doorbell(GuestAddr addr, uint32_t value, int event_fd) override;

 private:
  KvmVm(const Kvm& kvm, UniqueFd fd, unsigned ipa_bits) : kvm_(kvm), fd_(std::move(fd)), ipa_bits_(ipa_bits) {}

  const Kvm& kvm_;
  UniqueFd fd_;
  unsigned ipa_bits_;
  struct Slot {
    GuestRange range;
    std::span<std::byte> host;
    MemoryAccess access;
  };
  Result<void> set_memory_region(uint32_t slot, WriteLogging logging);

  std::vector<Slot> slots_;
  mutable std::optional<RegisterSet> reset_registers_;
  std::map<devices::Intid, UniqueFd> edges_;  // fixed once the machine is built, so read without a lock
};

}  // namespace tandem
