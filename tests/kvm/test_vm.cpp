// SPDX-License-Identifier: Apache-2.0
#include "tests/kvm/test_vm.hpp"

#include <linux/kvm.h>

#include "vmm/lib/mapped_region/mapped_region.hpp"

// All code is independent of its place, and runs with the MMU off. x30 has the place of the last store.
asm(R"(
    .pushsection .rodata
    .macro finish value
    mov     x30, #0x09000000
    str     \value, [x30]
    .endm

    .balign 8
    .globl  tandem_fill_registers
tandem_fill_registers:
    mov     x1, #(3 << 20)
    msr     cpacr_el1, x1
    isb
    .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    add     x2, x0, #(\n * 3 + 1)
    dup     v\n\().2d, x2
    .endr
    mov     x2, #0x3000000
    msr     fpcr, x2
    mov     x2, #0x1f
    msr     fpsr, x2
    .irp    reg, sp_el0, elr_el1, tpidr_el0, tpidr_el1, tpidrro_el0, ttbr0_el1, ttbr1_el1, vbar_el1, far_el1, mair_el1, contextidr_el1, afsr0_el1, par_el1
    add     x0, x0, #0x800
    msr     \reg, x0
    .endr
    mov     x2, #0x56000000
    msr     esr_el1, x2
    mov     x2, #0x3c5
    msr     spsr_el1, x2
    msr     csselr_el1, xzr
    mrs     x2, cntvct_el0
    add     x3, x2, x0
    msr     cntv_cval_el0, x2
    mov     x2, #1
    msr     cntv_ctl_el0, x2
    mov     x2, #3
    msr     cntp_cval_el0, x3
    msr     cntp_ctl_el0, x2
    msr     cntkctl_el1, x2
    .irp    n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29
    add     x\n, x0, #(\n * 5)
    .endr
    msr     nzcv, x0
    finish  x0
    .globl  tandem_fill_registers_end
tandem_fill_registers_end:

    .arch_extension sve
    .balign 8
    .globl  tandem_fill_sve
tandem_fill_sve:
    mov     x1, #(3 << 20)
    orr     x1, x1, #(3 << 16)
    msr     cpacr_el1, x1
    isb
    mov     x2, #15
    msr     s3_0_c1_c2_0, x2
    isb
    .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    add     w3, w0, #(\n * 7)
    index   z\n\().b, w3, #3
    .endr
    mov     x3, #5
    whilelo p0.b, xzr, x3
    wrffr   p0.b
    .irp    n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    mov     x3, #(\n + 1)
    whilelo p\n\().b, xzr, x3
    .endr
    rdvl    x3, #1
    finish  x3
    .globl  tandem_fill_sve_end
tandem_fill_sve_end:
    .arch_extension nosve

    .balign 8
    .globl  tandem_fill_pmu
tandem_fill_pmu:
    mov     x1, #-1
    msr     pmcntenclr_el0, x1
    msr     pmintenclr_el1, x1
    msr     pmovsclr_el0, x1
    msr     pmcntenset_el0, x0
    msr     pmintenset_el1, x0
    msr     pmovsset_el0, x0
    mov     x1, #2
    msr     pmselr_el0, x1
    msr     pmuserenr_el0, x1
    finish  x0
    .globl  tandem_fill_pmu_end
tandem_fill_pmu_end:

    .balign 8
    .globl  tandem_enable_cpu_interface
tandem_enable_cpu_interface:
    mov     x1, #7
    msr     s3_0_c12_c12_5, x1
    isb
    mov     x1, #0xf0
    msr     s3_0_c4_c6_0, x1
    mov     x1, #3
    msr     s3_0_c12_c12_3, x1
    mov     x1, #1
    msr     s3_0_c12_c12_7, x1
    isb
    finish  x1
    .globl  tandem_enable_cpu_interface_end
tandem_enable_cpu_interface_end:

    .balign 8
    .globl  tandem_send_sgi
tandem_send_sgi:
    msr     s3_0_c12_c11_5, x0
    isb
    finish  x0
    .globl  tandem_send_sgi_end
tandem_send_sgi_end:

    .balign 8
    .globl  tandem_read_counters
tandem_read_counters:
    isb
    mrs     x1, cntpct_el0
    isb
    mrs     x2, cntvct_el0
    sub     x2, x2, x1
    finish  x2
    .globl  tandem_read_counters_end
tandem_read_counters_end:

    .balign 8
    .globl  tandem_read_x19
tandem_read_x19:
    finish  x19
    .globl  tandem_read_x19_end
tandem_read_x19_end:

    .balign 8
    .globl  tandem_poke
tandem_poke:
1:  ldp     x1, x2, [x0], #16
    ldr     x3, [x0], #8
    cbz     x3, 3f
    cmp     x3, #8
    b.eq    2f
    str     w2, [x1]
    b       1b
2:  str     x2, [x1]
    b       1b
3:  dsb     sy
    finish  x0
    .globl  tandem_poke_end
tandem_poke_end:
    .popsection
)");

#define TANDEM_TEST_CODE(name) extern "C" const std::byte tandem_##name[], tandem_##name##_end[]
TANDEM_TEST_CODE(fill_registers);
TANDEM_TEST_CODE(fill_sve);
TANDEM_TEST_CODE(fill_pmu);
TANDEM_TEST_CODE(enable_cpu_interface);
TANDEM_TEST_CODE(send_sgi);
TANDEM_TEST_CODE(read_counters);
TANDEM_TEST_CODE(read_x19);
TANDEM_TEST_CODE(poke);
#undef TANDEM_TEST_CODE

