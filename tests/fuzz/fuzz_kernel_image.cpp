// SPDX-License-Identifier: Apache-2.0
// A kernel file of any content is loaded or refused, within the bound that was given.
#include "vmm/boot/kernel_image.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "vmm/lib/unique_fd/unique_fd.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  constexpr uint64_t kMaxBytes = 1U << 20;
  static const tandem::UniqueFd file(::memfd_create("kernel", MFD_CLOEXEC));
  if (::ftruncate(file.get(), 0) != 0 || ::pwrite(file.get(), bytes, size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  const auto kernel = tandem::boot::load_kernel_image("/proc/self/fd/" + std::to_string(file.get()), kMaxBytes);
  if (kernel ? kernel->image.size() > kMaxBytes : kernel.error().message().empty()) {
    std::abort();
  }
  return 0;
}
