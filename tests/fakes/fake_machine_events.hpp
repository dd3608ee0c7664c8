// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "vmm/vcpu/exit_dispatcher.hpp"

namespace tandem {

/// Records what vCPUs and devices ask of the machine.
class FakeMachineEvents final : public MachineEvents {
 public:
  void on_system_off() override { ++offs; }
  void on_system_reset(const SystemResetExit& reset) override { resets.push_back(reset); }
  void on_crash(std::string reason) override { crashes.push_back(std::move(reason)); }

  void on_quit() override { ++quits; }

  int offs = 0;
  int quits = 0;
  std::vector<SystemResetExit> resets;
  std::vector<std::string> crashes;
};

}  // namespace tandem
