// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/migration_stream.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "vmm/lib/bits/bits.hpp"
#include "vmm/lib/checksum/checksum.hpp"

namespace tandem::migration {
namespace {

/// What each side says before its first message.
struct Preamble {
  std::array<char, 12> magic;
  uint32_t version;
  std::array<char, 16> architecture;
};
static_assert(sizeof(Preamble) == 32);
constexpr Preamble kOurs{.magic = {'T', 'A', 'N', 'D', 'E', 'M', 'M', 'I', 'G', '\r', '\n', 0},
                         .version = kProtocolVersion,
                         .architecture = {'a', 'a', 'r', 'c', 'h', '6', '4'}};

// Header of a message, little-endian: checksum of all that follows it, then four words.
constexpr size_t kTypeOffset = Checksum::kBytes;
constexpr size_t kLengthOffset = kTypeOffset + 4;
constexpr size_t kSequenceOffset = kTypeOffset + 8;
constexpr size_t kReservedOffset = kTypeOffset + 12;
constexpr size_t kHeaderBytes = kTypeOffset + 16;

/// Memory that is taken at once for bytes that are to come.
constexpr size_t kReadStepBytes = 1U << 20;

/// So many bytes of gathered messages are sent at once: most chunks of RAM are small.
constexpr size_t kGatheredBytes = 256U << 10;

/// Room for tags and lengths beside what a field holds.
constexpr size_t kFieldRoom = 4096;

/// Longest payload of a type; nothing for types that are none.
std::optional<size_t> longest(MessageType type) {
  switch (type) {
    case MessageType::kOffer:
      return kMaxSpecBytes + kFieldRoom;
    case MessageType::kAnswer:
      return kMaxAnswerBytes;
    case MessageType::kImage:
      return kMaxImagePieceBytes + kFieldRoom;
    case MessageType::kChunk:
      return kMaxChunkBytes + kFieldRoom;
    case MessageType::kRecord:
      return kMaxRecordBytes + kFieldRoom;
    case MessageType::kFailure:
      return kMaxTextBytes + kFieldRoom;
    case MessageType::kPrepared:
    case MessageType::kRoundBegin:
    case MessageType::kRoundEnd:
    case MessageType::kRoundDone:
    case MessageType::kStateEnd:
    case MessageType::kReady:
    case MessageType::kCommit:
    case MessageType::kCommitted:
      return kFieldRoom;
  }
  return std::nullopt;
}

std::span<const std::byte> bytes_of(const Preamble& preamble) { return std::as_bytes(std::span(&preamble, 1)); }

}  // namespace

std::string printable_line(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return text;
}

std::string_view MigrationStream::name_of(MessageType type) {
  constexpr std::array<std::string_view, 15> kNames{"none",        "offer", "answer",    "image",      "prepared",
                                                    "round begin", "chunk", "round end", "round done", "component",
                                                    "state end",   "ready", "commit",    "committed",  "failure"};
  const auto index = static_cast<size_t>(type);
  return index < kNames.size() ? kNames[index] : "unknown";
}

Result<void> MigrationStream::open() {
  const Deadline deadline(limits_.message);
  TANDEM_TRY(channel_.write(bytes_of(kOurs), deadline));
  Preamble theirs{};
  TANDEM_TRY(channel_.read(std::as_writable_bytes(std::span(&theirs, 1)), deadline));
  if (theirs.magic != kOurs.magic) {
    return fail(Errc::kCorrupt, "the other side is no migration of Tandem");
  }
  if (theirs.version != kOurs.version) {
    return fail(Errc::kUnsupported, "the other side speaks version {} of the migration protocol, this one version {}",
                theirs.version, kOurs.version);
  }
  if (theirs.architecture != kOurs.architecture) {
    return fail(Errc::kUnsupported, "the other side is no aarch64 host");
  }
  return {};
}

void MigrationStream::append(MessageType type, std::span<const std::byte> first, std::span<const std::byte> second) {
  const size_t length = first.size() + second.size();
  TANDEM_ASSERT(length <= longest(type), "what is sent was bounded before");
  const size_t start = output_.size();
  output_.resize(start + kHeaderBytes);
  const auto header = std::span(output_).subspan(start);
  store_le(header.subspan(kTypeOffset), static_cast<uint32_t>(type));
  store_le(header.subspan(kLengthOffset), static_cast<uint32_t>(length));
  store_le(header.subspan(kSequenceOffset), next_sent_++);
  store_le(header.subspan(kReservedOffset), uint32_t{0});
  output_.insert(output_.end(), first.begin(), first.end());
  output_.insert(output_.end(), second.begin(), second.end());
  const auto message = std::span(output_).subspan(start);
  const auto checksum = checksum_of(message.subspan(Checksum::kBytes)).bytes();
  std::ranges::copy(checksum, message.begin());
  sent_bytes_ += message.size();
}

Result<void> MigrationStream::gather(MessageType type, std::span<const std::byte> first,
                                     std::span<const std::byte> second) {
  append(type, first, second);
  return output_.size() < kGatheredBytes ? Result<void>() : write_output(type);
}

Result<void> MigrationStream::send(MessageType type, std::span<const std::byte> first,
                                   std::span<const std::byte> second) {
  append(type, first, second);
  return write_output(type);
}

Result<void> MigrationStream::write_output(MessageType type) {
  const auto sent = channel_.write(output_, Deadline(limits_.message));
  output_.clear();
  if (!sent && type != MessageType::kFailure) {
    TANDEM_TRY(check_peer());  // why it went away is a better reason than that it did
  }
  return sent;
}

Result<MigrationStream::Received> MigrationStream::receive(MigrationLimits::Duration limit) {
  const Deadline deadline(limit);
  input_.resize(kHeaderBytes);
  TANDEM_TRY(channel_.read(input_, deadline));
  const std::span<const std::byte> header(input_);
  const auto type = static_cast<MessageType>(load_le<uint32_t>(header.subspan(kTypeOffset)));
  const auto length = load_le<uint32_t>(header.subspan(kLengthOffset));
  const auto sequence = load_le<uint32_t>(header.subspan(kSequenceOffset));
  const auto most = longest(type);
  if (!most || length > *most || sequence != next_received_ ||
      load_le<uint32_t>(header.subspan(kReservedOffset)) != 0) {
    return fail(Errc::kCorrupt, "message {}: broken header", next_received_);
  }
  ++next_received_;
  TANDEM_TRY(read_payload(length, deadline));
  const auto checksum = checksum_of(std::span(input_).subspan(Checksum::kBytes)).bytes();
  if (!std::ranges::equal(checksum, std::span(input_).first(Checksum::kBytes))) {
    return fail(Errc::kCorrupt, "message {}: wrong checksum", sequence);
  }
  const Received received{type, std::span(input_).subspan(kHeaderBytes)};
  if (type == MessageType::kFailure) {
    auto failure = TANDEM_TRY(decode<Failure>(received));
    peer_gave_up_ = true;
    return fail(Errc::kIo, "the other side gave up: {}", printable_line(std::move(failure.reason)));
  }
  return received;
}

Result<void> MigrationStream::read_payload(size_t size_bytes, const Deadline& deadline) {
  while (size_bytes > 0) {
    const size_t step = std::min(size_bytes, kReadStepBytes);
    input_.resize(input_.size() + step);
    TANDEM_TRY(channel_.read(std::span(input_).last(step), deadline));
    size_bytes -= step;
  }
  return {};
}

Result<void> MigrationStream::expect_type(const Received& received, MessageType type) {
  if (received.type != type) {
    return fail(Errc::kCorrupt, "'{}' came where '{}' was due", name_of(received.type), name_of(type));
  }
  return {};
}

Result<void> MigrationStream::check_peer() {
  if (!channel_.has_input()) {
    return {};
  }
  const Received received = TANDEM_TRY(receive());
  return fail(Errc::kCorrupt, "'{}' came where nothing was due", name_of(received.type));
}

void MigrationStream::give_up(const std::string& reason) {
  static_cast<void>(send(Failure{reason.substr(0, kMaxTextBytes)}));  // the other side may be gone: it is not needed
  channel_.end_output();
  // What is unread when a connection is closed makes the host drop what the other side has not read.
  const Deadline farewell(limits_.farewell);
  std::array<std::byte, 4096> rest{};
  while (!farewell.has_passed() && channel_.read(rest, farewell)) {
  }
}

}  // namespace tandem::migration
