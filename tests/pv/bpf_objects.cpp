// SPDX-License-Identifier: Apache-2.0
#include "tests/pv/bpf_objects.hpp"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace tandem::tests {
namespace {

int count_ids(bpf_cmd next_id) {
  int count = 0;
  for (__u32 id = 0;; ++count) {
    bpf_attr attributes;
    std::memset(&attributes, 0, sizeof(attributes));
    attributes.start_id = id;
    if (syscall(SYS_bpf, next_id, &attributes, sizeof(attributes)) != 0) {
      return errno == ENOENT ? count : -1;
    }
    id = attributes.next_id;
  }
}

std::vector<int> descriptors() {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    found.push_back(std::stoi(entry.path().filename()));
  }
  std::erase_if(found, [](int fd) { return fcntl(fd, F_GETFD) < 0; });  // the iterator's own
  return found;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const BpfObjects& objects) {
  return out << objects.programs << " programs, " << objects.maps << " maps, " << objects.links << " links";
}

BpfObjects count_bpf_objects() {
  return {.programs = count_ids(BPF_PROG_GET_NEXT_ID),
          .maps = count_ids(BPF_MAP_GET_NEXT_ID),
          .links = count_ids(BPF_LINK_GET_NEXT_ID)};
}

BpfObjects settled_bpf_objects() {
  constexpr int kEqualCounts = 100;
  BpfObjects found = count_bpf_objects();
  for (int equal = 0; equal < kEqualCounts;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const BpfObjects now = count_bpf_objects();
    equal = now == found ? equal + 1 : 0;
    found = now;
  }
  return found;
}

BpfObjects await_bpf_objects(const BpfObjects& wanted) {
  BpfObjects found = count_bpf_objects();
  for (int attempt = 0; attempt < 6000 && !(found == wanted); ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    found = count_bpf_objects();
  }
  return found;
}

int count_descriptors() { return static_cast<int>(descriptors().size()); }

int count_descriptors_without_cloexec() {
  std::vector<int> found = descriptors();
  std::erase_if(found, [](int fd) { return (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0; });
  return static_cast<int>(found.size());
}

}  // namespace tandem::tests
