// SPDX-License-Identifier: Apache-2.0
// A spec document of any content describes a machine within the limits, which makes the same document again, or is refused
// with one line.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "vmm/machine/host_offer.hpp"
#include "vmm/machine/machine_spec_json.hpp"

namespace {

bool is_within_limits(const tandem::MachineSpec& spec) {
  return spec.vcpu_count >= 1 && spec.vcpu_count <= tandem::kMaxVcpus && spec.memory_bytes >= tandem::kMinMemoryBytes &&
         spec.memory_bytes <= tandem::kMaxMemoryBytes && spec.memory_bytes % tandem::kMemoryUnitBytes == 0 &&
         spec.boot.cmdline.size() < tandem::kMaxCmdlineBytes && !spec.name.empty() &&
         spec.disks.size() + spec.nets.size() <= tandem::kMaxVirtioDevices;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const auto spec = tandem::machine_spec_from_json({reinterpret_cast<const char*>(bytes), size});
  if (!spec) {
    if (spec.error().message().empty() || spec.error().message().find('\n') != std::string::npos) {
      std::abort();
    }
    return 0;
  }
  const auto again = tandem::machine_spec_from_json(tandem::to_json(*spec));
  if (!is_within_limits(*spec) || !again || *again != *spec || !tandem::differences(*spec, *again).empty()) {
    std::abort();
  }
  static_cast<void>(tandem::differences(*spec, tandem::HostOffer{}));
  return 0;
}
