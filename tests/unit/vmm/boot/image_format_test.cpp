// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/image_format.hpp"

#include <gtest/gtest.h>

#include "tests/unit/vmm/boot/image_samples.hpp"

namespace tandem::boot {
namespace {

TEST(Arm64ImageHeaderTest, FieldsAreRead) {
  const auto header = parse_arm64_image(samples::image({.text_offset = 0x80000, .image_size_bytes = 0x1234000}));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->text_offset, 0x80000U);
  EXPECT_EQ(header->image_size_bytes, 0x1234000U);
  EXPECT_FALSE(header->big_endian);
  EXPECT_EQ(header->page_kib, 4U);
}

TEST(Arm64ImageHeaderTest, FlagsGiveEndiannessAndPageSize) {
  const auto header = parse_arm64_image(samples::image({.flags = 0x1 | (0x3 << 1)}));
  ASSERT_TRUE(header);
  EXPECT_TRUE(header->big_endian);
  EXPECT_EQ(header->page_kib, 64U);
}

TEST(Arm64ImageHeaderTest, WithoutImageSizeTheOldTextOffsetHolds) {
  // A big-endian kernel from before 3.17 wrote its text_offset in its own byte order.
  const auto header = parse_arm64_image(samples::image({.text_offset = 0x00000800'00000000, .image_size_bytes = 0}));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->text_offset, 0x80000U);
  EXPECT_EQ(header->image_size_bytes, 0U);
}

TEST(Arm64ImageHeaderTest, AShortFileHasNone) {
  samples::Bytes bytes = samples::image();
  bytes.resize(63);
  EXPECT_FALSE(parse_arm64_image(bytes));
  EXPECT_FALSE(parse_arm64_image({}));
}

TEST(ZbootHeaderTest, FieldsAreRead) {
  const auto header = parse_zboot(samples::zboot("zstd22", samples::Bytes(100)));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->payload_offset, 0x1000U);
  EXPECT_EQ(header->payload_size_bytes, 100U);
  EXPECT_EQ(header->compression, "zstd22");
}

TEST(ZbootHeaderTest, ACompressionNameIsMadePrintable) {
  EXPECT_EQ(parse_zboot(samples::zboot("ab\n\x1b[2J", {}))->compression, "ab");
}

TEST(PeFileExtentTest, TheEndOfTheLastSectionCounts) {
  samples::Bytes bytes(4096);
  samples::put_pe(bytes, 0xaa64, 0x5000);
  EXPECT_EQ(pe_file_extent(bytes), 0x5000U);
}

TEST(PeFileExtentTest, ASectionTableBeyondTheStartIsNotRead) {
  samples::Bytes bytes(4096);
  samples::put_pe(bytes, 0xaa64, 0x5000);
  samples::put<uint16_t>(bytes, 0x46, 0xffff);
  EXPECT_FALSE(pe_file_extent(bytes));
}

TEST(PeFileExtentTest, APeOffsetBeyondTheStartIsNotFollowed) {
  samples::Bytes bytes(4096);
  samples::put_pe(bytes, 0xaa64, 0x5000);
  samples::put<uint32_t>(bytes, 0x3c, 0xffffffff);
  EXPECT_FALSE(pe_file_extent(bytes));
}

struct Foreign {
  const char* name;
  samples::Bytes head;
  const char* expected;
};

samples::Bytes bzimage() {
  samples::Bytes bytes = samples::text_at(0, "MZ");
  samples::put_text(bytes, 0x1fe, "\x55\xaa");
  samples::put_text(bytes, 0x202, "HdrS");
  return bytes;
}

samples::Bytes pe(uint16_t machine) {
  samples::Bytes bytes(4096);
  samples::put_pe(bytes, machine, 0x1000);
  return bytes;
}

class DescribeFormatTest : public testing::TestWithParam<Foreign> {};

TEST_P(DescribeFormatTest, ContentGivesTheName) { EXPECT_EQ(describe_format(GetParam().head), GetParam().expected); }

INSTANTIATE_TEST_SUITE_P(
    Formats, DescribeFormatTest,
    testing::Values(Foreign{"ElfX86", samples::elf(2, 1, 62), "a 64-bit ELF file for x86-64"},
                    Foreign{"ElfArm64", samples::elf(2, 1, 183), "a 64-bit ELF file for arm64"},
                    Foreign{"ElfI386", samples::elf(1, 1, 3), "a 32-bit ELF file for x86"},
                    Foreign{"ElfBigEndian", samples::elf(2, 2, 0x1600), "a 64-bit ELF file for s390"},
                    Foreign{"ElfUnknown", samples::elf(2, 1, 0x1234), "a 64-bit ELF file for machine 4660"},
                    Foreign{"ElfCutOff",
                            samples::text("\x7f"
                                          "ELF\x02"),
                            "a cut-off ELF file"},
                    Foreign{"BzImage", bzimage(), "an x86 bzImage"},
                    Foreign{"Zboot", samples::zboot("xz", {}), "an EFI zboot Image"},
                    Foreign{"Gzip", samples::text("\x1f\x8b\x08"), "gzip-compressed"},
                    Foreign{"Zstd", samples::text("\x28\xb5\x2f\xfd"), "zstd-compressed"},
                    Foreign{"Xz", samples::text({"\xfd\x37\x7a\x58\x5a\0", 6}), "xz-compressed"},
                    Foreign{"Lz4", samples::text("\x04\x22\x4d\x18"), "lz4-compressed"},
                    Foreign{"Bzip2", samples::text("BZh91AY"), "bzip2-compressed"},
                    Foreign{"UImage", samples::text("\x27\x05\x19\x56"), "a uImage"},
                    Foreign{"Android", samples::text("ANDROID!"), "an Android boot image"},
                    Foreign{"Initrd", samples::text("07070100"), "a cpio archive (an initrd?)"},
                    Foreign{"ZImage", samples::text_at(0x24, "\x18\x28\x6f\x01"), "a 32-bit Arm zImage"},
                    Foreign{"RiscvImage", samples::text_at(0x38, "RSC\x05"), "a RISC-V Image"},
                    Foreign{"Ext4", samples::text_at(0x438, "\x53\xef"), "an ext file system"},
                    Foreign{"EfiX86", pe(0x8664), "an EFI program for x86-64"},
                    Foreign{"EfiArm64", pe(0xaa64), "an EFI program for arm64 with no arm64 Image header"},
                    Foreign{"EfiUnknown", pe(1), "an EFI program"},
                    Foreign{"Dos", samples::text_at(0, "MZ"), "a DOS or EFI program"},
                    Foreign{"Text", samples::text("#!/bin/sh\necho caf\xc3\xa9\n"), "a text file"},
                    Foreign{"Zeros", samples::Bytes(4096), ""}, Foreign{"OneByte", samples::Bytes(1), ""},
                    Foreign{"Nothing", {}, ""}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace tandem::boot
