// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vmm/kvm/kvm_vcpu.hpp"
#include "vmm/kvm/kvm_vm.hpp"
#include "vmm/kvm/vgic_state.hpp"
#include "vmm/lib/state/component.hpp"

namespace tandem {

enum class GicVersion : uint8_t { kV2, kV3 };

/// Where the interrupt controller's frames are, and how many interrupts it has.
struct VgicLayout {
  GuestRange distributor;
  GuestRange cpu_interface;   ///< GICv2.
  GuestRange redistributors;  ///< GICv3: 128 KiB a vCPU.
  GuestRange its;             ///< GICv3.
  uint32_t interrupt_count;   ///< INTIDs of SGIs, PPIs and SPIs: a multiple of 32.
};

/// The GIC versions that this host can give a guest.
struct HostGic {
  bool v2;
  bool v3;
  static HostGic probe(const KvmVm& vm);
};

/// KVM's in-kernel interrupt controller, named "vgic": a GICv3, with an ITS if wanted, or a GICv2.
///
/// Saving has KVM write the ITS's tables and the pending LPIs to guest RAM, where the guest has told it to, and restoring
/// reads them there: RAM is saved after the controller, and restored before. A GICv2's line levels are the devices' to restore.
/// @thread  any one, with every vCPU parked.
class KvmVgic final : public Component {
 public:
  /// Creates and places it; no vCPU can run before `init`.
  static Result<std::unique_ptr<KvmVgic>> create(const KvmVm& vm, GicVersion version, bool with_its,
                                                 const VgicLayout& layout);

  /// Ends set-up. @pre all vCPUs are created; `vcpus` outlive the controller.
  Result<void> init(std::span<const std::unique_ptr<KvmVcpu>> vcpus);

  [[nodiscard]] std::string_view name() const override { return "vgic"; }
  /// Brings every register back to its value after `init`, and drops all pending interrupts.
  Result<void> reset() override;
  /// Nothing to do: it runs as the vCPUs do.
  Result<void> pause() override { return {}; }
  Result<void> resume() override { return {}; }
  Result<StateRecord> save() override;
  /// @errors  Errc::kUnsupported: the record is of another controller, or this host's refuses a value.
  Result<void> restore(const StateRecord& record) override;

  [[nodiscard]] GicVersion version() const { return version_; }
  [[nodiscard]] bool has_its() const { return static_cast<bool>(its_fd_); }

 private:
  /// One register access through KVM_{GET,SET}_DEVICE_ATTR.
  struct Register {
    uint32_t group;
    uint64_t attr;
    uint64_t value;
  };
  /// A register in the order of restoring.
  struct Step {
    Register reg;                         ///< Without its value, if that is saved.
    bool is_saved = true;                 ///< Else `reg.value` is written, whatever was saved.
    uint64_t restored_bits = UINT64_MAX;  ///< Of the value.
  };

  KvmVgic(UniqueFd fd, UniqueFd its_fd, GicVersion version, const VgicLayout& layout)
      : fd_(std::move(fd)), its_fd_(std::move(its_fd)), version_(version), layout_(layout) {}
  Result<void> place() const;
  Result<void> place_its() const;
  /// Fills `reset_values_`, in the order in which they are to be written.
  Result<void> list_reset_values();
  Result<void> list_banks(uint32_t group, uint64_t base_attr, uint32_t first_intid, uint32_t end_intid);
  Result<void> list_cpu_interface(const KvmVcpu& vcpu);
  Result<void> reset_lpis() const;
  /// The registers of the CPU interface that this host has.
  [[nodiscard]] Result<std::vector<uint64_t>> cpu_interface_registers(const KvmVcpu& vcpu) const;

  /// All registers but those of the ITS, in the order of restoring.
  [[nodiscard]] Result<std::vector<Step>> steps() const;
  [[nodiscard]] Result<std::vector<Step>> vcpu_steps(const KvmVcpu& vcpu) const;
  [[nodiscard]] std::vector<Step> bank_steps(uint32_t group, uint64_t base_attr, uint32_t first_intid,
                                             uint32_t end_intid) const;
  [[nodiscard]] std::vector<Step> line_level_steps() const;
  [[nodiscard]] static std::vector<Step> its_steps();
  Result<void> control(int fd, uint64_t attr, std::string_view what) const;
  Result<void> require_same_controller(const KvmVgicStateV1& state) const;
  Result<void> write(const Register& reg) const;
  Result<void> read(Register& reg) const;
  [[nodiscard]] uint64_t vcpu_attr(const KvmVcpu& vcpu) const;

  UniqueFd fd_;
  UniqueFd its_fd_;
  GicVersion version_;
  VgicLayout layout_;
  std::span<const std::unique_ptr<KvmVcpu>> vcpus_;
  std::vector<Register> reset_values_;
};

}  // namespace tandem
