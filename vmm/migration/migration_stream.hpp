// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/state/state_record.hpp"
#include "vmm/migration/byte_channel.hpp"
#include "vmm/migration/migration_message.hpp"

namespace tandem::migration {

/// Version of the protocol; both sides have to speak the same.
inline constexpr uint32_t kProtocolVersion = 1;

/// How long one side waits for the other.
struct MigrationLimits {
  using Duration = Deadline::Clock::duration;
  Duration message = std::chrono::seconds(30);  ///< For one message to pass, or to come without work before it.
  Duration work = std::chrono::seconds(120);    ///< For an answer that takes work: building a machine, restoring it.
  Duration reclaim = std::chrono::seconds(10);  ///< For the other side to let go of disks.
  Duration farewell = std::chrono::seconds(2);  ///< For the other side to read why we give up.
};

/// `text` of the other side made fit to be a part of one line of ours.
std::string printable_line(std::string text);

/// The frames of a migration on a byte channel: type, length, sequence number and checksum before each payload. What comes
/// from the other side is hostile: each type has a longest length, and no memory is taken for bytes that have not come.
class MigrationStream {
 public:
  /// A message as it came; valid until the next call of `receive`.
  struct Received {
    MessageType type;
    std::span<const std::byte> payload;
  };

  /// @pre `channel` outlives the stream.
  MigrationStream(ByteChannel& channel, const MigrationLimits& limits) : channel_(channel), limits_(limits) {}

  [[nodiscard]] const MigrationLimits& limits() const { return limits_; }

  /// Says who we are, and looks at who the other side is.
  /// @errors  Errc::kCorrupt: it speaks something else; Errc::kUnsupported: another version, or another architecture.
  Result<void> open();

  /// Sends one message whose payload is `first` and `second`, and all that was gathered before it.
  /// @errors  as ByteChannel::write; what the other side said if it has given up.
  Result<void> send(MessageType type, std::span<const std::byte> first, std::span<const std::byte> second = {});
  /// As `send`, but it may wait for more messages: one that is sent has to follow before an answer is waited for.
  Result<void> gather(MessageType type, std::span<const std::byte> first, std::span<const std::byte> second);
  template <typename Message>
  Result<void> send(Message message) {
    StateWriter writer;
    message.fields(writer);
    return send(Message::kType, std::move(writer).take());
  }

  /// The next message.
  /// @errors  as ByteChannel::read; Errc::kCorrupt: what came is no message in its place; the reason of the other side if it
  ///          gives up (`peer_gave_up` is true then).
  Result<Received> receive(MigrationLimits::Duration limit);
  Result<Received> receive() { return receive(limits_.message); }

  /// The next message, which has to be a `Message`.
  template <typename Message>
  Result<Message> expect(MigrationLimits::Duration limit) {
    return decode<Message>(TANDEM_TRY(receive(limit)));
  }
  template <typename Message>
  Result<Message> expect() {
    return expect<Message>(limits_.message);
  }

  /// The fields of a message.
  /// @errors  Errc::kCorrupt: it is of another type, or malformed.
  template <typename Message>
  static Result<Message> decode(const Received& received) {
    TANDEM_TRY(expect_type(received, Message::kType));
    Message message;
    StateReader reader(received.payload);
    message.fields(reader);
    TANDEM_TRY(with_context(reader.finish(), name_of(Message::kType)));
    return message;
  }

  /// Passes on that the other side has given up, if it has said so; to be asked between messages of a long series.
  Result<void> check_peer();
  [[nodiscard]] bool peer_gave_up() const { return peer_gave_up_; }

  /// Tells the other side why we give up, and waits a little for it to read that. Nothing is sent afterwards.
  void give_up(const std::string& reason);

  [[nodiscard]] uint64_t sent_bytes() const { return sent_bytes_; }

  static std::string_view name_of(MessageType type);

 private:
  /// Puts a message behind what was gathered.
  void append(MessageType type, std::span<const std::byte> first, std::span<const std::byte> second);
  /// Sends what was gathered. @param type  of the last message.
  Result<void> write_output(MessageType type);
  static Result<void> expect_type(const Received& received, MessageType type);
  Result<void> read_payload(size_t size_bytes, const Deadline& deadline);

  ByteChannel& channel_;
  MigrationLimits limits_;
  std::vector<std::byte> output_;  // what was gathered and is not sent yet
  std::vector<std::byte> input_;
  uint32_t next_sent_ = 0;
  uint32_t next_received_ = 0;
  uint64_t sent_bytes_ = 0;
  bool peer_gave_up_ = false;
};

}  // namespace tandem::migration
