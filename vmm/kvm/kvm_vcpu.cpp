// SPDX-License-Identifier: Apache-2.0
#include "vmm/kvm/kvm_vcpu.hpp"

#include <sys/ioctl.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "vmm/kvm/kvm_uapi.hpp"
#include "vmm/lib/bits/bits.hpp"

namespace tandem {
namespace {

constexpr uint64_t kRegX0 = KvmRegisters::core(offsetof(kvm_regs, regs.regs));
constexpr uint64_t kRegX1 = kRegX0 + 2;
constexpr uint64_t kRegX2 = kRegX0 + 4;
constexpr uint64_t kRegX3 = kRegX0 + 6;
constexpr uint64_t kRegPc = KvmRegisters::core(offsetof(kvm_regs, regs.pc));
constexpr uint64_t kRegMpidr = ARM64_SYS_REG(3, 0, 0, 0, 5);
constexpr uint64_t kRegIdAa64mmfr0 = ARM64_SYS_REG(3, 0, 0, 7, 0);
/// MPIDR_EL1.Aff3 and .Aff2..0 (DDI 0487, "MPIDR_EL1, Multiprocessor Affinity Register")
constexpr uint64_t kMpidrAffinity = 0xff00ffffff;

void set_feature(kvm_vcpu_init& init, unsigned feature) { init.features[feature / 32] |= 1U << (feature % 32); }

}  // namespace

VcpuFeatures KvmVcpu::supported_features(const Kvm& kvm) {
  return {.sve = kvm.capability(KVM_CAP_ARM_SVE) != 0,
          .pauth = kvm.capability(KVM_CAP_ARM_PTRAUTH_ADDRESS) != 0 && kvm.capability(KVM_CAP_ARM_PTRAUTH_GENERIC) != 0,
          .pmu = kvm.capability(KVM_CAP_ARM_PMU_V3) != 0};
}

KvmVcpu::KvmVcpu(const KvmVm& vm, UniqueFd fd, MappedRegion run, unsigned index, VcpuFeatures features)
    : vm_(vm),
      fd_(std::move(fd)),
      registers_(fd_.get()),
      run_(std::move(run)),
      index_(index),
      name_(fmt::format("vcpu{}", index)),
      features_(features) {}

Result<std::unique_ptr<KvmVcpu>> KvmVcpu::create(const KvmVm& vm, unsigned index, VcpuFeatures features) {
  UniqueFd fd(TANDEM_TRY(kvm_ioctl(vm.fd(), KVM_CREATE_VCPU, "KVM_CREATE_VCPU", static_cast<unsigned long>(index))));
  MappedRegion run =
      TANDEM_TRY(MappedRegion::map(vm.kvm().vcpu_mmap_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get()));
  std::unique_ptr<KvmVcpu> vcpu(new KvmVcpu(vm, std::move(fd), std::move(run), index, features));
  kvm_vcpu_init preferred{};
  TANDEM_TRY(kvm_ioctl(vm.fd(), KVM_ARM_PREFERRED_TARGET, "KVM_ARM_PREFERRED_TARGET", &preferred));
  vcpu->target_ = preferred.target;
  TANDEM_TRY(vcpu->init());
  if (features.sve) {
    TANDEM_TRY(vcpu->finalize_sve());
  }
  vcpu->mpidr_ = TANDEM_TRY(vcpu->registers_.read_u64(kRegMpidr)) & kMpidrAffinity;
  return vcpu;
}

Result<void> KvmVcpu::init() {
  kvm_vcpu_init request{};
  request.target = target_;
  set_feature(request, KVM_ARM_VCPU_PSCI_0_2);
  if (index_ != 0) {
    set_feature(request, KVM_ARM_VCPU_POWER_OFF);
  }
  if (features_.sve) {
    set_feature(request, KVM_ARM_VCPU_SVE);
  }
  if (features_.pauth) {
    set_feature(request, KVM_ARM_VCPU_PTRAUTH_ADDRESS);
    set_feature(request, KVM_ARM_VCPU_PTRAUTH_GENERIC);
  }
  if (features_.pmu) {
    set_feature(request, KVM_ARM_VCPU_PMU_V3);
  }
  TANDEM_TRY(kvm_ioctl(fd_.get(), KVM_ARM_VCPU_INIT, "KVM_ARM_VCPU_INIT", &request));
  return {};
}

Result<void> KvmVcpu::finalize_sve() {
  if (features_.sve_vector_lengths) {
    TANDEM_TRY(require_vector_lengths(*features_.sve_vector_lengths));
  }
  const int feature = KVM_ARM_VCPU_SVE;
  TANDEM_TRY(kvm_ioctl(fd_.get(), KVM_ARM_VCPU_FINALIZE, "KVM_ARM_VCPU_FINALIZE", &feature));
  SveVectorLengths lengths{};
  TANDEM_TRY(registers_.read(KVM_REG_ARM64_SVE_VLS, std::as_writable_bytes(std::span(lengths))));
  features_.sve_vector_lengths = lengths;
  return {};
}

/// KVM takes the lengths before KVM_ARM_VCPU_FINALIZE only. (api.rst, "KVM_REG_ARM64_SVE_VLS")
Result<void> KvmVcpu::require_vector_lengths(const SveVectorLengths& wanted) {
  SveVectorLengths here{};
  TANDEM_TRY(registers_.read(KVM_REG_ARM64_SVE_VLS, std::as_writable_bytes(std::span(here))));
  if (!registers_.write(KVM_REG_ARM64_SVE_VLS, std::as_bytes(std::span(wanted)))) {
    return fail(Errc::kUnsupported, "this host's SVE vector lengths are {:#x} (bit n: 16 * (n + 1) bytes), not {:#x}",
                here[0], wanted[0]);
  }
  return {};
}

Result<void> KvmVcpu::reset() { return init(); }

Result<uint64_t> KvmVcpu::id_aa64mmfr0() const { return registers_.read_u64(kRegIdAa64mmfr0); }

Result<void> KvmVcpu::init_pmu(devices::Intid intid) const {
  const int interrupt = static_cast<int>(intid.value());
  TANDEM_TRY(
      set_device_attr(fd_.get(), KVM_ARM_VCPU_PMU_V3_CTRL, KVM_ARM_VCPU_PMU_V3_IRQ, &interrupt, "(PMU interrupt)"));
  return set_device_attr(fd_.get(), KVM_ARM_VCPU_PMU_V3_CTRL, KVM_ARM_VCPU_PMU_V3_INIT, nullptr, "(PMU init)");
}

bool KvmVcpu::has_stolen_time() const {
  return has_device_attr(fd_.get(), KVM_ARM_VCPU_PVTIME_CTRL, KVM_ARM_VCPU_PVTIME_IPA);
}

Result<void> KvmVcpu::set_stolen_time_addr(GuestAddr addr) const {
  const uint64_t value = addr.value();
  return set_device_attr(fd_.get(), KVM_ARM_VCPU_PVTIME_CTRL, KVM_ARM_VCPU_PVTIME_IPA, &value, "(stolen time)");
}

bool KvmVcpu::has_pv_state() const {
  return has_device_attr(fd_.get(), kKvmArmVcpuPvStateCtrl, kKvmArmVcpuPvStateIpa) &&
         has_device_attr(fd_.get(), kKvmArmVcpuPvStateCtrl, kKvmArmVcpuPvStateEnabled);
}

Result<void> KvmVcpu::set_pv_state_addr(GuestAddr addr) const {
  const uint64_t value = addr.value();
  return set_device_attr(fd_.get(), kKvmArmVcpuPvStateCtrl, kKvmArmVcpuPvStateIpa, &value, "(PV vCPU state, address)");
}

Result<void> KvmVcpu::set_pv_state_enabled(bool enabled) const {
  const uint64_t value = enabled ? 1 : 0;
  return set_device_attr(fd_.get(), kKvmArmVcpuPvStateCtrl, kKvmArmVcpuPvStateEnabled, &value, "(PV vCPU state)");
}

Result<void> KvmVcpu::set_entry(GuestAddr pc, uint64_t x0) const {
  TANDEM_TRY(registers_.write_u64(kRegX0, x0));
  return registers_.write_u64(kRegPc, pc.value());
}

kvm_run& KvmVcpu::shared() const { return *reinterpret_cast<kvm_run*>(run_.bytes().data()); }

VmExit KvmVcpu::run() {
  const int result = ::ioctl(fd_.get(), KVM_RUN, 0);
  const int error = errno;
  access_pending_ = false;
  if (result == 0) {
    return decode_exit();
  }
  if (error == EINTR || error == EAGAIN) {
    return InterruptedExit{};
  }
  const uint64_t pc = registers_.read_u64(kRegPc).value_or(0);
  return FailureExit{fmt::format("{} (guest PC {:#x})", Error::from_errno("KVM_RUN", error).message(), pc)};
}

VmExit KvmVcpu::decode_exit() {
  const kvm_run& run = shared();
  switch (run.exit_reason) {
    case KVM_EXIT_MMIO:
      return decode_mmio();
    case KVM_EXIT_ARM_NISV:
      return UndecodedAccessExit{GuestAddr(run.arm_nisv.fault_ipa)};
    case KVM_EXIT_HYPERCALL:
      return decode_hypercall();
    case KVM_EXIT_SYSTEM_EVENT:
      return decode_system_event();
    case KVM_EXIT_INTR:
      return InterruptedExit{};
    case KVM_EXIT_FAIL_ENTRY:
      return FailureExit{fmt::format("KVM_EXIT_FAIL_ENTRY, hardware reason {:#x}",
                                     uint64_t{run.fail_entry.hardware_entry_failure_reason})};
    case KVM_EXIT_INTERNAL_ERROR:
      return FailureExit{fmt::format("KVM_EXIT_INTERNAL_ERROR {}", run.internal.suberror)};
    case kKvmExitMemoryFault:
      return FailureExit{"KVM_EXIT_MEMORY_FAULT"};
    default:
      return FailureExit{fmt::format("unknown KVM exit {}", run.exit_reason)};
  }
}

VmExit KvmVcpu::decode_mmio() {
  const auto& mmio = shared().mmio;
  access_pending_ = true;
  const GuestAddr addr(mmio.phys_addr);
  if (mmio.is_write == 0) {
    return MmioReadExit{addr, mmio.len};
  }
  const uint64_t value = low_bytes(load_le<uint64_t>(std::as_bytes(std::span(mmio.data))), mmio.len);
  return MmioWriteExit{addr, mmio.len, value};
}

/// The PC is behind the instruction already. (Documentation/virt/kvm/api.rst, "KVM_EXIT_HYPERCALL")
VmExit KvmVcpu::decode_hypercall() const {
  const auto& hypercall = shared().hypercall;
  HypercallExit exit{.conduit = (hypercall.longmode & kKvmHypercallExitSmc) != 0 ? devices::Hypercall::Conduit::kSmc
                                                                                 : devices::Hypercall::Conduit::kHvc,
                     .function = static_cast<uint32_t>(hypercall.nr),
                     .arguments = {}};
  constexpr std::array kArgumentRegisters{kRegX1, kRegX2, kRegX3};
  for (size_t index = 0; index < exit.arguments.size(); ++index) {
    const auto value = registers_.read_u64(kArgumentRegisters.at(index));
    if (!value) {
      return FailureExit{value.error().message()};
    }
    exit.arguments.at(index) = *value;
  }
  return exit;
}

Result<void> KvmVcpu::complete_hypercall(uint64_t x0) { return registers_.write_u64(kRegX0, x0); }

VmExit KvmVcpu::decode_system_event() const {
  const auto& event = shared().system_event;
  switch (event.type) {
    case KVM_SYSTEM_EVENT_SHUTDOWN:
      return SystemOffExit{};
    case KVM_SYSTEM_EVENT_RESET: {
      // KVM leaves PSCI SYSTEM_RESET2's arguments where the guest put them.
      const bool is_reset2 = event.ndata > 0 && (event.data[0] & KVM_SYSTEM_EVENT_RESET_FLAG_PSCI_RESET2) != 0;
      return SystemResetExit{is_reset2, is_reset2 ? registers_.read_u64(kRegX1).value_or(0) : 0,
                             is_reset2 ? registers_.read_u64(kRegX2).value_or(0) : 0};
    }
    case KVM_SYSTEM_EVENT_CRASH:
      return FailureExit{"the guest reported a crash to KVM"};
    default:
      return FailureExit{fmt::format("unknown KVM system event {}", event.type)};
  }
}

void KvmVcpu::complete_mmio_read(uint64_t value) {
  store_le(std::as_writable_bytes(std::span(shared().mmio.data)), value);
}

void KvmVcpu::finish_mmio() {
  if (access_pending_) {
    set_immediate_exit(true);
    run();
  }
}

void KvmVcpu::set_immediate_exit(bool immediate) {
  std::atomic_ref(shared().immediate_exit).store(immediate ? 1 : 0, std::memory_order_seq_cst);
}

Result<void> KvmVcpu::inject_external_abort() {
  kvm_vcpu_events events{};
  events.exception.ext_dabt_pending = 1;
  TANDEM_TRY(kvm_ioctl(fd_.get(), KVM_SET_VCPU_EVENTS, "KVM_SET_VCPU_EVENTS", &events));
  access_pending_ = true;  // it would outlive KVM_ARM_VCPU_INIT, and the first instruction after a reset would take it
  return {};
}

}  // namespace tandem
