// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_vsock/virtio_vsock.hpp"

#include "tests/unit/devices/virtio_vsock/vsock_test.hpp"
#include "vmm/lib/bits/bits.hpp"

namespace tandem::devices {

using namespace virtio_vsock;

namespace {

class VirtioVsockTest : public VsockTest {};

// --- Configuration ---

TEST_F(VirtioVsockTest, IsASocketDeviceWithThreeQueues) {
  EXPECT_EQ(device_.device_id(), 19U);
  EXPECT_EQ(device_.queue_sizes().size(), 3U);
  EXPECT_EQ(device_.device_features(), kFStream) << "neither SEQPACKET nor anything else";
}

TEST_F(VirtioVsockTest, ConfigurationHoldsTheGuestsCid) {
  std::array<std::byte, 16> bytes{};
  device_.read_config(0, bytes);
  EXPECT_EQ(load_le<uint64_t>(bytes), GuestVsock::kCid);
  EXPECT_EQ(load_le<uint64_t>(std::span(bytes).subspan(8)), 0U);
  device_.write_config(0, std::span(bytes).subspan(8));
  device_.read_config(0, std::span(bytes).first(4));
  EXPECT_EQ(load_le<uint32_t>(bytes), GuestVsock::kCid);
}

TEST_F(VirtioVsockTest, CidsOfGuestsLieBetweenTheReservedOnes) {
  EXPECT_FALSE(VirtioVsock::is_guest_cid(2));
  EXPECT_TRUE(VirtioVsock::is_guest_cid(3));
  EXPECT_TRUE(VirtioVsock::is_guest_cid(UINT32_MAX - 1));
  EXPECT_FALSE(VirtioVsock::is_guest_cid(UINT32_MAX));
  EXPECT_FALSE(VirtioVsock::is_guest_cid((uint64_t{1} << 32) + 3));
}

// --- Connections of the guest ---

TEST_F(VirtioVsockTest, TheGuestConnectsToAProgramThatServes) {
  set_up();
  host_.serve(kHostPort);
  guest_.send(kOpRequest, kGuestPort, kHostPort);
  const VsockPacket response = expect_packet(kOpResponse);
  EXPECT_EQ(response.header.src_port, kHostPort);
  EXPECT_EQ(response.header.buf_alloc, VsockStream::kBufferBytes);
  EXPECT_EQ(host_.accepted_count(), 1U);
}

TEST_F(VirtioVsockTest, WhereNobodyServesTheGuestIsRefused) {
  set_up();
  guest_.send(kOpRequest, kGuestPort, 99);
  EXPECT_EQ(expect_packet(kOpRst).header.src_port, 99U);
  EXPECT_EQ(device_.stream_count(), 0U);
}

TEST_F(VirtioVsockTest, DataGoesBothWays) {
  set_up();
  const UniqueFd program = open_from_guest();
  guest_.send_data(kGuestPort, kHostPort, "to the host");
  EXPECT_EQ(read(program), "to the host");
  write(program, "to the guest");
  EXPECT_EQ(expect_packet(kOpRw).data, "to the guest");
}

TEST_F(VirtioVsockTest, DataInManyPiecesArrivesInOrder) {
  guest_.activate(kFStream | kVirtioFIndirectDesc);
  guest_.give_buffers(VirtioRig::kQueueSize);
  const UniqueFd program = open_from_guest();
  constexpr size_t kPieces = 300;
  std::string text;
  for (size_t count = 0; count < kPieces; ++count) {
    text += std::to_string(count) + ",";
  }
  Header header = GuestVsock::header(kOpRw, kGuestPort, kHostPort);
  header.len = static_cast<uint32_t>(text.size());
  auto chain = rig_.driver(kTransmitQueue).chain();
  chain.indirect().readable(std::as_bytes(std::span(&header, 1)).first(kHeaderBytes));
  for (size_t start = 0; start < text.size(); start += text.size() / kPieces) {
    chain.readable(std::string_view(text).substr(start, text.size() / kPieces));
  }
  chain.submit();
  device_.notify(kTransmitQueue);
  rig_.run();
  EXPECT_EQ(read(program), text);
}

TEST_F(VirtioVsockTest, AHeaderInPiecesIsAHeader) {
  set_up();
  const UniqueFd program = open_from_guest();
  Header header = GuestVsock::header(kOpRw, kGuestPort, kHostPort);
  header.len = 6;
  const auto bytes = std::as_bytes(std::span(&header, 1)).first(kHeaderBytes);
  rig_.driver(kTransmitQueue)
      .chain()
      .readable(bytes.first(7))
      .readable(bytes.subspan(7))
      .readable("abc")
      .readable("def, and what is not told of")
      .submit();
  device_.notify(kTransmitQueue);
  EXPECT_EQ(read(program), "abcdef");
}

// --- Connections of the host ---

TEST_F(VirtioVsockTest, AProgramConnectsToAPortOfTheGuest) {
  set_up();
  const Connection one = open_from_host(7);
  const Connection two = open_from_host(7);
  EXPECT_GE(one.host_port, VirtioVsock::kFirstHostPort);
  EXPECT_NE(one.host_port, two.host_port);
  write(one.program, "hello");
  EXPECT_EQ(expect_packet(kOpRw, 7).data, "hello");
  guest_.send_data(7, two.host_port, "hi");
  EXPECT_EQ(read(two.program), "hi");
  EXPECT_EQ(read(one.program), "");
}

TEST_F(VirtioVsockTest, AConnectionThatTheGuestRefusesEnds) {
  set_up();
  const UniqueFd program = host_.dial(kGuestPort);
  const uint32_t host_port = expect_packet(kOpRequest).header.src_port;
  guest_.send(kOpRst, kGuestPort, host_port);
  EXPECT_TRUE(is_at_end(program));
  EXPECT_EQ(device_.stream_count(), 0U);
  expect_nothing();
}

TEST_F(VirtioVsockTest, WithoutADriverConnectionsAreRefusedAtOnce) {
  const UniqueFd program = host_.dial(kGuestPort);
  EXPECT_TRUE(is_at_end(program));
}

TEST_F(VirtioVsockTest, WhatAProgramSendsAheadWaitsForTheGuestsAnswer) {
  set_up();
  const UniqueFd program = host_.dial(kGuestPort);
  write(program, "ahead");
  const uint32_t host_port = expect_packet(kOpRequest).header.src_port;
  expect_nothing();
  guest_.send(kOpResponse, kGuestPort, host_port);
  EXPECT_EQ(expect_packet(kOpRw).data, "ahead");
}

TEST_F(VirtioVsockTest, AProgramThatLeavesBeforeTheGuestsAnswerResetsTheStream) {
  set_up();
  UniqueFd program = host_.dial(kGuestPort);
  expect_packet(kOpRequest);
  program.reset();
  expect_packet(kOpRst);
  EXPECT_EQ(device_.stream_count(), 0U);
}

TEST_F(VirtioVsockTest, OfAProgramThatLeavesBeforeTheGuestWasAskedTheGuestHearsNothing) {
  guest_.activate();
  UniqueFd program = host_.dial(kGuestPort);
  program.reset();
  rig_.run();
  EXPECT_EQ(device_.stream_count(), 0U);
  guest_.give_buffers(4);
  expect_nothing();
}

TEST_F(VirtioVsockTest, AProgramThatOnlyListensMayEndItsInputBeforeTheAnswer) {
  set_up();
  const UniqueFd program = host_.dial(kGuestPort);
  ::shutdown(program.get(), SHUT_WR);
  const uint32_t host_port = expect_packet(kOpRequest).header.src_port;
  guest_.send(kOpResponse, kGuestPort, host_port);
  EXPECT_EQ(expect_packet(kOpShutdown).header.flags, kShutdownSend);
  guest_.send_data(kGuestPort, host_port, "news");
  EXPECT_EQ(read(program), "OK " + std::to_string(host_port) + "\nnews");
}

// --- Half-close and close ---

TEST_F(VirtioVsockTest, AProgramThatSendsNoMoreStillReceives) {
  set_up();
  const UniqueFd program = open_from_guest();
  write(program, "last words");
  ::shutdown(program.get(), SHUT_WR);
  EXPECT_EQ(expect_packet(kOpRw).data, "last words");
  EXPECT_EQ(expect_packet(kOpShutdown).header.flags, kShutdownSend);
  guest_.send_data(kGuestPort, kHostPort, "answer");
  EXPECT_EQ(read(program), "answer");
  expect_nothing();
}

TEST_F(VirtioVsockTest, AProgramThatReceivesNoMoreStillSends) {
  set_up();
  const UniqueFd program = open_from_guest();
  ::shutdown(program.get(), SHUT_RD);
  guest_.send_data(kGuestPort, kHostPort, "to no one");
  EXPECT_EQ(expect_packet(kOpShutdown).header.flags, kShutdownReceive);
  write(program, "still here");
  EXPECT_EQ(expect_packet(kOpRw).data, "still here");
  guest_.send_data(kGuestPort, kHostPort, "to no one either");
  expect_nothing();
}

TEST_F(VirtioVsockTest, AGuestThatSendsNoMoreStillReceives) {
  set_up();
  const UniqueFd program = open_from_guest();
  guest_.send_data(kGuestPort, kHostPort, "last words");
  guest_.send(kOpShutdown, kGuestPort, kHostPort, kShutdownSend);
  EXPECT_EQ(read(program), "last words");
  EXPECT_TRUE(is_at_end(program));
  write(program, "answer");
  EXPECT_EQ(expect_packet(kOpRw).data, "answer");
}

TEST_F(VirtioVsockTest, AGuestThatReceivesNoMoreStillSends) {
  set_up();
  const UniqueFd program = open_from_guest();
  guest_.send(kOpShutdown, kGuestPort, kHostPort, kShutdownReceive);
  EXPECT_EQ(write(program, "to no one"), 0U);
  expect_nothing();
  guest_.send_data(kGuestPort, kHostPort, "still here");
  EXPECT_EQ(read(program), "still here");
}

TEST_F(VirtioVsockTest, TheEndOfTheGuestsDataComesAfterWhatWaits) {
  set_up();
  const UniqueFd program = open_from_guest();
  const size_t sent_bytes = fill_stream();
  guest_.send(kOpShutdown, kGuestPort, kHostPort, kShutdownSend);
  size_t got_bytes = 0;
  for (size_t got = read(program).size(); got != 0; got = read(program).size()) {
    got_bytes += got;
    rig_.run();
  }
  EXPECT_EQ(got_bytes, sent_bytes);
  EXPECT_TRUE(is_at_end(program));
}

TEST_F(VirtioVsockTest, AProgramThatClosesEndsBothDirections) {
  set_up();
  UniqueFd program = open_from_guest();
  write(program, "last words");
  program.reset();
  EXPECT_EQ(expect_packet(kOpRw).data, "last words");
  EXPECT_EQ(expect_packet(kOpShutdown).header.flags, kShutdownBoth);
  guest_.send_data(kGuestPort, kHostPort, "to no one");
  expect_nothing();
  guest_.send(kOpRst, kGuestPort, kHostPort);
  EXPECT_EQ(device_.stream_count(), 0U);
  expect_nothing();
}

TEST_F(VirtioVsockTest, AGuestThatClosesIsAnsweredByAReset) {
  set_up();
  const UniqueFd program = open_from_guest();
  guest_.send(kOpShutdown, kGuestPort, kHostPort, kShutdownBoth);
  expect_packet(kOpRst);
  EXPECT_EQ(device_.stream_count(), 0U);
  EXPECT_TRUE(is_at_end(program));
}

TEST_F(VirtioVsockTest, AGuestThatClosesInTwoStepsIsAnsweredByAReset) {
  set_up();
  const UniqueFd program = open_from_guest();
  guest_.send(kOpShutdown, kGuestPort, kHostPort, kShutdownReceive);
  guest_.send(kOpShutdown, kGuestPort, kHostPort, kShutdownSend);
  expect_packet(kOpRst);
  EXPECT_EQ(device_.stream_count(), 0U);
}

TEST_F(VirtioVsockTest, AfterTheGuestsCloseAProgramStillGetsWhatWasSent) {
  set_up();
  UniqueFd program = open_from_guest();
  const size_t sent_bytes = fill_stream();
  guest_.send(kOpShutdown, kGuestPort, kHostPort, kShutdownBoth);
  expect_packet(kOpRst);
  EXPECT_EQ(device_.stream_count(), 1U) << "its bytes are still on their way";
  const UniqueFd next = open_from_guest();  // the same ports
  guest_.send_data(kGuestPort, kHostPort, "new");
  size_t got_bytes = 0;
  for (size_t got = read(program).size(); got != 0; got = read(program).size()) {
    got_bytes += got;
    rig_.run();
  }
  EXPECT_EQ(got_bytes, sent_bytes);
  EXPECT_TRUE(is_at_end(program));
  EXPECT_EQ(read(next), "new");
  EXPECT_EQ(device_.stream_count(), 1U);
}

TEST_F(VirtioVsockTest, AProgramThatLeavesAStreamTheGuestHasClosedEndsIt) {
  set_up();
  UniqueFd program = open_from_guest();
  fill_stream();
  guest_.send(kOpShutdown, kGuestPort, kHostPort, kShutdownBoth);
  expect_packet(kOpRst);
  program.reset();
  rig_.run();
  EXPECT_EQ(device_.stream_count(), 0U);
}

TEST_F(VirtioVsockTest, AProgramThatLeavesDataUnreadResetsTheStream) {
  set_up();
  UniqueFd program = open_from_guest();
  guest_.send_data(kGuestPort, kHostPort, "unread");
  program.reset();
  expect_packet(kOpRst);
  EXPECT_EQ(device_.stream_count(), 0U);
}

TEST_F(VirtioVsockTest, AGuestThatResetsEndsTheStream) {
  set_up();
  const UniqueFd program = open_from_guest();
  guest_.send(kOpRst, kGuestPort, kHostPort);
  EXPECT_TRUE(is_at_end(program));
  EXPECT_EQ(device_.stream_count(), 0U);
  expect_nothing();
}

// --- Credit ---

TEST_F(VirtioVsockTest, NoMoreIsSentThanTheGuestHasRoomFor) {
  set_up();
  const UniqueFd program = open_from_guest();
  const std::string text(GuestVsock::kBufferBytes + 1000, 'x');
  size_t written_bytes = write(program, text);
  std::string got;
  for (rig_.run(); const auto packet = guest_.next(); rig_.run()) {
    if (packet->header.op == kOpCreditRequest) {
      break;
    }
    ASSERT_EQ(packet->header.op, kOpRw);
    got += packet->data;
    written_bytes += write(program, std::string_view(text).substr(written_bytes));
  }
  EXPECT_EQ(got.size(), GuestVsock::kBufferBytes);
  expect_nothing();
  guest_.set_fwd_cnt(kGuestPort, GuestVsock::kBufferBytes);
  guest_.send(kOpCreditUpdate, kGuestPort, kHostPort);
  for (rig_.run(); const auto packet = guest_.next(); rig_.run()) {
    got += packet->data;
    written_bytes += write(program, std::string_view(text).substr(written_bytes));
  }
  EXPECT_EQ(got.size(), text.size());
}

TEST_F(VirtioVsockTest, TheGuestIsToldOfRoomAsTheHostReads) {
  set_up();
  const UniqueFd program = open_from_guest();
  const std::string data(VsockStream::kBufferBytes / 4, 'x');
  guest_.send_data(kGuestPort, kHostPort, data);
  const VsockPacket update = expect_packet(kOpCreditUpdate);
  EXPECT_EQ(update.header.fwd_cnt, data.size());
  EXPECT_EQ(update.header.buf_alloc, VsockStream::kBufferBytes);
}

TEST_F(VirtioVsockTest, AQuestionForRoomIsAnswered) {
  set_up();
  const UniqueFd program = open_from_guest();
  guest_.send_data(kGuestPort, kHostPort, "abc");
  guest_.send(kOpCreditRequest, kGuestPort, kHostPort);
  EXPECT_EQ(expect_packet(kOpCreditUpdate).header.fwd_cnt, 3U);
}

TEST_F(VirtioVsockTest, AProgramThatStopsReadingStallsItsOwnStreamOnly) {
  set_up();
  const UniqueFd stalled = open_from_guest();
  fill_stream();
  const UniqueFd other = open_from_guest(kGuestPort + 1);
  guest_.send_data(kGuestPort + 1, kHostPort, "passes");
  EXPECT_EQ(read(other), "passes");
  write(stalled, "the other way works, too");
  EXPECT_EQ(expect_packet(kOpRw).data, "the other way works, too");
}

TEST_F(VirtioVsockTest, AGuestProgramThatStopsReadingStallsItsOwnStreamOnly) {
  set_up();
  const UniqueFd stalled = open_from_guest();
  const std::string text(2 * GuestVsock::kBufferBytes, 'x');
  for (size_t written = write(stalled, text); written < text.size();) {
    rig_.run();
    if (!guest_.next()) {
      break;
    }
    written += write(stalled, std::string_view(text).substr(written));
  }
  while (guest_.next()) {
    rig_.run();
  }
  const UniqueFd other = open_from_guest(kGuestPort + 1);
  write(other, "passes");
  EXPECT_EQ(expect_packet(kOpRw, kGuestPort + 1).data, "passes");
}

TEST_F(VirtioVsockTest, StreamsTakeTurnsWhenBuffersAreFew) {
  guest_.set_refilling(false);
  guest_.activate();
  guest_.give_buffers(2);
  const UniqueFd one = open_from_guest(1);
  const UniqueFd two = open_from_guest(2);
  write(one, std::string(64U << 10, '1'));
  write(two, std::string(64U << 10, '2'));
  rig_.run();
  EXPECT_FALSE(guest_.next()) << "there are no buffers";
  std::string turns;
  for (unsigned count = 0; count < 8; ++count) {
    guest_.give_buffers(1);
    const auto packet = guest_.next();
    ASSERT_TRUE(packet);
    turns += packet->data.at(0);
  }
  EXPECT_EQ(turns, "12121212");
}

// --- Life cycle ---

TEST_F(VirtioVsockTest, DuringAPauseNothingMoves) {
  set_up();
  const UniqueFd program = open_from_guest();
  ASSERT_TRUE(device_.pause());
  EXPECT_FALSE(host_.is_accepting());
  write(program, "later");
  guest_.send_data(kGuestPort, kHostPort, "late");
  expect_nothing();
  EXPECT_EQ(read(program), "");
  rig_.resume(device_);
  EXPECT_TRUE(host_.is_accepting());
  EXPECT_EQ(read(program), "late");
  EXPECT_EQ(expect_packet(kOpRw).data, "later");
}

TEST_F(VirtioVsockTest, AfterAPauseOldStreamsGoOnAndNewOnesAreMadeAtOnce) {
  set_up();
  const UniqueFd old = open_from_guest();
  ASSERT_TRUE(device_.pause());
  rig_.resume(device_);
  EXPECT_FALSE(guest_.next_event()) << "nothing was reset";
  guest_.send_data(kGuestPort, kHostPort, "still here");
  EXPECT_EQ(read(old), "still here");
  const Connection of_host = open_from_host(7);
  write(of_host.program, "hello");
  EXPECT_EQ(expect_packet(kOpRw, 7).data, "hello");
  const UniqueFd of_guest = open_from_guest(kGuestPort + 1);
  guest_.send_data(kGuestPort + 1, kHostPort, "hi");
  EXPECT_EQ(read(of_guest), "hi");
}

TEST_F(VirtioVsockTest, AResetEndsEveryStreamAndTheNextDriverStartsAfresh) {
  set_up();
  const UniqueFd program = open_from_guest();
  const UniqueFd other = open_from_guest(kGuestPort + 1);
  rig_.reset(device_);
  EXPECT_TRUE(is_at_end(program));
  EXPECT_TRUE(is_at_end(other));
  EXPECT_EQ(device_.stream_count(), 0U);
  rig_.run();
  set_up();
  const UniqueFd next = open_from_guest();
  guest_.send_data(kGuestPort, kHostPort, "again");
  EXPECT_EQ(read(next), "again");
  EXPECT_FALSE(guest_.next_event());
}

TEST_F(VirtioVsockTest, AResetEndsStreamsThatOnlyTheHostStillHas) {
  set_up();
  const UniqueFd program = open_from_guest();
  fill_stream();
  guest_.send(kOpShutdown, kGuestPort, kHostPort, kShutdownBoth);
  expect_packet(kOpRst);
  ASSERT_EQ(device_.stream_count(), 1U);
  rig_.reset(device_);
  EXPECT_EQ(device_.stream_count(), 0U);
  rig_.run();
}

TEST_F(VirtioVsockTest, ARestoredDeviceTellsTheGuestThatItsStreamsAreGone) {
  set_up();
  const UniqueFd program = open_from_guest();
  ASSERT_TRUE(device_.pause());
  const StateRecord record = device_.save().value();
  EXPECT_EQ(device_.stream_count(), 1U) << "to save does not disturb streams";
  ASSERT_TRUE(device_.restore(record));
  EXPECT_EQ(device_.save().value(), record);
  EXPECT_TRUE(is_at_end(program));
  rig_.reattach(device_);
  rig_.resume(device_);
  EXPECT_EQ(guest_.next_event(), kEventTransportReset);
  EXPECT_FALSE(guest_.next_event());
  EXPECT_EQ(device_.stream_count(), 0U);
}

class RestoredVsockTest : public VsockTest {
 protected:
  void SetUp() override {
    set_up();
    ASSERT_TRUE(device_.pause());
    const StateRecord record = device_.save().value();
    ASSERT_TRUE(device_.restore(record));
    rig_.reattach(device_);
  }
};

TEST_F(RestoredVsockTest, NothingComesBeforeTheGuestHasHandledTheEvent) {
  rig_.resume(device_);
  const UniqueFd program = host_.dial(kGuestPort);
  expect_nothing();
  ASSERT_EQ(guest_.next_event(), kEventTransportReset);
  expect_nothing();
  guest_.give_event_buffers(1);
  expect_packet(kOpRequest);
  EXPECT_FALSE(timer_->is_armed());
}

TEST_F(RestoredVsockTest, AGuestThatKeepsTheEventsBufferIsNotWaitedForForever) {
  rig_.resume(device_);
  ASSERT_EQ(guest_.next_event(), kEventTransportReset);
  const UniqueFd program = host_.dial(kGuestPort);
  expect_nothing();
  ASSERT_EQ(timer_->delay_ns(), VirtioVsock::kEventTimeoutNs);
  timer_->fire();
  expect_packet(kOpRequest);
}

TEST_F(RestoredVsockTest, APauseIsNoTimeForTheGuestToHandleTheEvent) {
  rig_.resume(device_);
  ASSERT_EQ(guest_.next_event(), kEventTransportReset);
  ASSERT_TRUE(device_.pause());
  EXPECT_FALSE(timer_->is_armed());
  rig_.resume(device_);
  EXPECT_EQ(timer_->delay_ns(), VirtioVsock::kEventTimeoutNs);
  const UniqueFd program = host_.dial(kGuestPort);
  expect_nothing();
  timer_->fire();
  expect_packet(kOpRequest);
}

TEST_F(RestoredVsockTest, AResetEndsTheWaitForTheGuest) {
  rig_.resume(device_);
  ASSERT_EQ(guest_.next_event(), kEventTransportReset);
  rig_.reset(device_);
  EXPECT_FALSE(timer_->is_armed());
}

TEST_F(RestoredVsockTest, TheGuestConnectsAnew) {
  rig_.resume(device_);
  host_.serve(kHostPort);
  guest_.send(kOpRequest, kGuestPort, kHostPort);
  ASSERT_EQ(guest_.next_event(), kEventTransportReset);
  guest_.give_event_buffers(1);
  expect_packet(kOpResponse);
}

TEST_F(RestoredVsockTest, APacketOfAStreamOfBeforeIsAnsweredByAReset) {
  rig_.resume(device_);
  guest_.give_event_buffers(1);
  guest_.send_data(kGuestPort, kHostPort, "to whom?");
  EXPECT_EQ(expect_packet(kOpRst).header.src_port, kHostPort);
}

TEST_F(RestoredVsockTest, ASecondSaveBeforeTheGuestWasToldStillTellsIt) {
  const StateRecord record = device_.save().value();
  ASSERT_TRUE(device_.restore(record));
  rig_.reattach(device_);
  rig_.resume(device_);
  EXPECT_EQ(guest_.next_event(), kEventTransportReset);
}

TEST_F(RestoredVsockTest, ADriverThatStartsAfreshIsToldNothing) {
  rig_.reset(device_);
  ASSERT_TRUE(device_.resume());
  set_up();
  EXPECT_FALSE(guest_.next_event());
}

TEST_F(VirtioVsockTest, ADriverWithoutEventBuffersIsServedAfterARestore) {
  guest_.activate();
  guest_.give_buffers(4);
  ASSERT_TRUE(device_.pause());
  ASSERT_TRUE(device_.restore(device_.save().value()));
  rig_.reattach(device_);
  rig_.resume(device_);
  const UniqueFd program = host_.dial(kGuestPort);
  expect_packet(kOpRequest);
  guest_.give_event_buffers(1);
  EXPECT_EQ(guest_.next_event(), kEventTransportReset) << "better late than never";
}

TEST_F(VirtioVsockTest, TheGuestKeepsItsCidOverARestore) {
  ASSERT_TRUE(device_.pause());
  ASSERT_TRUE(device_.restore(save_state(VirtioVsockStateV1{.guest_cid = 77})));
  std::array<std::byte, 8> bytes{};
  device_.read_config(0, bytes);
  EXPECT_EQ(load_le<uint64_t>(bytes), 77U);
}

TEST_F(VirtioVsockTest, ImpossibleStateIsRefused) {
  for (const uint64_t cid : {uint64_t{0}, uint64_t{2}, uint64_t{UINT32_MAX}, uint64_t{1} << 32}) {
    EXPECT_EQ(device_.restore(save_state(VirtioVsockStateV1{.guest_cid = cid})).error().code(), Errc::kCorrupt) << cid;
  }
  EXPECT_EQ(device_.restore(StateRecord::none("virtio_vsock")).error().code(), Errc::kCorrupt);
}

TEST_F(VirtioVsockTest, TheHostLosesItsClientWithTheDevice) {
  FakeVsockHost host;
  {
    const VirtioVsock device("vsock1", 4,
                             {.executor = rig_.executor(), .host = host, .event_timer = std::make_unique<FakeTimer>()});
    EXPECT_NE(host.client(), nullptr);
  }
  EXPECT_EQ(host.client(), nullptr);
}

}  // namespace
}  // namespace tandem::devices
