// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "devices/virtio_vsock/virtio_vsock.hpp"
#include "devices/virtio_vsock/virtio_vsock_state.hpp"
#include "tests/fakes/fake_timer.hpp"
#include "tests/fakes/fake_vsock_host.hpp"
#include "tests/fakes/guest_vsock.hpp"

namespace tandem::devices {

/// A socket device between a guest and programs of the host, all of them the test's.
class VsockTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kGuestPort = 1024;
  static constexpr uint32_t kHostPort = 52;

  struct Connection {
    UniqueFd program;  ///< The host's end.
    uint32_t host_port = 0;
  };

  void set_up() {
    guest_.activate();
    guest_.give_buffers(VirtioRig::kQueueSize);
    guest_.give_event_buffers(4);
  }

  /// The next packet; fails the test when there is none.
  VsockPacket expect_packet(uint16_t op, uint32_t guest_port = kGuestPort) {
    rig_.run();
    const auto packet = guest_.next();
    EXPECT_TRUE(packet) << "no packet " << op;
    if (!packet) {
      return {};
    }
    EXPECT_EQ(packet->header.op, op);
    EXPECT_EQ(packet->header.src_cid, virtio_vsock::kHostCid);
    EXPECT_EQ(packet->header.dst_cid, GuestVsock::kCid);
    EXPECT_EQ(packet->header.dst_port, guest_port);
    EXPECT_EQ(packet->header.len, packet->data.size());
    EXPECT_EQ(packet->header.type, virtio_vsock::kTypeStream);
    return *packet;
  }
  void expect_nothing() {
    rig_.run();
    const auto packet = guest_.next();
    EXPECT_FALSE(packet) << "packet " << packet->header.op;
  }

  /// A stream that the guest has opened.
  UniqueFd open_from_guest(uint32_t guest_port = kGuestPort, uint32_t host_port = kHostPort) {
    host_.serve(host_port);
    guest_.send(virtio_vsock::kOpRequest, guest_port, host_port);
    expect_packet(virtio_vsock::kOpResponse, guest_port);
    return host_.take_accepted();
  }
  /// A stream that a program of the host has opened.
  Connection open_from_host(uint32_t guest_port = kGuestPort) {
    Connection connection{.program = host_.dial(guest_port)};
    connection.host_port = expect_packet(virtio_vsock::kOpRequest, guest_port).header.src_port;
    guest_.send(virtio_vsock::kOpResponse, guest_port, connection.host_port);
    EXPECT_EQ(read(connection.program), "OK " + std::to_string(connection.host_port) + "\n");
    return connection;
  }

  /// All that a program of the host can read now.
  static std::string read(const UniqueFd& program, size_t most_bytes = SIZE_MAX) {
    std::string all;
    std::array<char, 65536> bytes{};
    while (all.size() < most_bytes) {
      const ssize_t got =
          ::recv(program.get(), bytes.data(), std::min(bytes.size(), most_bytes - all.size()), MSG_DONTWAIT);
      if (got <= 0) {
        break;
      }
      all.append(bytes.data(), static_cast<size_t>(got));
    }
    return all;
  }
  /// @return how many bytes a program of the host can send now.
  static size_t write(const UniqueFd& program, std::string_view text) {
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t sent = ::send(program.get(), text.data() + done, text.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent <= 0) {
        break;
      }
      done += static_cast<size_t>(sent);
    }
    return done;
  }
  static bool is_at_end(const UniqueFd& program) {
    char byte = 0;
    return ::recv(program.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
  }

  /// Sends until the host's end takes no more, and the guest may send no more.
  size_t fill_stream(uint32_t host_port = kHostPort) {
    const std::string data(4096, 'f');
    size_t sent_bytes = 0;
    uint32_t taken_bytes = 0;
    while (static_cast<uint32_t>(sent_bytes) - taken_bytes + data.size() <= VsockStream::kBufferBytes) {
      guest_.send_data(kGuestPort, host_port, data);
      sent_bytes += data.size();
      rig_.run();
      while (const auto packet = guest_.next()) {
        taken_bytes = packet->header.fwd_cnt;
      }
    }
    return sent_bytes;
  }

  VirtioRig rig_;
  FakeVsockHost host_;
  FakeTimer* timer_ = new FakeTimer;  // the device's
  VirtioVsock device_{"vsock0",
                      GuestVsock::kCid,
                      {.executor = rig_.executor(), .host = host_, .event_timer = std::unique_ptr<Timer>(timer_)}};
  GuestVsock guest_{rig_, device_};
};

}  // namespace tandem::devices
