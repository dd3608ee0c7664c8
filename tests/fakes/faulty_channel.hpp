// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "vmm/migration/socket_channel.hpp"

namespace tandem::fakes {

/// What goes wrong with one message, and with all that would follow it.
enum class ChannelFault : uint8_t {
  kNone,
  kClose,    ///< The connection ends instead of it.
  kReset,    ///< The connection ends in the midst of it.
  kGarbage,  ///< It arrives damaged.
  kStall,    ///< It never arrives, and nobody is told.
};

/// A connection that breaks at one of the messages that go into it. A message is what one call of `write` sends.
class FaultyChannel final : public migration::ByteChannel {
 public:
  FaultyChannel(migration::SocketChannel channel, ChannelFault fault, unsigned at_message)
      : channel_(std::move(channel)), fault_(fault), at_message_(at_message) {}

  /// How many messages went into it.
  [[nodiscard]] unsigned message_count() const { return message_count_; }

  Result<void> write(std::span<const std::byte> bytes, const Deadline& deadline) override {
    const unsigned message = message_count_++;
    if (!channel_) {
      return fail(Errc::kClosed, "closed");
    }
    if (fault_ == ChannelFault::kNone || message < at_message_) {
      return channel_->write(bytes, deadline);
    }
    switch (fault_) {
      case ChannelFault::kClose:
        channel_.reset();
        return fail(Errc::kClosed, "closed");
      case ChannelFault::kReset:
        static_cast<void>(channel_->write(bytes.first(bytes.size() / 2), deadline));
        channel_.reset();
        return fail(Errc::kClosed, "reset");
      case ChannelFault::kGarbage:
        return channel_->write(damaged(bytes), deadline);
      case ChannelFault::kStall:
      case ChannelFault::kNone:
        break;
    }
    return {};
  }
  Result<void> read(std::span<std::byte> out, const Deadline& deadline) override {
    return channel_ ? channel_->read(out, deadline) : fail(Errc::kClosed, "closed");
  }
  [[nodiscard]] bool has_input() override { return channel_ && channel_->has_input(); }
  void end_output() override {
    if (channel_ && fault_ != ChannelFault::kStall) {
      channel_->end_output();
    }
  }

 private:
  static std::vector<std::byte> damaged(std::span<const std::byte> bytes) {
    std::vector<std::byte> copy(bytes.begin(), bytes.end());
    for (size_t index = copy.size() / 2; index < copy.size(); index += 7) {
      copy[index] ^= std::byte{0x5A};
    }
    return copy;
  }

  std::optional<migration::SocketChannel> channel_;
  ChannelFault fault_;
  unsigned at_message_;
  unsigned message_count_ = 0;
};

}  // namespace tandem::fakes
