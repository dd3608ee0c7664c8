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

/// A loader's images as they arrive somewhere else.
std::vector<BootImage> copies_of(const GuestLoader& loader) {
  std::vector<BootImage> copies;
  for (const auto& [role, image] : loader.images()) {
    std::vector<std::byte> bytes(image->size());
    EXPECT_TRUE(image->copy_to(bytes));
    auto writer = SealedImageWriter::create("copy").value();
    EXPECT_TRUE(writer.append(bytes));
    copies.push_back({.role = std::string(role), .image = std::move(writer).seal().value()});
  }
  return copies;
}

class GuestLoaderImagesTest : public ::testing::Test {
 protected:
  const fakes::MemoryFile kernel_{samples::image()};
  const fakes::MemoryFile initrd_{std::string(100, 'i')};
  const MachineSpec spec_ = least_machine(kernel_.path(), initrd_.path());
  std::vector<BootImage> images_ = copies_of(GuestLoader::create(spec_).value());
  const MachineSpec elsewhere_ = least_machine("/nonexistent/kernel", "/nonexistent/initrd");
};

TEST_F(GuestLoaderImagesTest, GivenImagesNeedNoFiles) {
  const auto loader = GuestLoader::create(elsewhere_, std::move(images_));
  ASSERT_TRUE(loader) << loader.error().message();
  ASSERT_EQ(loader->images().size(), 2U);
  EXPECT_EQ(loader->images()[0].role, "kernel");
  EXPECT_EQ(loader->images()[1].role, "initrd");
  EXPECT_EQ(loader->images()[1].image->size(), 100U);
}

TEST_F(GuestLoaderImagesTest, WithoutAKernelTheyAreRefused) {
  images_.erase(images_.begin());
  EXPECT_EQ(GuestLoader::create(elsewhere_, std::move(images_)).error().message(), "boot images: there is no kernel");
}

TEST_F(GuestLoaderImagesTest, AnImageThatIsThereTwiceIsRefused) {
  images_.push_back(std::move(copies_of(GuestLoader::create(spec_).value()).back()));
  EXPECT_EQ(GuestLoader::create(elsewhere_, std::move(images_)).error().message(),
            "boot images: 'initrd' is unknown, or there twice");
}

TEST_F(GuestLoaderImagesTest, AKernelThatIsNoneIsRefused) {
  std::swap(images_[0].image, images_[1].image);
  EXPECT_EQ(GuestLoader::create(elsewhere_, std::move(images_)).error().code(), Errc::kCorrupt);
}

TEST_F(GuestLoaderImagesTest, ImagesThatDoNotFitAreRefused) {
  const fakes::MemoryFile large(samples::image({.image_size_bytes = kMinMemoryBytes}));
  MachineSpec spec = least_machine(large.path());
  spec.memory_bytes *= 2;
  auto images = copies_of(GuestLoader::create(spec).value());
  EXPECT_EQ(GuestLoader::create(elsewhere_, std::move(images)).error().code(), Errc::kOutOfRange);
}

}  // namespace
}  // namespace tandem
