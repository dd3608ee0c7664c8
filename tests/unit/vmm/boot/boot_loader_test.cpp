// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/boot_loader.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/memory_file.hpp"
#include "tests/unit/vmm/boot/image_samples.hpp"
#include "vmm/lib/guest_memory/guest_ram.hpp"

namespace tandem::boot {
namespace {

constexpr GuestRange kRam = GuestRange::fixed(0x4000'0000, 32U << 20);

samples::Bytes bytes_at(const GuestMemory& memory, GuestAddr addr, size_t size_bytes) {
  samples::Bytes bytes(size_bytes);
  EXPECT_TRUE(memory.read(addr, bytes));
  return bytes;
}

TEST(BootLoaderTest, EveryPartArrivesWhereTheLayoutSays) {
  const samples::Bytes kernel_bytes = samples::image({.file_bytes = 300'001, .image_size_bytes = 1U << 20});
  const samples::Bytes fdt = samples::noise(999);
  const fakes::MemoryFile kernel_file(kernel_bytes);
  const fakes::MemoryFile initrd_file("initrd bytes");
  const auto kernel = load_kernel_image(kernel_file.path());
  const auto initrd = load_initrd(initrd_file.path(), kRam.size());
  const auto ram = GuestRam::create_anonymous(kRam);
  ASSERT_TRUE(kernel && initrd && ram);
  const GuestMemory memory({{kRam, ram->bytes()}});

  const auto layout = place_boot_parts(kRam, boot_sizes(*kernel, &*initrd, fdt.size()));
  ASSERT_TRUE(layout);
  ASSERT_TRUE(load_boot_parts(memory, *layout, *kernel, &*initrd, fdt));

  EXPECT_EQ(bytes_at(memory, layout->kernel.base(), kernel_bytes.size()), kernel_bytes);
  EXPECT_EQ(bytes_at(memory, layout->initrd->base(), 12), samples::text("initrd bytes"));
  EXPECT_EQ(bytes_at(memory, layout->fdt.base(), fdt.size()), fdt);
}

TEST(BootLoaderTest, ASecondLoadGivesTheSameAfterTheGuestWroteOverIt) {
  const samples::Bytes kernel_bytes = samples::image();
  const fakes::MemoryFile file(kernel_bytes);
  const auto kernel = load_kernel_image(file.path());
  const auto ram = GuestRam::create_anonymous(kRam);
  ASSERT_TRUE(kernel && ram);
  const GuestMemory memory({{kRam, ram->bytes()}});
  const auto layout = place_boot_parts(kRam, boot_sizes(*kernel, nullptr));
  ASSERT_TRUE(layout && load_boot_parts(memory, *layout, *kernel, nullptr, {}));

  ASSERT_TRUE(memory.write(layout->kernel.base(), samples::Bytes(kernel_bytes.size())));
  ASSERT_TRUE(load_boot_parts(memory, *layout, *kernel, nullptr, {}));
  EXPECT_EQ(bytes_at(memory, layout->kernel.base(), kernel_bytes.size()), kernel_bytes);
}

TEST(BootLoaderTest, ALogOfWritesHasEveryPart) {
  const samples::Bytes fdt = samples::noise(999);
  const fakes::MemoryFile kernel_file(samples::image());
  const fakes::MemoryFile initrd_file("initrd bytes");
  const auto kernel = load_kernel_image(kernel_file.path());
  const auto initrd = load_initrd(initrd_file.path(), kRam.size());
  const auto ram = GuestRam::create_anonymous(kRam);
  ASSERT_TRUE(kernel && initrd && ram);
  GuestMemory memory({{kRam, ram->bytes()}});
  const auto layout = place_boot_parts(kRam, boot_sizes(*kernel, &*initrd, fdt.size()));
  constexpr size_t kPage = 4096;
  DirtyBitmap log(kRam, kPage);
  memory.log_writes(&log);

  ASSERT_TRUE(layout && load_boot_parts(memory, *layout, *kernel, &*initrd, fdt));

  for (const GuestAddr part : {layout->kernel.base(), layout->initrd->base(), layout->fdt.base()}) {
    EXPECT_TRUE(log.is_marked(kRam.offset_of(part) / kPage)) << part.value();
  }
}

}  // namespace
}  // namespace tandem::boot
