// SPDX-License-Identifier: Apache-2.0
// Prints what the running arm64 kernel lets programs and guests see of the CPU, one fact per line, so that
// two kernels on the same CPU can be compared with diff. See cpu_parity.sh.
//
// A program sees the HWCAP bits and, through trapped MRS, the identification registers. A guest sees
// what KVM answers: the capabilities, the list of registers, and the identification registers, which are
// read here by a guest that runs MRS instructions, not only asked for by ioctl.

#include <asm/hwcap.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr uint64_t kGuestCodeAddr = 0x4000'0000;
constexpr uint64_t kGuestResultsAddr = kGuestCodeAddr + 0x8000;
constexpr size_t kGuestMemoryBytes = 0x10000;
constexpr uint64_t kGuestExitAddr = 0x0900'0000;  // outside the memory slot: a store there ends KVM_RUN

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "id_registers: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

/// Returns the result of an ioctl that must work; ends the program if it does not.
template <typename Argument>
int must(int fd, const char* name, unsigned long request, Argument argument) {
  const int result = ioctl(fd, request, argument);
  if (result < 0) fail(name);
  return result;
}

/// One system register by its encoding.
struct SystemRegister {
  uint32_t op0, op1, CRn, CRm, op2;
};

std::string name_of(const SystemRegister& reg) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "S%u_%u_C%u_C%u_%u", reg.op0, reg.op1, reg.CRn, reg.CRm, reg.op2);
  return text.data();
}

/// The space of identification registers that the architecture reserves (S3_0_C0_C1..7_0..7; unallocated ones
/// read as zero), and the few beside it.
std::vector<SystemRegister> identification_registers() {
  std::vector<SystemRegister> all = {
      {3, 0, 0, 0, 0},  // MIDR_EL1
      {3, 0, 0, 0, 6},  // REVIDR_EL1
      {3, 1, 0, 0, 1},  // CLIDR_EL1
      {3, 1, 0, 0, 7},  // AIDR_EL1
      {3, 3, 0, 0, 1},  // CTR_EL0
      {3, 3, 0, 0, 7},  // DCZID_EL0
      {3, 3, 14, 0, 0}  // CNTFRQ_EL0
  };
  for (uint32_t CRm = 1; CRm <= 7; ++CRm) {
    for (uint32_t op2 = 0; op2 <= 7; ++op2) all.push_back({3, 0, 0, CRm, op2});
  }
  return all;
}

void print_hwcaps() {
  std::printf("program hwcap %#lx\nprogram hwcap2 %#lx\n", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("Features", 0) == 0) {
      std::printf("program %s\n", line.c_str());
      return;
    }
  }
}

void print_value(const char* who, const char* name, uint64_t value) {
  std::printf("%s %s %#llx\n", who, name, static_cast<unsigned long long>(value));
}

/// The registers that the kernel's documentation ("ARM64 CPU Feature Registers") lets a program read.
void print_emulated_registers() {
#define PRINT_REGISTER(name, encoding)               \
  {                                                  \
    uint64_t value = 0;                              \
    asm volatile("mrs %0, " encoding : "=r"(value)); \
    print_value("program", name, value);             \
  }
  PRINT_REGISTER("MIDR_EL1", "S3_0_C0_C0_0")
  PRINT_REGISTER("REVIDR_EL1", "S3_0_C0_C0_6")
  PRINT_REGISTER("ID_AA64PFR0_EL1", "S3_0_C0_C4_0")
  PRINT_REGISTER("ID_AA64PFR1_EL1", "S3_0_C0_C4_1")
  PRINT_REGISTER("ID_AA64PFR2_EL1", "S3_0_C0_C4_2")
  PRINT_REGISTER("ID_AA64ZFR0_EL1", "S3_0_C0_C4_4")
  PRINT_REGISTER("ID_AA64SMFR0_EL1", "S3_0_C0_C4_5")
  PRINT_REGISTER("ID_AA64FPFR0_EL1", "S3_0_C0_C4_7")
  PRINT_REGISTER("ID_AA64DFR0_EL1", "S3_0_C0_C5_0")
  PRINT_REGISTER("ID_AA64ISAR0_EL1", "S3_0_C0_C6_0")
  PRINT_REGISTER("ID_AA64ISAR1_EL1", "S3_0_C0_C6_1")
  PRINT_REGISTER("ID_AA64ISAR2_EL1", "S3_0_C0_C6_2")
  PRINT_REGISTER("ID_AA64ISAR3_EL1", "S3_0_C0_C6_3")
  PRINT_REGISTER("ID_AA64MMFR0_EL1", "S3_0_C0_C7_0")
  PRINT_REGISTER("ID_AA64MMFR1_EL1", "S3_0_C0_C7_1")
  PRINT_REGISTER("ID_AA64MMFR2_EL1", "S3_0_C0_C7_2")
  PRINT_REGISTER("ID_AA64MMFR3_EL1", "S3_0_C0_C7_3")
  PRINT_REGISTER("CTR_EL0", "S3_3_C0_C0_1")
  PRINT_REGISTER("DCZID_EL0", "S3_3_C0_C0_7")
  PRINT_REGISTER("CNTFRQ_EL0", "S3_3_C14_C0_0")
#undef PRINT_REGISTER
}

