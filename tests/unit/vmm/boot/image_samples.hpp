// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/lib/bits/bits.hpp"

/// Kernel files made up for tests.
namespace tandem::boot::samples {

using Bytes = std::vector<std::byte>;

inline void put_text(Bytes& bytes, size_t offset, std::string_view text) {
  std::memcpy(bytes.data() + offset, text.data(), text.size());
}

template <typename T>
void put(Bytes& bytes, size_t offset, T value) {
  store_le<T>(std::span(bytes).subspan(offset), value);
}

/// Bytes that do not compress to nothing, and differ from place to place.
inline Bytes noise(size_t size_bytes) {
  Bytes bytes(size_bytes);
  uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 28);
  }
  return bytes;
}

struct ImageFields {
  size_t file_bytes = 8192;
  uint64_t text_offset = 0;
  uint64_t image_size_bytes = 65536;
  uint64_t flags = 0xa;
};

/// An arm64 Image: header, then noise.
inline Bytes image(ImageFields fields = {}) {
  Bytes bytes = noise(fields.file_bytes);
  put<uint64_t>(bytes, 0x00, 0x14000000'91005a4dULL);
  put<uint64_t>(bytes, 0x08, fields.text_offset);
  put<uint64_t>(bytes, 0x10, fields.image_size_bytes);
  put<uint64_t>(bytes, 0x18, fields.flags);
  put_text(bytes, 0x38, "ARM\x64");
  put<uint32_t>(bytes, 0x3c, 0x40);
  return bytes;
}

inline Bytes gzipped(const Bytes& plain) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  Bytes out(deflateBound(&stream, plain.size()));
  Bytes in = plain;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline Bytes zstd_compressed(const Bytes& plain) {
  Bytes out(ZSTD_compressBound(plain.size()));
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  out.resize(ZSTD_compress2(context, out.data(), out.size(), plain.data(), plain.size()));
  ZSTD_freeCCtx(context);
  return out;
}

/// An EFI zboot image around `payload`.
inline Bytes zboot(std::string_view compression, const Bytes& payload) {
  constexpr size_t kPayloadOffset = 0x1000;
  Bytes bytes(kPayloadOffset);
  put_text(bytes, 0, "MZ");
  put_text(bytes, 4, "zimg");
  put<uint32_t>(bytes, 8, kPayloadOffset);
  put<uint32_t>(bytes, 12, static_cast<uint32_t>(payload.size()));
  put_text(bytes, 0x18, compression);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  bytes.resize(bytes.size() + 512);
  return bytes;
}

/// A PE header at 0x40 with one section that ends at `extent`.
inline void put_pe(Bytes& bytes, uint16_t machine, uint32_t extent) {
  put_text(bytes, 0, "MZ");
  put<uint32_t>(bytes, 0x3c, 0x40);
  put_text(bytes, 0x40, std::string_view("PE\0\0", 4));
  put<uint16_t>(bytes, 0x44, machine);
  put<uint16_t>(bytes, 0x46, 1);     // sections
  put<uint16_t>(bytes, 0x54, 0xa0);  // optional header
  const size_t section = 0x58 + 0xa0;
  put<uint32_t>(bytes, section + 16, extent - 0x200);
  put<uint32_t>(bytes, section + 20, 0x200);
}

inline Bytes joined(Bytes first, const Bytes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

inline Bytes first_bytes(const Bytes& bytes, size_t count) {
  return {bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count)};
}

inline Bytes bytes_from(const Bytes& bytes, size_t offset) {
  return {bytes.begin() + static_cast<ptrdiff_t>(offset), bytes.end()};
}

inline Bytes text(std::string_view content) {
  const auto raw = std::as_bytes(std::span(content));
  return {raw.begin(), raw.end()};
}

/// `content` at `offset` in a file of zeros.
inline Bytes text_at(size_t offset, std::string_view content) {
  Bytes bytes(4096);
  put_text(bytes, offset, content);
  return bytes;
}

/// An ELF header. `width`: 1 or 2 for 32 or 64 bits; `endianness`: 1 or 2 for little or big.
inline Bytes elf(uint8_t width, uint8_t endianness, uint16_t machine) {
  Bytes bytes = text_at(0,
                        "\x7f"
                        "ELF");
  put<uint8_t>(bytes, 4, width);
  put<uint8_t>(bytes, 5, endianness);
  put<uint16_t>(bytes, 18, machine);
  return bytes;
}

}  // namespace tandem::boot::samples
