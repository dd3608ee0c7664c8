// SPDX-License-Identifier: Apache-2.0
// What guests may not do, and what becomes of it.
#include <algorithm>
#include <random>
#include <vector>

#include "tests/unit/devices/virtio_vsock/vsock_test.hpp"

namespace tandem::devices {

using namespace virtio_vsock;

namespace {

class HostileVsockTest : public VsockTest {
 protected:
  void SetUp() override {
    set_up();
    log::set_level(log::Level::kOff);
  }
  void TearDown() override { log::set_level(log::Level::kInfo); }

  /// That the device still works, for a stream of its own.
  void expect_alive() {
    EXPECT_FALSE(rig_.transport().needs_reset());
    while (guest_.next()) {
      rig_.run();
    }
    const UniqueFd program = open_from_guest(9999, 99);
    guest_.send_data(9999, 99, "alive");
    EXPECT_EQ(read(program), "alive");
  }
};

// --- Packets that belong to no stream ---

TEST_F(HostileVsockTest, AnUnknownStreamIsAnsweredByAReset) {
  for (const uint16_t op : {kOpResponse, kOpShutdown, kOpRw, kOpCreditUpdate, kOpCreditRequest}) {
    guest_.send(op, kGuestPort, kHostPort);
    EXPECT_EQ(expect_packet(kOpRst).header.src_port, kHostPort) << op;
  }
}

TEST_F(HostileVsockTest, AResetOfAnUnknownStreamIsNotAnswered) {
  guest_.send(kOpRst, kGuestPort, kHostPort);
  expect_nothing();
}

TEST_F(HostileVsockTest, AnUnknownOperationIsAnsweredByAReset) {
  for (const uint16_t op : {uint16_t{0}, uint16_t{8}, uint16_t{UINT16_MAX}}) {
    guest_.send(op, kGuestPort, kHostPort);
    expect_packet(kOpRst);
  }
}

TEST_F(HostileVsockTest, OtherTypesThanStreamsAreRefused) {
  host_.serve(kHostPort);
  for (const uint16_t type : {uint16_t{0}, uint16_t{2}, uint16_t{3}, uint16_t{UINT16_MAX}}) {
    Header request = GuestVsock::header(kOpRequest, kGuestPort, kHostPort);
    request.type = type;
    guest_.send(request);
    rig_.run();
    const auto answer = guest_.next();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->header.op, kOpRst);
    EXPECT_EQ(answer->header.type, type) << "the guest finds its socket by it";
  }
  EXPECT_EQ(host_.accepted_count(), 0U);
}

TEST_F(HostileVsockTest, AConnectionToAnotherCidIsRefused) {
  host_.serve(kHostPort);
  for (const uint64_t cid : {uint64_t{0}, uint64_t{1}, uint64_t{GuestVsock::kCid}, uint64_t{4}, UINT64_MAX}) {
    Header request = GuestVsock::header(kOpRequest, kGuestPort, kHostPort);
    request.dst_cid = cid;
    guest_.send(request);
    rig_.run();
    const auto answer = guest_.next();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->header.op, kOpRst);
    EXPECT_EQ(answer->header.src_cid, cid);
  }
  EXPECT_EQ(host_.accepted_count(), 0U);
}

TEST_F(HostileVsockTest, PacketsFromAnotherCidAreDropped) {
  const UniqueFd program = open_from_guest();
  Header packet = GuestVsock::header(kOpRst, kGuestPort, kHostPort);
  packet.src_cid = 4;
  guest_.send(packet);
  expect_nothing();
  EXPECT_EQ(device_.stream_count(), 1U);
}

// --- Packets that a stream does not allow ---

TEST_F(HostileVsockTest, ASecondRequestForAStreamResetsIt) {
  const UniqueFd program = open_from_guest();
  guest_.send(kOpRequest, kGuestPort, kHostPort);
  expect_packet(kOpRst);
  EXPECT_TRUE(is_at_end(program));
  EXPECT_EQ(device_.stream_count(), 0U);
}

