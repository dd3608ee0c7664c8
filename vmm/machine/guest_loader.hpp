// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "devices/bus/fdt_node.hpp"
#include "vmm/boot/boot_loader.hpp"
#include "vmm/machine/machine_spec.hpp"

namespace tandem {

/// Puts a guest into RAM at every reset: kernel and initrd as they were when the machine started, and a device tree with
/// fresh seeds.
class GuestLoader {
 public:
  /// Reads and checks the images.
  /// @errors  as the files are; one line that names the file. Errc::kOutOfRange: they do not fit into the guest's RAM.
  static Result<GuestLoader> create(const MachineSpec& spec);

  /// The device tree that the next `load` would write, but for its seeds. @param hardware  the root node without /chosen.
  [[nodiscard]] Result<std::vector<std::byte>> device_tree(const devices::FdtNode& hardware, GuestRange ram) const;

  /// Writes all parts to `ram`.
  /// @pre     no vCPU runs; `memory` holds `ram` as one region.
  /// @errors  Errc::kOutOfRange: they do not fit; nothing is written then.
  /// @return  how the first vCPU is to start.
  Result<boot::BootRegisters> load(const devices::FdtNode& hardware, GuestRange ram, const GuestMemory& memory) const;

 private:
  struct Plan {
    boot::BootLayout layout;
    std::vector<std::byte> device_tree;
  };
  GuestLoader(std::string cmdline, boot::KernelImage kernel, std::optional<boot::SealedImage> initrd)
      : cmdline_(std::move(cmdline)), kernel_(std::move(kernel)), initrd_(std::move(initrd)) {}
  [[nodiscard]] Result<void> check_fit(uint64_t memory_bytes) const;
  [[nodiscard]] Result<Plan> plan(const devices::FdtNode& hardware, GuestRange ram) const;
  [[nodiscard]] const boot::SealedImage* initrd() const { return initrd_ ? &*initrd_ : nullptr; }

  std::string cmdline_;
  boot::KernelImage kernel_;
  std::optional<boot::SealedImage> initrd_;
};

}  // namespace tandem
