// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// What the first bytes of a file say that it is. Names of files say nothing: a kernel is called anything.
namespace tandem::boot {

/// How much of a file's start the functions here want to see; less is fine when the file is shorter.
inline constexpr size_t kSniffBytes = 4096;

/// The header of an arm64 `Image`, as far as a boot loader needs it.
/// @spec  Linux Documentation/arch/arm64/booting.rst, "Call the kernel image".
struct Arm64ImageHeader {
  uint64_t text_offset = 0;       ///< Distance of the image from a 2 MiB boundary [bytes].
  uint64_t image_size_bytes = 0;  ///< With BSS, from the image's start; 0: kernels before 3.17 do not say.
  bool big_endian = false;        ///< The kernel switches itself over: it is entered little-endian all the same.
  unsigned page_kib = 0;          ///< Page size that the kernel was built for: 4, 16, 64, or 0 for not said.
  bool operator==(const Arm64ImageHeader&) const = default;
};

/// Where an EFI zboot image keeps the compressed Image.
struct ZbootHeader {
  uint64_t payload_offset = 0;
  uint64_t payload_size_bytes = 0;
  std::string compression;  ///< As the file names it; printable.
};

/// The header, if `head` starts an arm64 `Image`. Kernels that give no size (before 3.17) give no valid text_offset
/// either; theirs is 0x80000.
std::optional<Arm64ImageHeader> parse_arm64_image(std::span<const std::byte> head);

/// How long a file must be to hold all sections that its PE header lists, if `head` starts a PE file: Images that can be
/// started by EFI have such a header, which shows when a download was cut off.
std::optional<uint64_t> pe_file_extent(std::span<const std::byte> head);

/// The header, if `head` starts an EFI zboot image.
std::optional<ZbootHeader> parse_zboot(std::span<const std::byte> head);

bool is_gzip(std::span<const std::byte> head);

/// What else `head` starts, for people: "an x86 bzImage", "a 64-bit ELF file for x86-64"; empty when nothing known.
std::string describe_format(std::span<const std::byte> head);

}  // namespace tandem::boot