TEST_F(HostileVsockTest, AResponseThatNobodyAskedForResetsTheStream) {
  const UniqueFd program = open_from_guest();
  guest_.send(kOpResponse, kGuestPort, kHostPort);
  expect_packet(kOpRst);
  EXPECT_TRUE(is_at_end(program));
}

TEST_F(HostileVsockTest, BeforeTheGuestAcceptsNothingElseIsAllowed) {
  for (const uint16_t op : {kOpRequest, kOpShutdown, kOpRw, kOpCreditUpdate, kOpCreditRequest, uint16_t{UINT16_MAX}}) {
    const UniqueFd program = host_.dial(kGuestPort);
    const uint32_t host_port = expect_packet(kOpRequest).header.src_port;
    guest_.send(op, kGuestPort, host_port, kShutdownBoth);
    expect_packet(kOpRst);
    EXPECT_EQ(device_.stream_count(), 0U) << op;
  }
}

TEST_F(HostileVsockTest, DataBeyondTheCreditResetsTheStream) {
  const UniqueFd program = open_from_guest();
  fill_stream();
  guest_.send_data(kGuestPort, kHostPort, std::string(8192, 'x'));
  expect_packet(kOpRst);
  rig_.run();
  EXPECT_EQ(device_.stream_count(), 0U);
}

TEST_F(HostileVsockTest, ALengthBeyondThePacketResetsTheStream) {
  for (const uint32_t length : {1U, 4097U, VsockStream::kBufferBytes, UINT32_MAX}) {
    const UniqueFd program = open_from_guest();
    Header packet = GuestVsock::header(kOpRw, kGuestPort, kHostPort);
    packet.len = length;
    guest_.send(packet);
    expect_packet(kOpRst);
    EXPECT_EQ(read(program), "");
  }
}

TEST_F(HostileVsockTest, DataAfterTheEndResetsTheStream) {
  const UniqueFd program = open_from_guest();
  guest_.send(kOpShutdown, kGuestPort, kHostPort, kShutdownSend);
  guest_.send_data(kGuestPort, kHostPort, "more");
  expect_packet(kOpRst);
  EXPECT_EQ(read(program), "");
}

TEST_F(HostileVsockTest, AStreamThatIsBeingResetHearsNothingMore) {
  guest_.set_refilling(false);
  guest_.activate();
  guest_.give_buffers(2);
  const UniqueFd program = open_from_guest();
  guest_.give_buffers(0);
  const UniqueFd other = open_from_guest(kGuestPort + 1);
  guest_.send(kOpResponse, kGuestPort, kHostPort);
  guest_.send(kOpRequest, kGuestPort, kHostPort);
  guest_.send_data(kGuestPort, kHostPort, "x");
  EXPECT_EQ(device_.stream_count(), 2U);
  guest_.give_buffers(2);
  expect_packet(kOpRst);
  expect_nothing();
  EXPECT_EQ(device_.stream_count(), 1U);
}

TEST_F(HostileVsockTest, ShutdownFlagsThatDoNotExistAreIgnored) {
  const UniqueFd program = open_from_guest();
  guest_.send(kOpShutdown, kGuestPort, kHostPort, ~kShutdownBoth);
  guest_.send_data(kGuestPort, kHostPort, "goes on");
  EXPECT_EQ(read(program), "goes on");
}

// --- Credits that lie ---

TEST_F(HostileVsockTest, AGuestThatClaimsToHaveReadMoreThanCameStallsItself) {
  const UniqueFd program = open_from_guest();
  guest_.set_fwd_cnt(kGuestPort, 1);
  guest_.send(kOpCreditUpdate, kGuestPort, kHostPort);
  write(program, "stuck");
  expect_packet(kOpCreditRequest);
  expect_nothing();
  guest_.set_fwd_cnt(kGuestPort, 0);
  guest_.send(kOpCreditUpdate, kGuestPort, kHostPort);
  EXPECT_EQ(expect_packet(kOpRw).data, "stuck");
}

