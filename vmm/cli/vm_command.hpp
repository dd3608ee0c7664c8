// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "vmm/cli/vm_request.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::cli {

/// Does what is asked for. Says on stderr why if that fails. @return the exit status.
int run(const VmRequest& request);

/// The path of the vsock device's socket of the VM called `name`.
/// @errors  Errc::kNotFound: no such VM, or it has no vsock device.
Result<std::string> find_vsock(const std::string& name);

}  // namespace tandem::cli
