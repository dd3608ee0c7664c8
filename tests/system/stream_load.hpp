// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vmm/lib/unique_fd/unique_fd.hpp"

/// What both ends of a test of streams do, whatever kind of socket they have. Each function returns why it failed, or
/// nothing.
namespace tandem::tests {

/// Sends as many bytes over every stream, all streams at once, ends their input, and compares what comes back.
std::string exchange(const std::vector<UniqueFd>& streams, uint64_t size_bytes);

/// Accepts `count` streams at `listener`, and sends back on each what comes on it, until its end.
std::string echo(int listener, size_t count);

/// Allows this process as many descriptors as it may have.
void raise_descriptor_limit();

}  // namespace tandem::tests
