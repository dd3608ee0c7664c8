// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/capabilities.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include <sys/auxv.h>
#include <unistd.h>

namespace tandem::tests {
namespace {

/// One row of the table: a CPU model of scripts/testbed and what it has.
struct CpuModel {
  std::string_view name;
  bool sve;
  bool pauth;
  bool pmu;
  bool pages_16k;
};

constexpr std::array kCpuModels{
    CpuModel{.name = "max", .sve = true, .pauth = true, .pmu = true, .pages_16k = true},
    CpuModel{.name = "cortex-a72", .sve = false, .pauth = false, .pmu = true, .pages_16k = false},
};

constexpr std::array kGuestKernels{
    GuestKernel{
        .name = "tandem", .page_size_bytes = 4096, .least_memory_mib = 128, .pvpanic = true, .reads_vcpu_state = true},
    GuestKernel{
        .name = "stock", .page_size_bytes = 4096, .least_memory_mib = 256, .pvpanic = false, .reads_vcpu_state = false},
    GuestKernel{.name = "stock-16k",
                .page_size_bytes = 16384,
                .least_memory_mib = 256,
                .pvpanic = false,
                .reads_vcpu_state = false},
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "capabilities: %s\n", why.c_str());
  std::exit(1);
}

Capabilities of_testbed() {
  const std::string cpu = variable("TANDEM_TESTBED_CPU");
  const std::string gic = variable("TANDEM_TESTBED_GIC");
  const std::string kernel = variable("TANDEM_TESTBED_KERNEL");
  for (const CpuModel& model : kCpuModels) {
    if (model.name == cpu) {
      return {.where = "testbed " + cpu + ", GICv" + gic + ", kernel " + kernel,
              .gic_version = gic == "2" ? 2U : 3U,
              .sve = model.sve,
              .pauth = model.pauth,
              .pmu = model.pmu,
              .page_size_bytes = kernel == "stock-16k" ? 16384U : 4096U,
              .pages_16k = model.pages_16k,
              .bpf = kernel == "tandem" || kernel.starts_with("stock"),
              .kvm_records = kernel == "tandem",
              .swap = kernel.starts_with("stock")};
    }
  }
  give_up("no row for a testbed with CPU '" + cpu + "'");
}

Capabilities of_this_machine() {
  constexpr unsigned long kHwcapSve = 1UL << 22;
  constexpr unsigned long kHwcapPaca = 1UL << 30;
  std::ifstream interrupts("/proc/interrupts");
  const std::string text{std::istreambuf_iterator<char>(interrupts), {}};
  return {.where = "this machine",
          .gic_version = text.find("GICv3") == std::string::npos ? 2U : 3U,
          .sve = (getauxval(AT_HWCAP) & kHwcapSve) != 0,
          .pauth = (getauxval(AT_HWCAP) & kHwcapPaca) != 0,
          .pmu = text.find("arm-pmu") != std::string::npos,
          .page_size_bytes = static_cast<unsigned>(sysconf(_SC_PAGESIZE)),
          .bpf = ::geteuid() == 0 && ::access("/sys/kernel/btf/vmlinux", R_OK) == 0};
}

}  // namespace

std::vector<std::string> Capabilities::vcpu_state_back_ends() const {
  std::vector<std::string> names;
  if (kvm_records) {
    names.emplace_back("kernel");
  }
  if (bpf) {
    names.emplace_back("bpf");
  }
  return names;
}

const Capabilities& capabilities() {
  static const Capabilities instance = variable("TANDEM_TESTBED") == "emulated" ? of_testbed() : of_this_machine();
  return instance;
}

const GuestKernel& guest_kernel() {
  const std::string name = variable("TANDEM_GUEST");
  for (const GuestKernel& kernel : kGuestKernels) {
    if (kernel.name == name) {
      return kernel;
    }
  }
  give_up("no row for a guest kernel '" + name + "'; scripts/test sets TANDEM_GUEST");
}

}  // namespace tandem::tests