TEST_F(HostileVsockTest, AGuestWithoutRoomIsAskedOnce) {
  host_.serve(kHostPort);
  Header request = GuestVsock::header(kOpRequest, kGuestPort, kHostPort);
  request.buf_alloc = 0;
  guest_.send(request);
  expect_packet(kOpResponse);
  const UniqueFd program = host_.take_accepted();
  write(program, "stuck");
  expect_packet(kOpCreditRequest);
  request.op = kOpCreditUpdate;
  guest_.send(request);
  expect_nothing();
}

TEST_F(HostileVsockTest, AGuestThatClaimsEndlessRoomGetsItsBuffersFilledNoFurther) {
  host_.serve(kHostPort);
  Header request = GuestVsock::header(kOpRequest, kGuestPort, kHostPort);
  request.buf_alloc = UINT32_MAX;
  guest_.send(request);
  expect_packet(kOpResponse);
  const UniqueFd program = host_.take_accepted();
  write(program, std::string(8192, 'x'));
  EXPECT_EQ(expect_packet(kOpRw).data.size(), GuestVsock::kReceiveBufferBytes - kHeaderBytes);
}

// --- Rings ---

TEST_F(HostileVsockTest, APacketWithoutAHeaderIsDropped) {
  rig_.driver(kTransmitQueue).chain().readable("too short").submit();
  rig_.driver(kTransmitQueue).chain().writable(100).submit();
  device_.notify(kTransmitQueue);
  expect_nothing();
  EXPECT_TRUE(rig_.driver(kTransmitQueue).take_used());
  EXPECT_TRUE(rig_.driver(kTransmitQueue).take_used());
  EXPECT_FALSE(rig_.transport().needs_reset());
}

TEST_F(HostileVsockTest, AReceiveBufferWithoutRoomForDataNeedsAReset) {
  guest_.activate();
  rig_.driver(kReceiveQueue).chain().writable(kHeaderBytes).submit();
  const UniqueFd program = host_.dial(kGuestPort);
  EXPECT_TRUE(rig_.transport().needs_reset());
  EXPECT_TRUE(is_at_end(program));
}

TEST_F(HostileVsockTest, EveryBrokenRingNeedsAResetAndEndsTheStreams) {
  for (const uint16_t queue : {kReceiveQueue, kTransmitQueue, kEventQueue}) {
    guest_.activate();
    if (queue != kReceiveQueue) {
      guest_.give_buffers(4);
    }
    UniqueFd program = host_.dial(kGuestPort);
    ASSERT_TRUE(device_.pause());
    if (queue == kEventQueue) {
      ASSERT_TRUE(device_.restore(device_.save().value()));
      rig_.reattach(device_);
    }
    rig_.break_ring(queue);
    rig_.resume(device_);
    EXPECT_EQ(rig_.transport().needs_reset(), text_of(RingFault::kDescriptor)) << queue;
    EXPECT_TRUE(is_at_end(program)) << queue;
    EXPECT_EQ(device_.stream_count(), 0U) << queue;
    rig_.reset(device_);
    rig_.run();
  }
  set_up();
  expect_alive();
}

TEST_F(HostileVsockTest, DoorbellsOutOfPlaceAreIgnored) {
  rig_.reset(device_);
  for (const uint16_t queue : {kReceiveQueue, kTransmitQueue, kEventQueue, uint16_t{3}, uint16_t{UINT16_MAX}}) {
    device_.notify(queue);
  }
  rig_.activate(device_, kFStream, {kReceiveQueue, kTransmitQueue, kEventQueue});
  for (const uint16_t queue : {kReceiveQueue, kTransmitQueue, kEventQueue}) {
    device_.notify(queue);
  }
  const UniqueFd program = host_.dial(kGuestPort);
  rig_.run();
  EXPECT_FALSE(rig_.transport().needs_reset());
}

// --- Floods ---

TEST_F(HostileVsockTest, AnswersThatTheGuestDoesNotTakeHoldUpItsOwnPackets) {
  guest_.set_refilling(false);
  guest_.activate();
  size_t sent = 0;
  for (; sent < 2 * VirtioVsock::kMaxPendingResets; ++sent) {
    rig_.driver(kTransmitQueue).chain().readable(GuestVsock::header(kOpRw, 1, static_cast<uint32_t>(sent))).submit();
    device_.notify(kTransmitQueue);
    rig_.run();
    if (!rig_.driver(kTransmitQueue).take_used()) {
      break;
    }
  }
  EXPECT_EQ(sent, VirtioVsock::kMaxPendingResets);
  guest_.give_buffers(1);
  rig_.run();
  EXPECT_TRUE(rig_.driver(kTransmitQueue).take_used()) << "one answer taken, one packet more";
}

