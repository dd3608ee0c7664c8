// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/kernel_image.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/memory_file.hpp"
#include "tests/unit/vmm/boot/image_samples.hpp"

namespace tandem::boot {
namespace {

using Container = KernelImage::Container;
using fakes::MemoryFile;
using samples::bytes_from;
using samples::first_bytes;

samples::Bytes content(const SealedImage& image) {
  samples::Bytes bytes(image.size());
  EXPECT_TRUE(image.copy_to(bytes));
  return bytes;
}

samples::Bytes small() { return samples::image(); }
// More than one piece of output, and no multiple of it.
samples::Bytes large() { return samples::image({.file_bytes = 700'001, .image_size_bytes = 1U << 20}); }
samples::Bytes with_junk() { return samples::image({.file_bytes = 700'001, .image_size_bytes = 600'000}); }

struct GoodKernel {
  const char* name;
  samples::Bytes file;
  samples::Bytes kernel;
  Container container;
};

class KernelImageTest : public testing::TestWithParam<GoodKernel> {};

TEST_P(KernelImageTest, ImageIsFoundByContent) {
  const MemoryFile file(GetParam().file);
  const auto kernel = load_kernel_image(file.path());
  ASSERT_TRUE(kernel) << kernel.error().message();
  EXPECT_EQ(kernel->container, GetParam().container);
  EXPECT_EQ(kernel->header, *parse_arm64_image(GetParam().kernel));
  EXPECT_EQ(content(kernel->image), GetParam().kernel);
}

INSTANTIATE_TEST_SUITE_P(
    Containers, KernelImageTest,
    testing::Values(
        GoodKernel{"Plain", small(), small(), Container::kImage},
        GoodKernel{"PlainLarge", large(), large(), Container::kImage},
        GoodKernel{"PlainWithJunkBehind", with_junk(), first_bytes(with_junk(), 600'000), Container::kImage},
        GoodKernel{"Gzip", samples::gzipped(small()), small(), Container::kGzip},
        GoodKernel{"GzipLarge", samples::gzipped(large()), large(), Container::kGzip},
        GoodKernel{"GzipWithJunkBehind", samples::joined(samples::gzipped(large()), samples::text("junk")), large(),
                   Container::kGzip},
        GoodKernel{"GzipWithOneByteBehind", samples::joined(samples::gzipped(large()), samples::Bytes(1)), large(),
                   Container::kGzip},
        GoodKernel{"GzipOfTwoMembers",
                   samples::joined(samples::gzipped(first_bytes(large(), 300'000)),
                                   samples::gzipped(bytes_from(large(), 300'000))),
                   large(), Container::kGzip},
        GoodKernel{"GzipOfImageWithJunkBehind", samples::gzipped(with_junk()), first_bytes(with_junk(), 600'000),
                   Container::kGzip},
        GoodKernel{"ZbootGzip", samples::zboot("gzip", samples::gzipped(large())), large(), Container::kZboot},
        GoodKernel{"ZbootZstd", samples::zboot("zstd", samples::zstd_compressed(large())), large(), Container::kZboot},
        GoodKernel{"ZbootZstd22", samples::zboot("zstd22", samples::zstd_compressed(small())), small(),
                   Container::kZboot},
        GoodKernel{"ZbootZstdWithSizeBehind",
                   samples::zboot("zstd", samples::joined(samples::zstd_compressed(large()), samples::Bytes(4))),
                   large(), Container::kZboot}),
    [](const auto& row) { return row.param.name; });

struct BadKernel {
  const char* name;
  samples::Bytes file;
  Errc code;
  const char* text;  ///< What follows "kernel PATH: "; a '+' at its end stands for the accepted formats.
};

class KernelImageErrorTest : public testing::TestWithParam<BadKernel> {};

TEST_P(KernelImageErrorTest, FileIsRefusedWithTheReason) {
  const MemoryFile file(GetParam().file);
  const auto kernel = load_kernel_image(file.path());
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code(), GetParam().code);
  std::string text = GetParam().text;
  if (text.ends_with('+')) {
    text.replace(text.size() - 1, 1, "; accepted are an arm64 Image, a gzip'd Image and an EFI zboot Image");
  }
  EXPECT_EQ(kernel.error().message(), "kernel " + file.path() + ": " + text);
}

samples::Bytes without_magic() {
  samples::Bytes bytes = small();
  samples::put<uint32_t>(bytes, 0x38, 0);
  samples::put<uint16_t>(bytes, 0, 0);
  return bytes;
}

samples::Bytes zboot_with_payload_at(uint32_t offset, uint32_t size_bytes) {
  samples::Bytes bytes = samples::zboot("gzip", samples::gzipped(small()));
  samples::put<uint32_t>(bytes, 8, offset);
  samples::put<uint32_t>(bytes, 12, size_bytes);
  bytes.resize(8192);
  return bytes;
}

samples::Bytes with_pe_extent(uint32_t extent) {
  samples::Bytes bytes = small();
  samples::put_pe(bytes, 0xaa64, extent);
  return bytes;
}

INSTANTIATE_TEST_SUITE_P(
    Files, KernelImageErrorTest,
    testing::Values(
        BadKernel{"Empty", {}, Errc::kInvalidArgument, "is empty"},
        BadKernel{"OneByte", samples::Bytes(1), Errc::kInvalidArgument, "no arm64 Image header+"},
        BadKernel{"NoMagic", without_magic(), Errc::kInvalidArgument, "no arm64 Image header+"},
        BadKernel{"Text", samples::text("hello\n"), Errc::kInvalidArgument, "this is a text file+"},
        BadKernel{"Elf", samples::elf(2, 1, 62), Errc::kInvalidArgument, "this is a 64-bit ELF file for x86-64+"},
        BadKernel{"Xz", samples::text({"\xfd\x37\x7a\x58\x5a\0", 6}), Errc::kInvalidArgument, "this is xz-compressed+"},
        BadKernel{"PlainCutOff", with_pe_extent(8704), Errc::kCorrupt, "cut off: 8192 of 8704 bytes"},
        BadKernel{"GzipOfElf", samples::gzipped(samples::elf(2, 1, 183)), Errc::kInvalidArgument,
                  "inside its gzip data: this is a 64-bit ELF file for arm64+"},
        BadKernel{"GzipOfNothing", samples::gzipped({}), Errc::kInvalidArgument, "inside its gzip data: nothing+"},
        BadKernel{"GzipCutOff", first_bytes(samples::gzipped(large()), 100'000), Errc::kCorrupt,
                  "its gzip data ends early"},
        BadKernel{"GzipHeaderOnly", samples::text("\x1f\x8b\x08"), Errc::kCorrupt, "its gzip data ends early"},
        BadKernel{"GzipOfCutOffImage", samples::gzipped(with_pe_extent(8704)), Errc::kCorrupt,
                  "inside its gzip data: cut off: 8192 of 8704 bytes"},
        BadKernel{"ZbootXz", samples::zboot("xzkern", samples::Bytes(64)), Errc::kUnsupported,
                  "this is an EFI zboot Image compressed with 'xzkern'; supported are gzip and zstd"},
        BadKernel{"ZbootPayloadBeyondEnd", zboot_with_payload_at(0x1000, 0x1001), Errc::kCorrupt,
                  "cut off: 8192 of 8193 bytes"},
        BadKernel{"ZbootPayloadFarAway", zboot_with_payload_at(UINT32_MAX, UINT32_MAX), Errc::kCorrupt,
                  "cut off: 8192 of 8589934590 bytes"},
        BadKernel{"ZbootWithoutPayload", zboot_with_payload_at(0x1000, 0), Errc::kCorrupt, "its gzip data ends early"},
        BadKernel{"ZbootZstdCutOff", samples::zboot("zstd", first_bytes(samples::zstd_compressed(large()), 50'000)),
                  Errc::kCorrupt, "its zstd data ends early"},
        BadKernel{"ZbootOfText", samples::zboot("zstd", samples::zstd_compressed(samples::text("hello"))),
                  Errc::kInvalidArgument, "EFI zboot Image: its payload: this is a text file+"}),
    [](const auto& row) { return row.param.name; });

samples::Bytes damaged(samples::Bytes bytes) {
  bytes[bytes.size() / 2] ^= std::byte{0x10};
  return bytes;
}

TEST(KernelImageDamageTest, ADamagedGzipFileIsFound) {
  const MemoryFile file(damaged(samples::gzipped(large())));
  EXPECT_EQ(load_kernel_image(file.path()).error().code(), Errc::kCorrupt);
}

TEST(KernelImageDamageTest, ADamagedZstdPayloadIsFound) {
  const MemoryFile file(samples::zboot("zstd", damaged(samples::zstd_compressed(large()))));
  EXPECT_EQ(load_kernel_image(file.path()).error().code(), Errc::kCorrupt);
}

TEST(KernelImageLimitTest, AKernelOfExactlyTheLimitIsLoaded) {
  const MemoryFile plain(large());
  const MemoryFile gzip(samples::gzipped(large()));
  EXPECT_TRUE(load_kernel_image(plain.path(), 700'001));
  EXPECT_TRUE(load_kernel_image(gzip.path(), 700'001));
}

TEST(KernelImageLimitTest, APlainKernelBeyondTheLimitIsRefused) {
  const MemoryFile file(large());
  const auto kernel = load_kernel_image(file.path(), 700'000);
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().message(), "kernel " + file.path() + ": more than the 683.5 KiB that a kernel may have");
}

TEST(KernelImageLimitTest, ACompressedKernelBeyondTheLimitIsRefused) {
  const MemoryFile file(samples::gzipped(large()));
  EXPECT_EQ(load_kernel_image(file.path(), 700'000).error().code(), Errc::kOutOfRange);
}

TEST(KernelImageLimitTest, WhatFollowsACompressedImageIsBoundedToo) {
  const MemoryFile file(samples::gzipped(samples::image({.file_bytes = 4U << 20, .image_size_bytes = 4096})));
  EXPECT_TRUE(load_kernel_image(file.path(), 2U << 20));
  EXPECT_EQ(load_kernel_image(file.path(), (2U << 20) - 1).error().code(), Errc::kOutOfRange);
}

TEST(KernelImageFootprintTest, BssCountsAndAnOldHeaderDoesNotShrinkIt) {
  const MemoryFile with_bss(small());
  const MemoryFile old(samples::image({.image_size_bytes = 0}));
  EXPECT_EQ(load_kernel_image(with_bss.path())->footprint_bytes(), 65536U);
  EXPECT_EQ(load_kernel_image(old.path())->footprint_bytes(), 8192U);
}

TEST(InitrdTest, AnyContentIsLoadedWhole) {
  const MemoryFile file("x");
  const auto initrd = load_initrd(file.path(), 1);
  ASSERT_TRUE(initrd);
  EXPECT_EQ(content(*initrd), samples::text("x"));
}

TEST(InitrdTest, AnEmptyFileIsRefused) {
  const MemoryFile file("");
  EXPECT_EQ(load_initrd(file.path(), 4096).error().message(), "initrd " + file.path() + ": is empty");
}

TEST(InitrdTest, MoreThanRamIsRefusedBeforeItIsRead) {
  const MemoryFile file("");
  ASSERT_EQ(::ftruncate(file.fd(), off_t{1} << 40), 0);
  EXPECT_EQ(load_initrd(file.path(), 256U << 20).error().message(),
            "initrd " + file.path() + ": its 1024 GiB do not fit into 256 MiB of RAM");
}

}  // namespace
}  // namespace tandem::boot
