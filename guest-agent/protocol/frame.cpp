// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/protocol/frame.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace tandem::agent {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied to the wire as they are");

struct FrameHeader {
  uint32_t length;
  uint8_t kind;
  std::array<uint8_t, 3> zero;
};
static_assert(sizeof(FrameHeader) == 8);

size_t longest_payload(FrameKind kind) { return kind == FrameKind::kMessage ? kMaxMessageBytes : kMaxStreamBytes; }

Result<void> check(const FrameHeader& header) {
  const auto kind = static_cast<FrameKind>(header.kind);
  if (kind < FrameKind::kMessage || kind > FrameKind::kCredit || header.zero != std::array<uint8_t, 3>{}) {
    return fail(Errc::kCorrupt, "not a frame of the agent's protocol");
  }
  if (header.length > longest_payload(kind)) {
    return fail(Errc::kCorrupt, "a frame of {} bytes; at most {} are allowed", header.length, longest_payload(kind));
  }
  return {};
}

}  // namespace

void append_frame(std::vector<std::byte>& out, FrameKind kind, std::span<const std::byte> payload) {
  TANDEM_ASSERT(payload.size() <= longest_payload(kind), "senders cut what they send");
  const FrameHeader header{static_cast<uint32_t>(payload.size()), static_cast<uint8_t>(kind), {}};
  const auto header_bytes = std::as_bytes(std::span(&header, 1));
  out.insert(out.end(), header_bytes.begin(), header_bytes.end());
  out.insert(out.end(), payload.begin(), payload.end());
}

void FrameDecoder::append(std::span<const std::byte> bytes) {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(taken_));
  taken_ = 0;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

Result<std::optional<Frame>> FrameDecoder::next() {
  const auto rest = std::span(buffer_).subspan(taken_);
  FrameHeader header{};
  if (rest.size() < sizeof header) {
    return std::nullopt;
  }
  std::memcpy(&header, rest.data(), sizeof header);
  TANDEM_TRY(check(header));
  if (rest.size() - sizeof header < header.length) {
    return std::nullopt;
  }
  const auto payload = rest.subspan(sizeof header, header.length);
  taken_ += sizeof header + header.length;
  return Frame{static_cast<FrameKind>(header.kind), {payload.begin(), payload.end()}};
}

Result<uint32_t> credit_of(const Frame& frame) {
  uint32_t size_bytes = 0;
  if (frame.kind != FrameKind::kCredit || frame.payload.size() != sizeof size_bytes) {
    return fail(Errc::kCorrupt, "a malformed grant of credit");
  }
  std::memcpy(&size_bytes, frame.payload.data(), sizeof size_bytes);
  return size_bytes;
}

std::vector<std::byte> credit_payload(uint32_t size_bytes) {
  const auto bytes = std::as_bytes(std::span(&size_bytes, 1));
  return {bytes.begin(), bytes.end()};
}

}  // namespace tandem::agent
