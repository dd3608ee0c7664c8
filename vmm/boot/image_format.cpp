// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/image_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "vmm/lib/bits/bits.hpp"

namespace tandem::boot {
namespace {

// Offsets in the arm64 Image header.
constexpr size_t kTextOffsetAt = 0x08;
constexpr size_t kImageSizeAt = 0x10;
constexpr size_t kFlagsAt = 0x18;
constexpr size_t kMagicAt = 0x38;
constexpr size_t kArm64HeaderBytes = 0x40;
constexpr std::string_view kArm64Magic = "ARM\x64";
constexpr uint64_t kOldTextOffset = 0x80000;

// Offsets in the EFI zboot header.
constexpr size_t kZimgAt = 0x04;
constexpr size_t kPayloadOffsetAt = 0x08;
constexpr size_t kPayloadSizeAt = 0x0c;
constexpr size_t kCompressionAt = 0x18;
constexpr size_t kCompressionBytes = 0x20;

// Sizes and offsets in a PE file (Microsoft PE Format, "COFF File Header" and "Section Table").
constexpr size_t kCoffHeaderBytes = 20;
constexpr size_t kSectionCountAt = 2;
constexpr size_t kOptionalHeaderSizeAt = 16;
constexpr size_t kSectionBytes = 40;
constexpr size_t kRawSizeAt = 16;
constexpr size_t kRawPointerAt = 20;

using Bytes = std::span<const std::byte>;

bool has_text_at(Bytes head, size_t offset, std::string_view text) {
  return head.size() >= offset + text.size() && std::memcmp(head.data() + offset, text.data(), text.size()) == 0;
}

uint16_t load_u16(Bytes bytes, bool big_endian) {
  const auto value = load_le<uint16_t>(bytes);
  return big_endian ? __builtin_bswap16(value) : value;
}

std::string_view elf_machine_name(unsigned machine) {
  switch (machine) {
    case 3:
      return "x86";
    case 8:
      return "MIPS";
    case 20:
      return "32-bit PowerPC";
    case 21:
      return "PowerPC";
    case 22:
      return "s390";
    case 40:
      return "32-bit Arm";
    case 62:
      return "x86-64";
    case 183:
      return "arm64";
    case 243:
      return "RISC-V";
    case 258:
      return "LoongArch";
    default:
      return {};
  }
}

std::string describe_elf(Bytes head) {
  constexpr size_t kClassAt = 4;
  constexpr size_t kEndianAt = 5;
  constexpr size_t kMachineAt = 18;
  if (head.size() < kMachineAt + 2) {
    return "a cut-off ELF file";
  }
  const std::string_view width = head[kClassAt] == std::byte{1} ? "32-bit" : "64-bit";
  const unsigned machine = load_u16(head.subspan(kMachineAt), head[kEndianAt] == std::byte{2});
  const std::string_view name = elf_machine_name(machine);
  return name.empty() ? fmt::format("a {} ELF file for machine {}", width, machine)
                      : fmt::format("a {} ELF file for {}", width, name);
}

/// Where the COFF header of a PE file starts, behind the signature.
std::optional<size_t> coff_offset(Bytes head) {
  constexpr size_t kPeOffsetAt = 0x3c;
  constexpr std::string_view kSignature("PE\0\0", 4);
  if (!has_text_at(head, 0, "MZ") || head.size() < kPeOffsetAt + 4) {
    return std::nullopt;
  }
  const size_t pe_offset = load_le<uint32_t>(head.subspan(kPeOffsetAt));
  if (!has_text_at(head, pe_offset, kSignature) || head.size() < pe_offset + kSignature.size() + kCoffHeaderBytes) {
    return std::nullopt;
  }
  return pe_offset + kSignature.size();
}

std::string describe_pe(Bytes head) {
  const auto coff = coff_offset(head);
  if (!coff) {
    return "a DOS or EFI program";
  }
  switch (load_le<uint16_t>(head.subspan(*coff))) {
    case 0x014c:
      return "an EFI program for x86";
    case 0x8664:
      return "an EFI program for x86-64";
    case 0x01c2:
      return "an EFI program for 32-bit Arm";
    case 0x5064:
      return "an EFI program for RISC-V";
    case 0x6264:
      return "an EFI program for LoongArch";
    case 0xaa64:
      return "an EFI program for arm64 with no arm64 Image header";
    default:
      return "an EFI program";
  }
}

struct Magic {
  size_t offset;
  std::string_view bytes;
  std::string_view name;
};

constexpr std::array kMagics{
    Magic{0, "\x1f\x8b\x08", "gzip-compressed"},
    Magic{0, "\x28\xb5\x2f\xfd", "zstd-compressed"},
    Magic{0, std::string_view("\xfd\x37\x7a\x58\x5a\0", 6), "xz-compressed"},
    Magic{0, "\x04\x22\x4d\x18", "lz4-compressed"},
    Magic{0, "\x02\x21\x4c\x18", "lz4-compressed (old format)"},
    Magic{0, "BZh", "bzip2-compressed"},
    Magic{0, "\x89LZO", "lzop-compressed"},
    Magic{0, std::string_view("\x5d\0\0", 3), "lzma-compressed"},
    Magic{0, "\x27\x05\x19\x56", "a uImage"},
    Magic{0, "\xd0\x0d\xfe\xed", "a device tree or FIT image"},
    Magic{0, "ANDROID!", "an Android boot image"},
    Magic{0, "070701", "a cpio archive (an initrd?)"},
    Magic{0, "070702", "a cpio archive (an initrd?)"},
    Magic{0, "hsqs", "a squashfs image"},
    Magic{0, "QFI\xfb", "a qcow2 disk image"},
    Magic{0x24, "\x18\x28\x6f\x01", "a 32-bit Arm zImage"},
    Magic{0x38, "RSC\x05", "a RISC-V Image"},
    Magic{0x438, "\x53\xef", "an ext file system"},
};

bool is_text(Bytes head) {
  constexpr size_t kProbeBytes = 512;
  return !head.empty() && std::ranges::all_of(head.first(std::min(head.size(), kProbeBytes)), [](std::byte byte) {
    const auto c = static_cast<unsigned char>(byte);
    return c == '\t' || c == '\n' || c == '\r' || c == '\f' || (c >= 0x20 && c != 0x7f);
  });
}

bool is_x86_bzimage(Bytes head) { return has_text_at(head, 0x1fe, "\x55\xaa") && has_text_at(head, 0x202, "HdrS"); }

}  // namespace

std::optional<Arm64ImageHeader> parse_arm64_image(Bytes head) {
  if (head.size() < kArm64HeaderBytes || !has_text_at(head, kMagicAt, kArm64Magic)) {
    return std::nullopt;
  }
  Arm64ImageHeader header;
  header.image_size_bytes = load_le<uint64_t>(head.subspan(kImageSizeAt));
  if (header.image_size_bytes == 0) {
    header.text_offset = kOldTextOffset;
    return header;
  }
  header.text_offset = load_le<uint64_t>(head.subspan(kTextOffsetAt));
  const auto flags = load_le<uint64_t>(head.subspan(kFlagsAt));
  header.big_endian = bit_field(flags, 0, 0) != 0;
  constexpr std::array<unsigned, 4> kPageKib{0, 4, 16, 64};
  header.page_kib = kPageKib[bit_field(flags, 2, 1)];
  return header;
}

std::optional<uint64_t> pe_file_extent(Bytes head) {
  const auto coff = coff_offset(head);
  if (!coff) {
    return std::nullopt;
  }
  const size_t section_count = load_le<uint16_t>(head.subspan(*coff + kSectionCountAt));
  const size_t first = *coff + kCoffHeaderBytes + load_le<uint16_t>(head.subspan(*coff + kOptionalHeaderSizeAt));
  if (first + section_count * kSectionBytes > head.size()) {
    return std::nullopt;
  }
  uint64_t extent = 0;
  for (size_t index = 0; index < section_count; ++index) {
    const Bytes section = head.subspan(first + index * kSectionBytes, kSectionBytes);
    const uint64_t raw_size = load_le<uint32_t>(section.subspan(kRawSizeAt));
    extent = std::max(extent, load_le<uint32_t>(section.subspan(kRawPointerAt)) + raw_size);
  }
  return extent;
}

std::optional<ZbootHeader> parse_zboot(Bytes head) {
  if (head.size() < kCompressionAt + kCompressionBytes || !has_text_at(head, 0, "MZ") ||
      !has_text_at(head, kZimgAt, "zimg")) {
    return std::nullopt;
  }
  ZbootHeader header;
  header.payload_offset = load_le<uint32_t>(head.subspan(kPayloadOffsetAt));
  header.payload_size_bytes = load_le<uint32_t>(head.subspan(kPayloadSizeAt));
  for (const std::byte byte : head.subspan(kCompressionAt, kCompressionBytes)) {
    const auto c = static_cast<char>(byte);
    if (c < 0x21 || c > 0x7e) {
      break;
    }
    header.compression.push_back(c);
  }
  return header;
}

bool is_gzip(Bytes head) { return has_text_at(head, 0, "\x1f\x8b\x08"); }

std::string describe_format(Bytes head) {
  if (has_text_at(head, 0,
                  "\x7f"
                  "ELF")) {
    return describe_elf(head);
  }
  if (is_x86_bzimage(head)) {
    return "an x86 bzImage";
  }
  if (parse_zboot(head)) {
    return "an EFI zboot Image";
  }
  for (const Magic& magic : kMagics) {
    if (has_text_at(head, magic.offset, magic.bytes)) {
      return std::string(magic.name);
    }
  }
  if (has_text_at(head, 0, "MZ")) {
    return describe_pe(head);
  }
  return is_text(head) ? "a text file" : std::string();
}

}  // namespace tandem::boot
