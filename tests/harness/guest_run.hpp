// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/harness/child_process.hpp"

namespace tandem::tests {

/// One boot of a payload of tests/guest.
struct PayloadBoot {
  std::string payload = {};  ///< `hello` for hello.c.
  std::string cmdline = {};
  unsigned vcpu_count = 1;
  unsigned memory_mib = 64;
  std::vector<std::string> options = {};  ///< More options of `tandem run`.
};

/// The path of a payload's image, in the build of tests/guest beside that of the test program.
std::string payload_image(const std::string& payload);

/// The command that boots the payload, its console on the standard streams.
std::vector<std::string> run_command(const PayloadBoot& boot);

/// What a payload said about itself.
struct GuestReport {
  unsigned passed = 0;
  std::vector<std::string> failures;
  std::vector<std::string> skips;
  std::optional<int> exit;  ///< From its `EXIT n` line.
};

/// Reads the report lines in what came from the guest's console.
GuestReport parse_report(const std::string& console);

/// The rest of each line that starts with `word` and a space: `values_of("SEED", …)`.
std::vector<std::string> values_of(const std::string& word, const std::string& console);

}  // namespace tandem::tests
