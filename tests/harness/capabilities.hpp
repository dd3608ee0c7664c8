// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tandem::tests {

/// What the machine that runs the tests can do. A test that needs more skips itself and says so; a test that
/// needs no more may not.
struct Capabilities {
  std::string where;         ///< For messages: `testbed max, GICv3, stock`.
  unsigned gic_version = 3;  ///< Of the guest: the only one that the host's interrupt controller supports.
  bool sve = false;
  bool pauth = false;
  bool pmu = false;
  unsigned page_size_bytes = 4096;
};

/// The row of the testbed that this program runs in, or what a machine with KVM of its own says about itself.
/// @errors  ends the program when the environment names a testbed that the table does not have.
const Capabilities& capabilities();

}  // namespace tandem::tests
