// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>

namespace tandem::tests {

/// How many BPF objects the kernel has, of all processes.
struct BpfObjects {
  int programs = 0;
  int maps = 0;
  int links = 0;
  friend bool operator==(const BpfObjects&, const BpfObjects&) = default;
};

std::ostream& operator<<(std::ostream& out, const BpfObjects& objects);

/// Counts them by their ids. @pre CAP_SYS_ADMIN.
BpfObjects count_bpf_objects();

/// Counts them when the kernel is done with those that nobody uses any more: a program's loader leaves some for a while.
BpfObjects settled_bpf_objects();

/// Waits until there are as many as `wanted`: the kernel frees them some time after the last descriptor is closed.
/// @return  how many there are; not `wanted` if they did not come to that within a minute.
BpfObjects await_bpf_objects(const BpfObjects& wanted);

/// Open descriptors of this process: all, and those that a program which it starts would inherit.
int count_descriptors();
int count_descriptors_without_cloexec();

}  // namespace tandem::tests
