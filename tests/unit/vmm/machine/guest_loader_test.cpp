// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/guest_loader.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/memory_file.hpp"
#include "tests/unit/vmm/boot/image_samples.hpp"

namespace tandem {
namespace {

namespace samples = boot::samples;

MachineSpec least_machine(const std::string& kernel, const std::string& initrd = "") {
  MachineSpec spec;
  spec.boot.kernel = kernel;
  spec.boot.initrd = initrd;
  spec.memory_bytes = kMinMemoryBytes;
  return spec;
}

TEST(GuestLoaderTest, AKernelThatFitsIsTaken) {
  const fakes::MemoryFile kernel(samples::image());
  EXPECT_TRUE(GuestLoader::create(least_machine(kernel.path())));
}

TEST(GuestLoaderTest, AKernelThatDoesNotFitIsRefusedBeforeThereIsAMachine) {
  const fakes::MemoryFile kernel(samples::image({.image_size_bytes = kMinMemoryBytes}));
  const auto loader = GuestLoader::create(least_machine(kernel.path()));
  ASSERT_FALSE(loader);
  EXPECT_EQ(loader.error().code(), Errc::kOutOfRange);
}

TEST(GuestLoaderTest, AnInitrdThatDoesNotFitBesideItsKernelIsRefusedBeforeThereIsAMachine) {
  const fakes::MemoryFile kernel(samples::image({.image_size_bytes = kMinMemoryBytes / 2}));
  const fakes::MemoryFile initrd(std::string(kMinMemoryBytes / 2, 'i'));
  const auto loader = GuestLoader::create(least_machine(kernel.path(), initrd.path()));
  ASSERT_FALSE(loader);
  EXPECT_EQ(loader.error().code(), Errc::kOutOfRange);
}

TEST(GuestLoaderTest, AKernelThatTheCpuCannotRunIsRefusedByItsName) {
  constexpr uint64_t kWithout4k = 0xf0000000;  // ID_AA64MMFR0_EL1.TGran4
  const fakes::MemoryFile kernel(samples::image());
  const auto loader = GuestLoader::create(least_machine(kernel.path()));
  EXPECT_TRUE(loader->require_cpu_fits(0));
  const auto fits = loader->require_cpu_fits(kWithout4k);
  ASSERT_FALSE(fits);
  EXPECT_TRUE(fits.error().message().starts_with("kernel " + kernel.path() + ": ")) << fits.error().message();
}

}  // namespace
}  // namespace tandem
