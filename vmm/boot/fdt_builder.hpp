// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/bus/fdt_node.hpp"
#include "vmm/lib/checked_range/checked_range.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::boot {

/// The blob of the tree under `root`; the same tree gives the same bytes.
/// @pre     `root` has an empty name; node and property names are as the Devicetree Specification allows.
/// @errors  Errc::kOutOfRange: more than `kMaxFdtBytes`.
Result<std::vector<std::byte>> build_fdt(const devices::FdtNode& root);

/// Random numbers that a guest starts from; drawn anew for every reset.
struct BootSeeds {
  std::array<std::byte, 64> rng;
  uint64_t kaslr;

  /// Fresh ones from the host.
  static Result<BootSeeds> draw();
};

/// What `/chosen` says.
struct ChosenSpec {
  std::string_view cmdline;
  std::string_view stdout_path;  ///< Empty: none.
  BootSeeds seeds;
  std::optional<GuestRange> initrd;
};

/// Sets the initrd's place in a tree whose `/chosen` was made with one; its size in bytes stays the same.
/// @pre  build_fdt() made `blob`.
void set_initrd_range(std::vector<std::byte>& blob, GuestRange initrd);

/// The node `/chosen`. @spec Devicetree Specification v0.4, "/chosen Node"; Linux binding "chosen".
devices::FdtNode make_chosen_node(const ChosenSpec& spec);

}  // namespace tandem::boot
