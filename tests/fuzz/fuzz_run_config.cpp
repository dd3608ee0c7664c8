// SPDX-License-Identifier: Apache-2.0
// A configuration file of any content makes a request within the limits, or one line that says why not.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "vmm/cli/config_file.hpp"
#include "vmm/cli/run_options.hpp"

namespace {

using tandem::Result;

Result<tandem::cli::RunRequest> request_of(std::string_view json) {
  const tandem::cli::GivenOptions given = TANDEM_TRY(tandem::cli::parse_config(json, "config"));
  return tandem::cli::make_run_request(given);
}

bool is_within_limits(const tandem::MachineSpec& spec) {
  return spec.vcpu_count >= 1 && spec.vcpu_count <= tandem::kMaxVcpus && spec.memory_bytes >= tandem::kMinMemoryBytes &&
         spec.memory_bytes <= tandem::kMaxMemoryBytes && spec.memory_bytes % tandem::kMemoryUnitBytes == 0 &&
         !spec.boot.kernel.empty() && spec.boot.cmdline.size() < tandem::kMaxCmdlineBytes && !spec.name.empty() &&
         spec.disks.size() + spec.nets.size() <= tandem::kMaxVirtioDevices;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const auto request = request_of({reinterpret_cast<const char*>(bytes), size});
  if (request ? !is_within_limits(request->spec) : request.error().message().empty()) {
    std::abort();
  }
  return 0;
}
