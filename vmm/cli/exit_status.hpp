// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tandem::cli {

/// What the process ends with; part of the command-line interface.
enum ExitStatus : int {
  kExitSuccess = 0,       ///< The guest powered itself off, or the command did its work.
  kExitFailure = 1,       ///< Something on the host failed.
  kExitUsage = 2,         ///< The command line or the configuration makes no sense; nothing else was opened.
  kExitGuestCrashed = 3,  ///< The guest reported a panic, or KVM could not go on with it.
};

}  // namespace tandem::cli
