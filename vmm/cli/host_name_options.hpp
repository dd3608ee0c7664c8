// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "vmm/cli/host_names.hpp"
#include "vmm/lib/log/log.hpp"
#include "vmm/lib/result/result.hpp"

namespace CLI {
class App;
}

namespace tandem::cli {

/// The options by which the user names what a machine from elsewhere is connected to on this host.
class HostNameOptions {
 public:
  /// @pre outlives what `app` parses.
  void add_to(CLI::App& app);
  /// @errors  Errc::kInvalidArgument: a value is not of its option's form.
  [[nodiscard]] Result<HostNames> names() const;
  [[nodiscard]] Result<log::Level> log_level() const;

 private:
  std::string name_;
  std::vector<std::string> disks_;
  std::vector<std::string> nets_;
  std::string vsock_;
  std::string console_;
  std::string hvc_;
  std::string log_level_;
};

}  // namespace tandem::cli
