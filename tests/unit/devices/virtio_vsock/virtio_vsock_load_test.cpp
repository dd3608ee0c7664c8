// SPDX-License-Identifier: Apache-2.0
// Many streams, and many bytes.
#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "tests/unit/devices/virtio_vsock/vsock_test.hpp"

namespace tandem::devices {

using namespace virtio_vsock;

namespace {

class LoadedVsockTest : public VsockTest {};

/// Bytes at places of an endless text, which repeats after so many that no packet or buffer is of their number.
class Text {
 public:
  explicit Text(uint64_t seed) : bytes_(kPeriodBytes + kMostBytes, '\0') {
    std::mt19937_64 random(seed);
    std::ranges::generate_n(bytes_.begin(), kPeriodBytes, [&] { return static_cast<char>(random()); });
    std::copy_n(bytes_.begin(), kMostBytes, bytes_.begin() + kPeriodBytes);
  }
  /// @pre size_bytes is at most kMostBytes.
  [[nodiscard]] std::string_view at(uint64_t place, size_t size_bytes) const {
    return std::string_view(bytes_).substr(place % kPeriodBytes, size_bytes);
  }
  static constexpr size_t kMostBytes = 64U << 10;

 private:
  static constexpr size_t kPeriodBytes = 1'000'003;
  std::string bytes_;
};

TEST_F(LoadedVsockTest, SixtyFourMebibytesGoBothWaysAtOnceUnchanged) {
  constexpr uint64_t kBytes = 64U << 20;
  set_up();
  const UniqueFd program = open_from_guest();
  const Text of_guest(1);
  const Text of_host(2);
  uint64_t guest_sent = 0;
  uint64_t host_sent = 0;
  uint64_t at_host = 0;
  uint64_t at_guest = 0;
  uint32_t taken_bytes = 0;
  while (at_host < kBytes || at_guest < kBytes) {
    const uint64_t before = at_host + at_guest;
    const auto portion = static_cast<size_t>(std::min<uint64_t>(kBytes - guest_sent, GuestVsock::kMostDataBytes));
    if (portion != 0 && static_cast<uint32_t>(guest_sent) - taken_bytes + portion <= VsockStream::kBufferBytes) {
      guest_.send_data(kGuestPort, kHostPort, of_guest.at(guest_sent, portion));
      guest_sent += portion;
    }
    host_sent += write(program, of_host.at(host_sent, std::min<uint64_t>(kBytes - host_sent, Text::kMostBytes)));
    const std::string got = read(program, Text::kMostBytes);
    ASSERT_EQ(got, of_guest.at(at_host, got.size())) << "at " << at_host;
    at_host += got.size();
    rig_.run();
    while (const auto packet = guest_.next()) {
      taken_bytes = packet->header.fwd_cnt;
      ASSERT_EQ(packet->data, of_host.at(at_guest, packet->data.size())) << "at " << at_guest;
      at_guest += packet->data.size();
      guest_.set_fwd_cnt(kGuestPort, static_cast<uint32_t>(at_guest));
    }
    guest_.send(kOpCreditUpdate, kGuestPort, kHostPort);
    ASSERT_NE(at_host + at_guest, before) << "nothing moves any more";
  }
  EXPECT_EQ(at_host, kBytes);
  EXPECT_EQ(at_guest, kBytes);
}

TEST_F(LoadedVsockTest, AThousandStreamsGoOnAtOnce) {
  constexpr uint32_t kStreams = 1000;
  set_up();
  std::vector<UniqueFd> programs;  // by guest port; every second one has dialled
  std::vector<uint32_t> host_ports;
  for (uint32_t port = 0; port < kStreams; ++port) {
    if (port % 2 == 0) {
      programs.push_back(open_from_guest(port));
      host_ports.push_back(kHostPort);
    } else {
      Connection connection = open_from_host(port);
      programs.push_back(std::move(connection.program));
      host_ports.push_back(connection.host_port);
    }
  }
  EXPECT_EQ(device_.stream_count(), kStreams);
  for (uint32_t port = 0; port < kStreams; ++port) {
    write(programs.at(port), "to " + std::to_string(port));
    guest_.send_data(port, host_ports.at(port), "from " + std::to_string(port));
  }
  std::map<uint32_t, std::string> got;
  for (rig_.run(); const auto packet = guest_.next(); rig_.run()) {
    ASSERT_EQ(packet->header.op, kOpRw);
    got[packet->header.dst_port] += packet->data;
  }
  for (uint32_t port = 0; port < kStreams; ++port) {
    ASSERT_EQ(got[port], "to " + std::to_string(port));
    ASSERT_EQ(read(programs.at(port)), "from " + std::to_string(port));
  }
  for (uint32_t port = 0; port < kStreams; ++port) {
    guest_.send(kOpShutdown, port, host_ports.at(port), kShutdownBoth);
    expect_packet(kOpRst, port);
    ASSERT_TRUE(is_at_end(programs.at(port)));
  }
  EXPECT_EQ(device_.stream_count(), 0U);
}

TEST_F(LoadedVsockTest, StreamsThatComeAndGoLeaveNothingBehind) {
  set_up();
  for (uint32_t count = 0; count < VirtioVsock::kMaxStreams + 100; ++count) {
    UniqueFd program = host_.dial(kGuestPort);
    const uint32_t host_port = expect_packet(kOpRequest).header.src_port;
    guest_.send(kOpResponse, kGuestPort, host_port);
    program.reset();
    rig_.run();
    guest_.next();
    guest_.send(kOpRst, kGuestPort, host_port);
    rig_.run();
    while (guest_.next()) {
    }
    ASSERT_EQ(device_.stream_count(), 0U);
  }
}

}  // namespace
}  // namespace tandem::devices
