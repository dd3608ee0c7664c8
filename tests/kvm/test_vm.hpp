// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vmm/kvm/kvm_counter.hpp"
#include "vmm/kvm/kvm_dirty_log.hpp"
#include "vmm/kvm/kvm_vgic.hpp"
#include "vmm/lib/guest_memory/guest_memory.hpp"
#include "vmm/lib/guest_memory/guest_ram.hpp"

namespace tandem::tests {

/// A store that a guest is to do. @pre the width is 4 or 8.
struct Poke {
  uint64_t addr;
  uint64_t value;
  uint64_t width_bytes;
};

/// A VM of our wrappers, without devices, whose vCPUs run pieces of code that tests put there one after the other. Each piece ends
/// with a store to no memory, which gives the vCPU back.
class TestVm {
 public:
  static constexpr auto kGicd = GuestRange::fixed(0x0800'0000, 0x1'0000);
  static constexpr auto kGicc = GuestRange::fixed(0x0801'0000, 0x1'0000);
  static constexpr auto kGits = GuestRange::fixed(0x0808'0000, 0x2'0000);
  static constexpr uint64_t kGicr = 0x1000'0000;
  static constexpr auto kRam = GuestRange::fixed(0x4000'0000, 8U << 20);
  static constexpr uint64_t kDone = 0x0900'0000;

  /// With the host's GIC; an ITS if it is a GICv3. @errors  fail the process.
  explicit TestVm(unsigned vcpu_count, VcpuFeatures features);

  /// Has `vcpu` run `code`, with `x0`, from the start of RAM. @return what it stored at the end, or a text of how it ended else.
  Result<uint64_t> run(unsigned vcpu, std::span<const std::byte> code, uint64_t x0 = 0);
  /// Has vCPU 0 do the stores.
  Result<uint64_t> poke(std::span<const Poke> pokes);

  [[nodiscard]] bool is_gicv3() const { return vgic_->version() == GicVersion::kV3; }
  KvmVm& vm() { return *vm_; }
  KvmVcpu& vcpu(unsigned index) { return *vcpus_.at(index); }
  [[nodiscard]] unsigned vcpu_count() const { return static_cast<unsigned>(vcpus_.size()); }
  KvmVgic& vgic() { return *vgic_; }
  KvmCounter& counter() { return *counter_; }
  GuestMemory& memory() { return memory_; }
  [[nodiscard]] std::span<std::byte> ram() const { return ram_.bytes(); }

 private:
  Kvm kvm_;
  GuestRam ram_;
  GuestMemory memory_;
  std::unique_ptr<KvmVm> vm_;
  std::unique_ptr<KvmVgic> vgic_;
  std::vector<std::unique_ptr<KvmVcpu>> vcpus_;
  std::unique_ptr<KvmCounter> counter_;
};

/// What this host can give.
VcpuFeatures host_features();

// Code for `TestVm::run`.
std::span<const std::byte> fill_registers_code();  ///< Fills all registers that a guest can, by x0.
std::span<const std::byte> fill_sve_code();        ///< As above for Z, P and FFR, by x0.
std::span<const std::byte>
fill_pmu_code();  ///< Enables the event counters in x0, and their interrupts; nothing counts.
std::span<const std::byte> enable_cpu_interface_code();
std::span<const std::byte> send_sgi_code();  ///< Writes x0 to ICC_SGI1R_EL1.
std::span<const std::byte>
read_counters_code();  ///< Gives CNTVCT_EL0 - CNTPCT_EL0, as they are read one after the other.
std::span<const std::byte> read_x19_code();

}  // namespace tandem::tests