/// Prints the answer to every capability number there is, known to this program or not.
void print_capabilities(int kvm, int vm) {
  constexpr int kLastCapability = 300;
  for (int number = 0; number < kLastCapability; ++number) {
    const int system = ioctl(kvm, KVM_CHECK_EXTENSION, number);
    const int machine = ioctl(vm, KVM_CHECK_EXTENSION, number);
    if (system > 0 || machine > 0) std::printf("kvm capability %d: %d %d\n", number, system, machine);
  }
}

/// Switches on every vCPU feature that this host has.
void initialise_vcpu(int kvm, int vm, int vcpu) {
  kvm_vcpu_init init{};
  must(vm, "KVM_ARM_PREFERRED_TARGET", KVM_ARM_PREFERRED_TARGET, &init);
  const auto enable = [&](int capability, unsigned feature) {
    if (ioctl(kvm, KVM_CHECK_EXTENSION, capability) > 0) init.features[0] |= 1U << feature;
  };
  enable(KVM_CAP_ARM_PSCI_0_2, KVM_ARM_VCPU_PSCI_0_2);
  enable(KVM_CAP_ARM_PMU_V3, KVM_ARM_VCPU_PMU_V3);
  enable(KVM_CAP_ARM_SVE, KVM_ARM_VCPU_SVE);
  enable(KVM_CAP_ARM_PTRAUTH_ADDRESS, KVM_ARM_VCPU_PTRAUTH_ADDRESS);
  enable(KVM_CAP_ARM_PTRAUTH_GENERIC, KVM_ARM_VCPU_PTRAUTH_GENERIC);
  std::printf("kvm target %u features %#x\n", init.target, init.features[0]);
  must(vcpu, "KVM_ARM_VCPU_INIT", KVM_ARM_VCPU_INIT, &init);
  if ((init.features[0] & (1U << KVM_ARM_VCPU_SVE)) != 0) {
    int feature = KVM_ARM_VCPU_SVE;
    must(vcpu, "KVM_ARM_VCPU_FINALIZE", KVM_ARM_VCPU_FINALIZE, &feature);
  }
  if ((init.features[0] & (1U << KVM_ARM_VCPU_PMU_V3)) != 0) {
    kvm_device_attr attribute{0, KVM_ARM_VCPU_PMU_V3_CTRL, KVM_ARM_VCPU_PMU_V3_INIT, 0};
    must(vcpu, "KVM_ARM_VCPU_PMU_V3_INIT", KVM_SET_DEVICE_ATTR, &attribute);
  }
}

/// Prints the id of every register that KVM has for the vCPU, and the values of those in the identification
/// space and of KVM's pseudo registers (firmware versions, hypercall bitmaps, vector lengths).
void print_register_list(int vcpu) {
  kvm_reg_list probe{};
  if (ioctl(vcpu, KVM_GET_REG_LIST, &probe) == 0 || errno != E2BIG) fail("KVM_GET_REG_LIST");
  std::vector<uint64_t> list(probe.n + 1);
  list[0] = probe.n;
  must(vcpu, "KVM_GET_REG_LIST", KVM_GET_REG_LIST, list.data());
  std::sort(list.begin() + 1, list.end());
  for (auto id = list.begin() + 1; id != list.end(); ++id) {
    const uint64_t kind = *id & KVM_REG_ARM_COPROC_MASK;
    const bool identification = kind == KVM_REG_ARM64_SYSREG && ((*id & 0xffff) >> 7) == ((3U << 7) | 0U);
    const bool pseudo = kind == KVM_REG_ARM_FW || kind == KVM_REG_ARM_FW_FEAT_BMAP || *id == KVM_REG_ARM64_SVE_VLS;
    std::array<uint64_t, 8> value{};
    if (identification || pseudo) {
      kvm_one_reg one{*id, reinterpret_cast<uintptr_t>(value.data())};
      must(vcpu, "KVM_GET_ONE_REG", KVM_GET_ONE_REG, &one);
    }
    std::printf("kvm register %#llx %#llx\n", static_cast<unsigned long long>(*id),
                static_cast<unsigned long long>(value[0]));
  }
}

