// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/checksum/checksum.hpp"

#include <xxhash.h>

#include <cstring>

#include "vmm/lib/result/result.hpp"

namespace tandem {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::array<std::byte, Checksum::kBytes> Checksum::bytes() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, {.low64 = low, .high64 = high});
  std::array<std::byte, kBytes> bytes{};
  static_assert(sizeof canonical.digest == sizeof bytes);
  std::memcpy(bytes.data(), canonical.digest, sizeof bytes);
  return bytes;
}

Checksum Checksum::from_bytes(std::span<const std::byte, kBytes> bytes) {
  XXH128_canonical_t canonical;
  std::memcpy(canonical.digest, bytes.data(), sizeof canonical.digest);
  const XXH128_hash_t hash = XXH128_hashFromCanonical(&canonical);
  return {.high = hash.high64, .low = hash.low64};
}

std::string Checksum::text() const {
  std::string text;
  for (const std::byte byte : bytes()) {
    text += kDigits[std::to_integer<size_t>(byte >> 4)];
    text += kDigits[std::to_integer<size_t>(byte & std::byte{0xF})];
  }
  return text;
}

std::optional<Checksum> Checksum::from_text(std::string_view text) {
  if (text.size() != kTextLength) {
    return std::nullopt;
  }
  std::array<std::byte, kBytes> bytes{};
  for (size_t index = 0; index < text.size(); ++index) {
    const size_t digit = kDigits.find(text[index]);
    if (digit == std::string_view::npos) {
      return std::nullopt;
    }
    bytes[index / 2] = bytes[index / 2] << 4 | static_cast<std::byte>(digit);
  }
  return from_bytes(bytes);
}

Checksum checksum_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {.high = hash.high64, .low = hash.low64};
}

ChecksumStream::ChecksumStream() : state_(XXH3_createState()) {
  TANDEM_ASSERT(state_ != nullptr, "running out of memory ends the process before");
  XXH3_128bits_reset(state_.get());
}

void ChecksumStream::append(std::span<const std::byte> bytes) {
  if (!bytes.empty()) {
    XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }
}

Checksum ChecksumStream::checksum() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return {.high = hash.high64, .low = hash.low64};
}

void ChecksumStream::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

}  // namespace tandem
