// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/bus/fdt_node.hpp"
#include "vmm/boot/boot_loader.hpp"
#include "vmm/lib/sealed_image/sealed_image.hpp"
#include "vmm/machine/machine_spec.hpp"

namespace tandem {

/// What a reset loads: an image, and what it is.
struct BootImage {
  std::string role;  ///< "kernel" or "initrd".
  SealedImage image;
};

/// The same, owned by somebody else.
struct BootImageView {
  std::string_view role;
  const SealedImage* image;
};

/// Puts a guest into RAM at every reset: kernel and initrd as they were when the machine started, and a device tree with
/// fresh seeds.
class GuestLoader {
 public:
  /// Reads and checks the images.
  /// @errors  as the files are; one line that names the file. Errc::kOutOfRange: they do not fit into the guest's RAM.
  static Result<GuestLoader> create(const MachineSpec& spec);

  /// Takes the images that another loader had; no file is opened.
  /// @errors  Errc::kCorrupt: they are not one kernel and at most one initrd. Errc::kOutOfRange: as above.
  static Result<GuestLoader> create(const MachineSpec& spec, std::vector<BootImage> images);

  /// The images as another loader may be given them.
  [[nodiscard]] std::vector<BootImageView> images() const;

  /// Refuses a kernel that cannot run on the vCPUs. @param id_aa64mmfr0  ID_AA64MMFR0_EL1 as the guest reads it.
  /// @errors  Errc::kUnsupported; one line that names the file.
  [[nodiscard]] Result<void> require_cpu_fits(uint64_t id_aa64mmfr0) const;

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
  GuestLoader(BootSpec spec, boot::KernelImage kernel, std::optional<SealedImage> initrd)
      : spec_(std::move(spec)), kernel_(std::move(kernel)), initrd_(std::move(initrd)) {}
  [[nodiscard]] Result<void> check_fit(uint64_t memory_bytes) const;
  [[nodiscard]] Result<Plan> plan(const devices::FdtNode& hardware, GuestRange ram) const;
  [[nodiscard]] const SealedImage* initrd() const { return initrd_ ? &*initrd_ : nullptr; }

  BootSpec spec_;
  boot::KernelImage kernel_;
  std::optional<SealedImage> initrd_;
};

}  // namespace tandem