/// A64 "MRS X0, <reg>".
uint32_t mrs_x0(const SystemRegister& reg) {
  return 0xd530'0000U | ((reg.op0 & 1) << 19) | (reg.op1 << 16) | (reg.CRn << 12) | (reg.CRm << 8) | (reg.op2 << 5);
}

/// The guest's program: reads each register, stores it at [x1], and ends with a store outside memory.
std::vector<uint32_t> guest_code(const std::vector<SystemRegister>& registers) {
  constexpr uint32_t kStrX0PostX1 = 0xf800'8420;  // str x0, [x1], #8
  constexpr uint32_t kStrX0X2 = 0xf900'0040;      // str x0, [x2]
  std::vector<uint32_t> code;
  for (const auto& reg : registers) {
    code.push_back(mrs_x0(reg));
    code.push_back(kStrX0PostX1);
  }
  code.push_back(kStrX0X2);
  return code;
}

void set_core_register(int vcpu, size_t word_offset, uint64_t value) {
  const uint64_t id = KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE | word_offset;
  kvm_one_reg one{id, reinterpret_cast<uintptr_t>(&value)};
  must(vcpu, "KVM_SET_ONE_REG", KVM_SET_ONE_REG, &one);
}

/// Runs the guest to its one exit.
/// @pre  memory is the VM's slot at kGuestCodeAddr.
void run_guest(int kvm, int vcpu, uint8_t* memory, const std::vector<uint32_t>& code) {
  const auto run_bytes = static_cast<size_t>(must(kvm, "KVM_GET_VCPU_MMAP_SIZE", KVM_GET_VCPU_MMAP_SIZE, 0));
  void* mapped = mmap(nullptr, run_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0);
  if (mapped == MAP_FAILED) fail("mmap of kvm_run");
  const auto* run = static_cast<const kvm_run*>(mapped);
  std::memcpy(memory, code.data(), code.size() * sizeof(code[0]));
  __builtin___clear_cache(reinterpret_cast<char*>(memory), reinterpret_cast<char*>(memory) + kGuestMemoryBytes);
  set_core_register(vcpu, offsetof(kvm_regs, regs.regs[1]) / sizeof(uint32_t), kGuestResultsAddr);
  set_core_register(vcpu, offsetof(kvm_regs, regs.regs[2]) / sizeof(uint32_t), kGuestExitAddr);
  set_core_register(vcpu, offsetof(kvm_regs, regs.pc) / sizeof(uint32_t), kGuestCodeAddr);
  must(vcpu, "KVM_RUN", KVM_RUN, 0);
  if (run->exit_reason != KVM_EXIT_MMIO || run->mmio.phys_addr != kGuestExitAddr) {
    errno = EPROTO;
    fail("guest ended with exit reason " + std::to_string(run->exit_reason));
  }
}

void print_registers_read_by_guest(int kvm, int vm, int vcpu) {
  void* mapped = mmap(nullptr, kGuestMemoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) fail("mmap of guest memory");
  auto* memory = static_cast<uint8_t*>(mapped);
  kvm_userspace_memory_region slot{0, 0, kGuestCodeAddr, kGuestMemoryBytes, reinterpret_cast<uintptr_t>(memory)};
  must(vm, "KVM_SET_USER_MEMORY_REGION", KVM_SET_USER_MEMORY_REGION, &slot);
  const auto registers = identification_registers();
  run_guest(kvm, vcpu, memory, guest_code(registers));
  for (size_t index = 0; index < registers.size(); ++index) {
    uint64_t value = 0;
    std::memcpy(&value, memory + (kGuestResultsAddr - kGuestCodeAddr) + index * sizeof(value), sizeof(value));
    print_value("guest", name_of(registers[index]).c_str(), value);
  }
}

}  // namespace

int main() {
  print_hwcaps();
  print_emulated_registers();
  const int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
  if (kvm < 0) fail("/dev/kvm");
  const int vm = must(kvm, "KVM_CREATE_VM", KVM_CREATE_VM, 0);
  print_capabilities(kvm, vm);
  const int vcpu = must(vm, "KVM_CREATE_VCPU", KVM_CREATE_VCPU, 0);
  initialise_vcpu(kvm, vm, vcpu);
  print_register_list(vcpu);
  print_registers_read_by_guest(kvm, vm, vcpu);
  return std::fflush(stdout) == 0 ? 0 : 1;
}
