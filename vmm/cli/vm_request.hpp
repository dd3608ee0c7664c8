// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace tandem::cli {

/// What `tandem list` and the commands for a running VM are asked to do.
struct VmRequest {
  std::string command{};  ///< As on the command line.
  std::string name{};     ///< Of the VM; empty for `list`.
  bool json = false;
  bool force = false;                                   ///< stop: whatever the guest says.
  std::optional<std::chrono::seconds> timeout{};        ///< stop.
  std::optional<uint64_t> target_bytes{};               ///< balloon: what the guest is to give up; else only look.
  std::string device = "uart0";                         ///< console.
  std::string directory{};                              ///< save: where to.
  std::string base{};                                   ///< save: the snapshot to differ from; empty: none.
  bool replace = false;                                 ///< save: also what is there already.
  bool stop = false;                                    ///< save: the VM does not go on.
  bool freeze = false;                                  ///< save: with file systems that the agent has frozen.
  std::string address{};                                ///< migrate: of the receiver.
  std::optional<std::chrono::milliseconds> downtime{};  ///< migrate.
  bool check = false;                                   ///< migrate: only ask whether it could.
  bool verify = false;                                  ///< migrate: compare all RAM.
  bool compress = false;                                ///< migrate: by zstd.
  /// migrate: what is asked of one that is under way.
  enum class OfMigration : uint8_t { kStart, kStatus, kCancel };
  OfMigration of_migration = OfMigration::kStart;
  bool operator==(const VmRequest&) const = default;
};

}  // namespace tandem::cli
