// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/paged_out_memory.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>

#include "tests/harness/child_process.hpp"

namespace tandem::tests {
namespace {

constexpr const char* kSwapFile = "/tmp/tandem-swap";

struct Mapping {
  uint64_t first = 0;
  uint64_t end = 0;
};

Mapping largest_mapping(pid_t process) {
  Mapping largest;
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    char dash = 0;
    std::string access;
    if (std::istringstream(line) >> std::hex >> mapping.first >> dash >> mapping.end >> access &&
        access.starts_with("rw") && mapping.end - mapping.first > largest.end - largest.first) {
      largest = mapping;
    }
  }
  return largest;
}

}  // namespace

SwapArea::SwapArea() {
  const std::string file = kSwapFile;
  ChildProcess setup({"sh", "-c",
                      "set -e; dd if=/dev/zero of=" + file +
                          " bs=1M count=64 2>/dev/null; device=$(losetup -f); losetup "
                          "\"$device\" " +
                          file + "; mkswap \"$device\" >/dev/null; swapon \"$device\"; printf %s \"$device\""});
  if (setup.wait() == 0) {
    device_ = setup.output();
  } else {
    error_ = "no swap area: " + setup.errors();
  }
}

SwapArea::~SwapArea() {
  if (!device_.empty()) {
    ChildProcess removal({"sh", "-c", "swapoff " + device_ + "; losetup -d " + device_});
    static_cast<void>(removal.wait());
  }
  ::unlink(kSwapFile);
}

std::unique_ptr<PagedOutMemory> PagedOutMemory::of(pid_t process) {
  const Mapping mapping = largest_mapping(process);
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!pidfd || mapping.end == 0) {
    return nullptr;
  }
  std::unique_ptr<PagedOutMemory> made(new PagedOutMemory(std::move(pidfd), reinterpret_cast<void*>(mapping.first),
                                                          static_cast<size_t>(mapping.end - mapping.first)));
  if (!made->page_out()) {
    return nullptr;
  }
  made->thread_ = std::thread([self = made.get()] {
    while (!self->stop_ && self->page_out()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  return made;
}

PagedOutMemory::PagedOutMemory(UniqueFd process, void* first, size_t size_bytes)
    : process_(std::move(process)), first_(first), size_bytes_(size_bytes) {}

PagedOutMemory::~PagedOutMemory() {
  stop_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
}

bool PagedOutMemory::page_out() {
  const iovec range{.iov_base = first_, .iov_len = size_bytes_};
  return ::syscall(SYS_process_madvise, process_.get(), &range, 1UL, MADV_PAGEOUT, 0U) >= 0;
}

}  // namespace tandem::tests
