// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "guest-agent/protocol/frame.hpp"
#include "guest-agent/protocol/message.hpp"
#include "vmm/lib/deadline/deadline.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::agent {

using tandem::Deadline;

/// The message in a frame. @errors  Errc::kCorrupt: there is none.
Result<Message> message_in(Frame frame);

/// A connected stream socket that carries frames. Two ways to use it: `send` and `receive` wait; `queue`, `flush`,
/// `fill` and `next` never do, for loops that wait for other things too.
class FrameChannel {
 public:
  /// Makes the socket non-blocking.
  static Result<FrameChannel> create(UniqueFd socket);

  [[nodiscard]] int fd() const { return socket_.get(); }
  /// Whether an error has shown that nothing more can be received, or sent.
  [[nodiscard]] bool is_broken() const { return broken_; }

  /// Makes `send` and `receive` give up (Errc::kIo) once `fd` is readable; -1: no more.
  void give_up_on(int fd) { interrupt_fd_ = fd; }

  /// Sends one frame, after those that are queued.
  /// @errors  Errc::kClosed: the other end is gone; Errc::kIo: the deadline has passed.
  Result<void> send(FrameKind kind, std::span<const std::byte> payload, Deadline deadline = {});
  /// @errors  Errc::kOutOfRange: the message is too long; nothing was sent.
  template <typename T>
    requires requires { T::kName; }
  Result<void> send(const T& message, Deadline deadline = {}) {
    return send_message(encode_message(message), deadline);
  }

  /// The next frame.
  /// @errors  as `send`; Errc::kCorrupt: what came is no frame.
  Result<Frame> receive(Deadline deadline = {});
  /// The next frame, which has to be a message.
  Result<Message> receive_message(Deadline deadline = {});

  void queue(FrameKind kind, std::span<const std::byte> payload) { append_frame(output_, kind, payload); }
  /// @pre  the message is short whatever its fields are.
  template <typename T>
    requires requires { T::kName; }
  void queue(const T& message) {
    queue(FrameKind::kMessage, encode_message(message));
  }
  /// Bytes that are queued and not sent yet.
  [[nodiscard]] size_t queued_bytes() const { return output_.size() - sent_; }
  /// Bytes that are kept for the queue's sake: never more than twice what it once held.
  [[nodiscard]] size_t stored_bytes() const { return output_.size(); }
  /// Sends of them what the socket takes now.
  Result<void> flush() { return note(write_queued()); }

  /// Reads once what the socket has now. @errors  Errc::kClosed: it has ended.
  Result<void> fill() { return note(read_once()); }
  /// The next of the frames that were read.
  Result<std::optional<Frame>> next() { return note(decoder_.next()); }

 private:
  explicit FrameChannel(UniqueFd socket) : socket_(std::move(socket)) {}
  [[nodiscard]] Result<void> wait_for(short events, const Deadline& deadline) const;
  Result<void> send_message(std::span<const std::byte> payload, const Deadline& deadline);
  void forget_sent();
  Result<void> write_queued();
  Result<void> read_once();
  template <typename T>
  Result<T> note(Result<T> result) {
    broken_ = broken_ || !result;
    return result;
  }

  UniqueFd socket_;
  int interrupt_fd_ = -1;
  FrameDecoder decoder_;
  std::vector<std::byte> output_;
  size_t sent_ = 0;  ///< Bytes of the output that are behind us.
  bool broken_ = false;
};

}  // namespace tandem::agent
