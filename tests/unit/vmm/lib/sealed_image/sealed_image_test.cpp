// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/sealed_image/sealed_image.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/fakes/memory_file.hpp"
#include "tests/unit/vmm/boot/image_samples.hpp"

namespace tandem {
namespace {

namespace samples = boot::samples;

Result<SealedImage> sealed(std::span<const std::byte> bytes) {
  SealedImageWriter writer = TANDEM_TRY(SealedImageWriter::create("test"));
  TANDEM_TRY(writer.append(bytes));
  return std::move(writer).seal();
}

TEST(SealedImageTest, NobodyCanChangeIt) {
  const auto image = sealed(samples::noise(4096));
  ASSERT_TRUE(image);
  constexpr int kWanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  EXPECT_EQ(::fcntl(image->fd(), F_GET_SEALS) & kWanted, kWanted);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, image->fd(), 0), MAP_FAILED);
}

TEST(SealedImageTest, APartIsCopiedFromItsOffset) {
  const samples::Bytes bytes = samples::noise(300'000);
  const auto image = sealed(bytes);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->size(), 300'000U);
  samples::Bytes part(1000);
  ASSERT_TRUE(image->copy_to(part, 299'000));
  EXPECT_EQ(part, samples::bytes_from(bytes, 299'000));
}

// More than two huge pages, and not a whole number of them.
constexpr uint64_t kManyBytes = (5U << 20) + 12'345;

Result<SealedImage> sealed_after_expecting(std::span<const std::byte> bytes, uint64_t expected_bytes) {
  SealedImageWriter writer = TANDEM_TRY(SealedImageWriter::create("test"));
  writer.expect(expected_bytes);
  TANDEM_TRY(writer.append(bytes));
  return std::move(writer).seal();
}

off_t file_size(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 ? status.st_size : -1;
}

class ExpectedSizeTest : public testing::TestWithParam<uint64_t> {};

TEST_P(ExpectedSizeTest, WhatWasExpectedDoesNotShowInTheImage) {
  const samples::Bytes bytes = samples::noise(kManyBytes);
  const auto image = sealed_after_expecting(bytes, GetParam());
  ASSERT_TRUE(image);
  EXPECT_EQ(image->size(), kManyBytes);
  EXPECT_EQ(file_size(image->fd()), static_cast<off_t>(kManyBytes));
  samples::Bytes copy(kManyBytes);
  ASSERT_TRUE(image->copy_to(copy));
  EXPECT_TRUE(copy == bytes);
}

INSTANTIATE_TEST_SUITE_P(All, ExpectedSizeTest,
                         testing::Values(uint64_t{0}, uint64_t{1}, uint64_t{3} << 20, kManyBytes, uint64_t{32} << 20),
                         testing::PrintToStringParamName());

TEST(SealedImageTest, NothingOfWhatWasExpectedIsAnEmptyImage) {
  const auto image = sealed_after_expecting({}, kManyBytes);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->size(), 0U);
  EXPECT_EQ(file_size(image->fd()), 0);
  EXPECT_TRUE(image->copy_to({}));
}

TEST(SealedImageTest, PartsOfAFileAreAppendedInOrder) {
  const fakes::MemoryFile source("0123456789");
  const auto file = RegularFile::open("initrd", source.path());
  auto writer = SealedImageWriter::create("test");
  ASSERT_TRUE(file && writer);
  ASSERT_TRUE(writer->append(samples::text("ab")));
  ASSERT_TRUE(writer->append_file(*file, 3, 4));
  const auto image = std::move(*writer).seal();
  ASSERT_TRUE(image);
  samples::Bytes bytes(image->size());
  ASSERT_TRUE(image->copy_to(bytes));
  EXPECT_EQ(bytes, samples::text("ab3456"));
}

TEST(SealedImageTest, AFileThatBecameShorterIsAnError) {
  const fakes::MemoryFile source("0123456789");
  const auto file = RegularFile::open("initrd", source.path());
  auto writer = SealedImageWriter::create("test");
  ASSERT_TRUE(file && writer);
  ASSERT_EQ(::ftruncate(source.fd(), 4), 0);
  EXPECT_EQ(writer->append_file(*file, 0, 10).error().message(),
            "initrd " + source.path() + ": became shorter while it was read");
}

TEST(SealedImageTest, AFileWithoutSpliceIsRead) {
  // Files of the kernel's own file systems have no length and are not spliced from.
  const auto file = RegularFile::open("initrd", "/proc/self/cmdline");
  auto writer = SealedImageWriter::create("test");
  ASSERT_TRUE(file && writer);
  EXPECT_TRUE(writer->append_file(*file, 0, 1));
  EXPECT_EQ(writer->size(), 1U);
}

}  // namespace
}  // namespace tandem
