// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/guest_loader.hpp"

#include "vmm/boot/cpu_fit.hpp"
#include "vmm/boot/fdt_builder.hpp"
#include "vmm/machine/board_layout.hpp"

namespace tandem {
namespace {

constexpr std::string_view kKernelRole = "kernel";
constexpr std::string_view kInitrdRole = "initrd";

}  // namespace

Result<GuestLoader> GuestLoader::create(const MachineSpec& spec) {
  boot::KernelImage kernel = TANDEM_TRY(boot::load_kernel_image(spec.boot.kernel));
  std::optional<SealedImage> initrd;
  if (!spec.boot.initrd.empty()) {
    initrd = TANDEM_TRY(boot::load_initrd(spec.boot.initrd, spec.memory_bytes));
  }
  GuestLoader loader(spec.boot, std::move(kernel), std::move(initrd));
  TANDEM_TRY(loader.check_fit(spec.memory_bytes));
  return loader;
}

Result<GuestLoader> GuestLoader::create(const MachineSpec& spec, std::vector<BootImage> images) {
  std::optional<boot::KernelImage> kernel;
  std::optional<SealedImage> initrd;
  for (auto& [role, image] : images) {
    if (role == kKernelRole && !kernel) {
      kernel = TANDEM_TRY(boot::kernel_image_of(std::move(image)));
    } else if (role == kInitrdRole && !initrd) {
      initrd = std::move(image);
    } else {
      return fail(Errc::kCorrupt, "boot images: '{}' is unknown, or there twice", role);
    }
  }
  if (!kernel) {
    return fail(Errc::kCorrupt, "boot images: there is no kernel");
  }
  GuestLoader loader(spec.boot, *std::move(kernel), std::move(initrd));
  TANDEM_TRY(loader.check_fit(spec.memory_bytes));
  return loader;
}

std::vector<BootImageView> GuestLoader::images() const {
  std::vector<BootImageView> images{{.role = kKernelRole, .image = &kernel_.image}};
  if (initrd_) {
    images.push_back({.role = kInitrdRole, .image = &*initrd_});
  }
  return images;
}

Result<void> GuestLoader::check_fit(uint64_t memory_bytes) const {
  constexpr uint64_t kLeastFdtBytes = 1;  // its size is known once all devices are there
  const auto ram = GuestRange::create(board::kRamBase, memory_bytes);
  TANDEM_ASSERT(ram.has_value(), "the command line checked the size");
  TANDEM_TRY(boot::place_boot_parts(*ram, boot::boot_sizes(kernel_, initrd(), kLeastFdtBytes)));
  return {};
}

Result<void> GuestLoader::require_cpu_fits(uint64_t id_aa64mmfr0) const {
  return with_context(boot::require_cpu_fits(kernel_.header, id_aa64mmfr0), "kernel " + spec_.kernel);
}

Result<GuestLoader::Plan> GuestLoader::plan(const devices::FdtNode& hardware, GuestRange ram) const {
  const boot::BootSeeds seeds = TANDEM_TRY(boot::BootSeeds::draw());
  const std::string console = "/" + devices::fdt_unit_name("serial", board::kUart.base());
  devices::FdtNode root = hardware;
  root.add_child(boot::make_chosen_node({.cmdline = spec_.cmdline,
                                         .stdout_path = console,
                                         .seeds = seeds,
                                         .initrd = initrd_ ? std::optional(ram) : std::nullopt}));
  std::vector<std::byte> tree = TANDEM_TRY(boot::build_fdt(root));
  // The initrd's place depends on the size of the tree, which does not depend on the place.
  const boot::BootLayout layout =
      TANDEM_TRY(boot::place_boot_parts(ram, boot::boot_sizes(kernel_, initrd(), tree.size())));
  if (layout.initrd) {
    boot::set_initrd_range(tree, *layout.initrd);
  }
  return Plan{layout, std::move(tree)};
}

Result<std::vector<std::byte>> GuestLoader::device_tree(const devices::FdtNode& hardware, GuestRange ram) const {
  return TANDEM_TRY(plan(hardware, ram)).device_tree;
}

Result<boot::BootRegisters> GuestLoader::load(const devices::FdtNode& hardware, GuestRange ram,
                                              const GuestMemory& memory) const {
  const Plan made = TANDEM_TRY(plan(hardware, ram));
  TANDEM_TRY(boot::load_boot_parts(memory, made.layout, kernel_, initrd(), made.device_tree));
  return boot::boot_registers(made.layout);
}

}  // namespace tandem
