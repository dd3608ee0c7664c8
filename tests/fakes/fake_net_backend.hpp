// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "devices/backend/net_backend.hpp"

namespace tandem::devices {

/// A network under a test's control: keeps what is sent, and delivers packets on request.
class FakeNetBackend final : public NetBackend {
 public:
  using Packet = std::vector<std::byte>;

  explicit FakeNetBackend(NetOffloads offloads = {}, uint16_t mtu = 1500) : offloads_(offloads), mtu_(mtu) {}

  [[nodiscard]] NetOffloads offloads() const override { return offloads_; }
  [[nodiscard]] uint16_t mtu() const override { return mtu_; }
  void set_client(NetClient* client) override { client_ = client; }
  void wait_for(Events events) override { waited_for_ = events; }
  Result<void> start(NetOffloads receive) override {
    receive_offloads_ = receive;
    waiting_.clear();
    if (fail_start_) {
      return fail(Errc::kIo, "no such network");
    }
    return {};
  }
  NetTransfer receive(std::span<const iovec> places) override {
    if (receive_stall_) {
      return std::unexpected(*receive_stall_);
    }
    if (waiting_.empty()) {
      return std::unexpected(NetStall::kWouldBlock);
    }
    const Packet packet = std::move(waiting_.front());
    waiting_.pop_front();
    size_t done = 0;
    for (const iovec& place : places) {
      const size_t size_bytes = std::min(place.iov_len, packet.size() - done);
      if (size_bytes != 0) {
        std::memcpy(place.iov_base, packet.data() + done, size_bytes);
      }
      done += size_bytes;
    }
    return done;
  }
  NetTransfer send(std::span<const iovec> pieces) override {
    ++send_count_;
    if (send_stall_) {
      return std::unexpected(*send_stall_);
    }
    Packet packet;
    for (const iovec& piece : pieces) {
      const auto* const bytes = static_cast<const std::byte*>(piece.iov_base);
      packet.insert(packet.end(), bytes, bytes + piece.iov_len);
    }
    sent_.push_back(std::move(packet));
    return sent_.back().size();
  }

  /// Lets a packet come in; the client hears of it when it waits for one.
  void arrive(Packet packet) {
    waiting_.push_back(std::move(packet));
    tell();
  }
  /// Tells the client of what it waits for, as an event loop does in one turn. @return whether there was anything.
  bool tell() {
    const bool readable = has(waited_for_, Events::kReadable) && (receive_stall_ || !waiting_.empty());
    const bool writable = has(waited_for_, Events::kWritable) && !send_stall_;
    if (client_ == nullptr || (!readable && !writable)) {
      return false;
    }
    client_->net_ready(readable && writable ? Events::kBoth : readable ? Events::kReadable : Events::kWritable);
    return true;
  }

  /// Makes every `receive` or `send` fail, or none with nullopt.
  void stall_receive(std::optional<NetStall> stall) { receive_stall_ = stall; }
  void fail_start() { fail_start_ = true; }
  void stall_send(std::optional<NetStall> stall) { send_stall_ = stall; }

  [[nodiscard]] const std::vector<Packet>& sent() const { return sent_; }
  [[nodiscard]] size_t send_count() const { return send_count_; }
  [[nodiscard]] size_t waiting_count() const { return waiting_.size(); }
  [[nodiscard]] Events waited_for() const { return waited_for_; }
  [[nodiscard]] NetOffloads receive_offloads() const { return receive_offloads_; }
  [[nodiscard]] NetClient* client() const { return client_; }

 private:
  const NetOffloads offloads_;
  const uint16_t mtu_;
  NetClient* client_ = nullptr;
  Events waited_for_ = Events::kNone;
  NetOffloads receive_offloads_;
  std::deque<Packet> waiting_;
  std::vector<Packet> sent_;
  size_t send_count_ = 0;
  bool fail_start_ = false;
  std::optional<NetStall> receive_stall_;
  std::optional<NetStall> send_stall_;
};

}  // namespace tandem::devices