TEST_F(HostileVsockTest, StreamsBeyondTheMostAreRefused) {
  host_.serve(kHostPort);
  std::vector<UniqueFd> programs;
  for (uint32_t port = 0; port < VirtioVsock::kMaxStreams; ++port) {
    programs.push_back(open_from_guest(port));
  }
  guest_.send(kOpRequest, UINT32_MAX, kHostPort);
  expect_packet(kOpRst, UINT32_MAX);
  const UniqueFd program = host_.dial(kGuestPort);
  EXPECT_TRUE(is_at_end(program));
  EXPECT_EQ(device_.stream_count(), VirtioVsock::kMaxStreams);
  guest_.send(kOpRst, 0, kHostPort);
  const UniqueFd again = open_from_guest(5000);
  EXPECT_EQ(device_.stream_count(), VirtioVsock::kMaxStreams);
}

TEST_F(HostileVsockTest, AFloodOfMistakesIsNoFloodOfLines) {
  log::set_level(log::Level::kInfo);
  ::testing::internal::CaptureStderr();
  for (unsigned count = 0; count < 1000; ++count) {
    Header packet = GuestVsock::header(kOpRw, kGuestPort, kHostPort);
    packet.src_cid = count % 2 == 0 ? 0 : 5;
    guest_.send(packet);
  }
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(lines, '\n'), 10) << lines;  // the 1st, 2nd, 4th, …, 512th
}

class NonsenseVsockTest : public HostileVsockTest, public ::testing::WithParamInterface<unsigned> {};

// Few ports and CIDs, so that the nonsense meets streams.
TEST_P(NonsenseVsockTest, IsSurvived) {
  std::mt19937_64 random(GetParam());
  host_.serve(0);
  host_.serve(1);
  std::vector<UniqueFd> programs;
  for (unsigned count = 0; count < 1500; ++count) {
    Header packet{.src_cid = random() % 16 == 0 ? random() : GuestVsock::kCid,
                  .dst_cid = random() % 16 == 0 ? random() % 4 : kHostCid,
                  .src_port = static_cast<uint32_t>(random() % 4),
                  .dst_port = random() % 2 == 0 ? static_cast<uint32_t>(random() % 3)
                                                : VirtioVsock::kFirstHostPort + static_cast<uint32_t>(random() % 64),
                  .len = static_cast<uint32_t>(random() % 512),
                  .type = static_cast<uint16_t>(random() % 16 == 0 ? random() : 1),
                  .op = static_cast<uint16_t>(random() % 9),
                  .flags = static_cast<uint32_t>(random() % 5),
                  .buf_alloc = static_cast<uint32_t>(random() % 3 == 0 ? random() : 65536),
                  .fwd_cnt = static_cast<uint32_t>(random() % 4 == 0 ? random() : 0)};
    guest_.send(packet, std::string(random() % 512, 'n'));
    if (random() % 4 == 0) {
      programs.push_back(host_.dial(static_cast<uint32_t>(random() % 4)));
    }
    while (host_.accepted_count() != 0) {
      programs.push_back(host_.take_accepted());
    }
    if (!programs.empty()) {
      const size_t index = random() % programs.size();
      write(programs[index], "some text of a program");
      if (random() % 3 == 0) {
        programs.erase(programs.begin() + static_cast<ptrdiff_t>(index));
      }
    }
    rig_.run();
    while (random() % 4 != 0 && guest_.next()) {
    }
  }
  EXPECT_FALSE(rig_.transport().needs_reset());
  programs.clear();
  rig_.reset(device_);
  rig_.run();
  set_up();
  expect_alive();
}

INSTANTIATE_TEST_SUITE_P(Seeds, NonsenseVsockTest, ::testing::Range(1U, 5U));

}  // namespace
}  // namespace tandem::devices