namespace tandem::tests {
namespace {

/// Where the list of `poke` is, behind the code.
constexpr uint64_t kPokeList = 0x1000;

std::span<const std::byte> code_between(const std::byte* start, const std::byte* end) {
  return {start, static_cast<size_t>(end - start)};
}

template <typename T>
T require(Result<T> made) {
  TANDEM_ASSERT(made.has_value(), made.error().message().c_str());
  return std::move(*made);
}

}  // namespace

VcpuFeatures host_features() { return KvmVcpu::supported_features(require(Kvm::open())); }

TestVm::TestVm(unsigned vcpu_count, VcpuFeatures features)
    : kvm_(require(Kvm::open())),
      ram_(require(GuestRam::create_anonymous(kRam))),
      memory_({{kRam, ram_.bytes()}}),
      vm_(require(KvmVm::create(kvm_, kRam.last()))) {
  const auto added = vm_->add_memory(kRam, ram_.bytes());
  TANDEM_ASSERT(added, "the host takes 8 MiB of RAM");
  const GicVersion version = HostGic::probe(*vm_).v3 ? GicVersion::kV3 : GicVersion::kV2;
  const VgicLayout layout{.distributor = kGicd,
                          .cpu_interface = kGicc,
                          .redistributors = *GuestRange::create(GuestAddr(kGicr), 0x20000 * vcpu_count),
                          .its = kGits,
                          .interrupt_count = 96};
  vgic_ = require(KvmVgic::create(*vm_, version, version == GicVersion::kV3, layout));
  for (unsigned index = 0; index < vcpu_count; ++index) {
    vcpus_.push_back(require(KvmVcpu::create(*vm_, index, features)));
  }
  const auto ready = vgic_->init(vcpus_);
  TANDEM_ASSERT(ready, "the host's vGIC works");
  for (const auto& vcpu : vcpus_) {
    const auto has_pmu = features.pmu ? vcpu->init_pmu(devices::Intid::ppi(7)) : Result<void>();
    TANDEM_ASSERT(has_pmu, "the host's PMU works");
  }
  counter_ = require(KvmCounter::create(*vm_, *vcpus_.front()));
}

Result<uint64_t> TestVm::run(unsigned index, std::span<const std::byte> code, uint64_t x0) {
  TANDEM_ASSERT(!code.empty() && code.size() <= kPokeList, fmt::format("{} bytes of code", code.size()).c_str());
  std::ranges::copy(code, ram_.bytes().begin());
  __builtin___clear_cache(reinterpret_cast<char*>(ram_.bytes().data()),
                          reinterpret_cast<char*>(ram_.bytes().data() + code.size()));
  memory_.mark_written(GuestRange::create(kRam.base(), code.size()).value());
  KvmVcpu& vcpu = *vcpus_.at(index);
  kvm_mp_state runnable{.mp_state = KVM_MP_STATE_RUNNABLE};
  TANDEM_TRY(kvm_ioctl(vcpu.fd(), KVM_SET_MP_STATE, "KVM_SET_MP_STATE", &runnable));
  TANDEM_TRY(vcpu.set_entry(kRam.base(), x0));
  vcpu.set_immediate_exit(false);
  while (true) {
    const VmExit exit = vcpu.run();
    if (const auto* const store = std::get_if<MmioWriteExit>(&exit); store != nullptr && store->addr.value() == kDone) {
      const uint64_t value = store->value;
      vcpu.finish_mmio();
      return value;
    }
    if (!std::holds_alternative<InterruptedExit>(exit)) {
      const auto* const failure = std::get_if<FailureExit>(&exit);
      return fail(Errc::kIo, "exit {}: {}", exit.index(), failure != nullptr ? failure->reason : "");
    }
  }
}

Result<uint64_t> TestVm::poke(std::span<const Poke> pokes) {
  std::vector<Poke> list(pokes.begin(), pokes.end());
  list.push_back({0, 0, 0});
  const GuestAddr addr(kRam.base().value() + kPokeList);
  TANDEM_ASSERT(memory_.write(addr, std::as_bytes(std::span(list))), "the list fits into RAM");
  return run(0, code_between(tandem_poke, tandem_poke_end), addr.value());
}

std::span<const std::byte> fill_registers_code() {
  return code_between(tandem_fill_registers, tandem_fill_registers_end);
}
std::span<const std::byte> fill_sve_code() { return code_between(tandem_fill_sve, tandem_fill_sve_end); }
std::span<const std::byte> fill_pmu_code() { return code_between(tandem_fill_pmu, tandem_fill_pmu_end); }
std::span<const std::byte> enable_cpu_interface_code() {
  return code_between(tandem_enable_cpu_interface, tandem_enable_cpu_interface_end);
}
std::span<const std::byte> send_sgi_code() { return code_between(tandem_send_sgi, tandem_send_sgi_end); }
std::span<const std::byte> read_counters_code() { return code_between(tandem_read_counters, tandem_read_counters_end); }
std::span<const std::byte> read_x19_code() { return code_between(tandem_read_x19, tandem_read_x19_end); }

}  // namespace tandem::tests
