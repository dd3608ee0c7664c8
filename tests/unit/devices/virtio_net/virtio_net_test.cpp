// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_net/virtio_net.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "devices/virtio_net/tx_header.hpp"
#include "devices/virtio_net/virtio_net_regs.hpp"
#include "devices/virtio_net/virtio_net_state.hpp"
#include "tests/fakes/fake_net_backend.hpp"
#include "tests/fakes/virtio_rig.hpp"
#include "vmm/lib/bits/bits.hpp"

namespace tandem::devices {

using namespace virtio_net;

namespace {

using Packet = FakeNetBackend::Packet;

constexpr MacAddress kMacAddress{0x02, 0x54, 0x44, 0x4d, 0x00, 0x01};
constexpr NetOffloads kAll{.checksum = true, .tso4 = true, .tso6 = true, .ecn = true, .uso = true};

/// A packet as the network has it: a header, then a frame of `frame_bytes` bytes that differ.
Packet packet_of(size_t frame_bytes, uint8_t seed = 1) {
  Packet packet(sizeof(Header) + frame_bytes);
  for (size_t index = sizeof(Header); index < packet.size(); ++index) {
    packet[index] = static_cast<std::byte>(index * 7 + seed);
  }
  return packet;
}

class VirtioNetTest : public ::testing::Test {
 protected:
  void set_up(uint64_t features = kFMac | kFStatus | kFMrgRxbuf) { rig_.activate(net_, features); }
  GuestQueue& rx() { return rig_.driver(kReceiveQueue); }
  GuestQueue& tx() { return rig_.driver(kTransmitQueue); }

  /// Offers a receive buffer, and tells the device. @return where it is.
  GuestAddr offer(uint32_t size_bytes) {
    const GuestAddr addr = rx().chain().writable(size_bytes).submit().writable.at(0).base();
    net_.notify(kReceiveQueue);
    return addr;
  }
  /// Sends the packet as one piece for the header and one for the frame.
  void send(const Packet& packet) {
    const std::span<const std::byte> bytes(packet);
    tx().chain().readable(bytes.first(sizeof(Header))).readable(bytes.subspan(sizeof(Header))).submit();
    net_.notify(kTransmitQueue);
  }
  Header header_at(GuestAddr addr) {
    Header header;
    const auto bytes = rig_.ram().read(addr, sizeof header);
    std::memcpy(&header, bytes.data(), sizeof header);
    return header;
  }
  /// The frame of a packet that starts at `addr` and spans no other buffer.
  std::vector<std::byte> frame_at(GuestAddr addr, size_t frame_bytes) {
    return rig_.ram().read(addr.plus(sizeof(Header)).value(), frame_bytes);
  }
  static std::vector<std::byte> frame_of(const Packet& packet) {
    return {packet.begin() + sizeof(Header), packet.end()};
  }
  template <typename T>
  T config(uint64_t offset) {
    std::array<std::byte, sizeof(T)> bytes{};
    net_.read_config(offset, bytes);
    return load_le<T>(bytes);
  }

  VirtioRig rig_;
  FakeNetBackend backend_{kAll, 9000};
  VirtioNet net_{"net0", kMacAddress, rig_.executor(), backend_};
};

// --- Arrival ---

TEST_F(VirtioNetTest, AnnouncesItsAddressByARarpRequest) {
  net_.announce();
  ASSERT_EQ(backend_.sent().size(), 1U);
  const std::vector<std::byte> frame = frame_of(backend_.sent()[0]);
  ASSERT_EQ(frame.size(), 60U);
  const auto mac_at = [&frame](size_t offset) {
    MacAddress mac{};
    std::memcpy(mac.data(), &frame[offset], mac.size());
    return mac;
  };
  EXPECT_EQ(mac_at(0), (MacAddress{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}));
  EXPECT_EQ(mac_at(6), kMacAddress);
  EXPECT_EQ(load_le<uint16_t>(std::span(frame).subspan(12)), 0x3580U);  // EtherType 0x8035
  EXPECT_EQ(load_le<uint16_t>(std::span(frame).subspan(20)), 0x0300U);  // operation 3
  EXPECT_EQ(mac_at(22), kMacAddress);
  EXPECT_EQ(mac_at(32), kMacAddress);
}

TEST_F(VirtioNetTest, AnAnnouncementThatTheNetworkRefusesChangesNothing) {
  backend_.stall_send(NetStall::kWouldBlock);
  net_.announce();
  EXPECT_EQ(net_.counters(), NetCounters{});
}

// --- Configuration and features ---

TEST_F(VirtioNetTest, ConfigurationHoldsAddressLinkAndMtu) {
  EXPECT_EQ(net_.device_id(), 1U);
  EXPECT_EQ(net_.queue_sizes().size(), 2U);
  MacAddress mac{};
  net_.read_config(kMac, std::as_writable_bytes(std::span(mac)));
  EXPECT_EQ(mac, kMacAddress);
  EXPECT_EQ(config<uint16_t>(kStatus), kStatusLinkUp);
  EXPECT_EQ(config<uint16_t>(kMaxVirtqueuePairs), 1U);
  EXPECT_EQ(config<uint16_t>(kMtu), 9000U);
  EXPECT_EQ(config<uint64_t>(kConfigBytes), 0U);
  EXPECT_EQ(config<uint64_t>(UINT64_MAX - 3), 0U);
}

TEST_F(VirtioNetTest, ConfigurationCannotBeWritten) {
  net_.write_config(kMac, std::vector<std::byte>(12, std::byte{0xff}));
  EXPECT_EQ(config<uint8_t>(kMac), 0x02U);
  EXPECT_EQ(config<uint16_t>(kStatus), kStatusLinkUp);
}

TEST_F(VirtioNetTest, OffersWhatTheHostCanDo) {
  EXPECT_EQ(net_.device_features(), kFMac | kFStatus | kFMrgRxbuf | kFMtu | kFCsum | kFGuestCsum | kFHostTso4 |
                                        kFHostTso6 | kFHostEcn | kFHostUso | kFGuestTso4 | kFGuestTso6 | kFGuestEcn |
                                        kFGuestUso4 | kFGuestUso6);
}

TEST_F(VirtioNetTest, OffersNoOffloadThatTheHostHasNot) {
  FakeNetBackend plain({}, 0);
  const VirtioNet net("net1", kMacAddress, rig_.executor(), plain);
  EXPECT_EQ(net.device_features(), kFMac | kFStatus | kFMrgRxbuf);
}

struct OffloadCase {
  const char* what;
  uint64_t features;
  NetOffloads expected;
};
class VirtioNetOffloadTest : public VirtioNetTest, public ::testing::WithParamInterface<OffloadCase> {};

TEST_P(VirtioNetOffloadTest, TheHostLearnsWhatTheDriverTakesOver) {
  set_up(GetParam().features);
  EXPECT_EQ(backend_.receive_offloads(), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Features, VirtioNetOffloadTest,
    ::testing::Values(
        OffloadCase{"None", kFCsum | kFHostTso4, {}}, OffloadCase{"Checksum", kFGuestCsum, {.checksum = true}},
        OffloadCase{"Tso4", kFGuestCsum | kFGuestTso4, {.checksum = true, .tso4 = true}},
        OffloadCase{"Tso6", kFGuestCsum | kFGuestTso6, {.checksum = true, .tso6 = true}},
        OffloadCase{"All", kFGuestCsum | kFGuestTso4 | kFGuestTso6 | kFGuestEcn | kFGuestUso4 | kFGuestUso6, kAll},
        OffloadCase{"HalfOfUso", kFGuestCsum | kFGuestUso4, {.checksum = true}},
        OffloadCase{"EcnWithoutTso", kFGuestCsum | kFGuestEcn, {.checksum = true}},
        OffloadCase{"TsoWithoutChecksum", kFGuestTso4 | kFGuestTso6 | kFGuestUso4 | kFGuestUso6, {}}),
    [](const auto& row) { return std::string(row.param.what); });

// --- Receiving ---

TEST_F(VirtioNetTest, APacketGoesIntoTheDriversBuffer) {
  set_up();
  const GuestAddr addr = offer(2048);
  const Packet packet = packet_of(100);
  backend_.arrive(packet);
  EXPECT_EQ(rx().take_used()->len, packet.size());
  EXPECT_EQ(frame_at(addr, 100), frame_of(packet));
  EXPECT_EQ(header_at(addr).num_buffers, 1U);
  EXPECT_EQ(rig_.transport().used_count(kReceiveQueue), 1U);
  EXPECT_EQ(net_.counters().received_packets, 1U);
  EXPECT_EQ(net_.counters().received_bytes, 100U);
}

TEST_F(VirtioNetTest, TheHeadersBufferCountIsOneAlsoWithoutMerging) {
  set_up(0);
  const GuestAddr addr = offer(2048);
  rig_.ram().write(addr, std::vector<std::byte>(sizeof(Header), std::byte{0xff}));
  backend_.arrive(packet_of(100));
  EXPECT_EQ(header_at(addr).num_buffers, 1U);
}

TEST_F(VirtioNetTest, OnlyADriverThatTakesOverChecksumsIsToldOfThem) {
  constexpr std::byte kDataValid{2};
  Packet packet = packet_of(100);
  packet[0] = kDataValid;
  set_up(kFMrgRxbuf | kFGuestCsum);
  const GuestAddr told = offer(2048);
  backend_.arrive(packet);
  EXPECT_EQ(header_at(told).flags, 2U);
  rig_.reset(net_);
  set_up(kFMrgRxbuf);
  const GuestAddr untold = offer(2048);
  backend_.arrive(packet);
  EXPECT_EQ(header_at(untold).flags, 0U);
}

TEST_F(VirtioNetTest, ALongPacketIsSpreadOverBuffers) {
  set_up();
  const std::array<GuestAddr, 3> addrs{offer(1000), offer(1000), offer(1000)};
  const Packet packet = packet_of(2400);
  backend_.arrive(packet);
  EXPECT_EQ(rx().take_used()->len, 1000U);
  EXPECT_EQ(rx().take_used()->len, 1000U);
  EXPECT_EQ(rx().take_used()->len, packet.size() - 2000);
  EXPECT_EQ(header_at(addrs[0]).num_buffers, 3U);
  std::vector<std::byte> frame = frame_at(addrs[0], 1000 - sizeof(Header));
  for (const auto& [addr, size_bytes] :
       {std::pair(addrs[1], size_t{1000}), std::pair(addrs[2], packet.size() - 2000)}) {
    const auto part = rig_.ram().read(addr, size_bytes);
    frame.insert(frame.end(), part.begin(), part.end());
  }
  EXPECT_EQ(frame, frame_of(packet));
}

TEST_F(VirtioNetTest, APacketThatFillsItsBufferExactlyNeedsNoOther) {
  set_up();
  const GuestAddr addr = offer(sizeof(Header) + 100);
  offer(1000);
  backend_.arrive(packet_of(100));
  EXPECT_EQ(rx().take_used()->len, sizeof(Header) + 100);
  EXPECT_FALSE(rx().take_used());
  EXPECT_EQ(header_at(addr).num_buffers, 1U);
}

TEST_F(VirtioNetTest, APacketWaitsUntilThereAreBuffersForAllOfIt) {
  set_up();
  const GuestAddr first = offer(1000);
  const Packet packet = packet_of(1500);
  backend_.arrive(packet);
  EXPECT_FALSE(rx().take_used());
  EXPECT_EQ(rig_.queue(kReceiveQueue).in_flight(), 0U) << "nothing is in flight between runs";
  EXPECT_EQ(backend_.waited_for(), Events::kNone);
  rig_.ram().write(first, std::vector<std::byte>(1000, std::byte{0xee}));  // its contents are no longer needed
  const GuestAddr second = offer(1000);
  EXPECT_EQ(rx().take_used()->len, 1000U);
  EXPECT_EQ(rx().take_used()->len, packet.size() - 1000);
  EXPECT_EQ(header_at(first).num_buffers, 2U);
  EXPECT_EQ(frame_at(first, 988), std::vector<std::byte>(packet.begin() + 12, packet.begin() + 1000));
  EXPECT_EQ(rig_.ram().read(second, packet.size() - 1000), std::vector<std::byte>(packet.begin() + 1000, packet.end()));
  EXPECT_EQ(net_.counters().receive_drops, 0U);
}

TEST_F(VirtioNetTest, APacketLongerThanTheWholeRingIsDropped) {
  set_up();
  for (unsigned count = 0; count < VirtioRig::kQueueSize; ++count) {
    offer(sizeof(Header));
  }
  backend_.arrive(packet_of(1500));
  EXPECT_EQ(net_.counters().receive_drops, 1U);
  backend_.arrive(packet_of(60));
  EXPECT_EQ(net_.counters().received_packets, 1U);
}

TEST_F(VirtioNetTest, WithoutMergingAPacketThatDoesNotFitIsDropped) {
  set_up(0);
  offer(200);
  offer(200);
  backend_.arrive(packet_of(200));
  EXPECT_FALSE(rx().take_used());
  EXPECT_EQ(net_.counters().receive_drops, 1U);
  backend_.arrive(packet_of(100));
  EXPECT_EQ(rx().take_used()->len, sizeof(Header) + 100);
}

TEST_F(VirtioNetTest, WithoutBuffersPacketsWaitInTheHost) {
  set_up();
  EXPECT_EQ(backend_.waited_for(), Events::kNone);
  backend_.arrive(packet_of(100));
  EXPECT_EQ(backend_.waiting_count(), 1U);
  offer(2048);
  EXPECT_EQ(backend_.waiting_count(), 0U);
  EXPECT_TRUE(rx().take_used());
  EXPECT_EQ(backend_.waited_for(), Events::kNone) << "the buffer is used";
  offer(2048);
  EXPECT_EQ(backend_.waited_for(), Events::kReadable);
}

TEST_F(VirtioNetTest, AFloodIsReceivedInRuns) {
  set_up(0);
  offer(sizeof(Header) + 14);
  for (unsigned count = 0; count < VirtioNet::kPacketsPerRun + 10; ++count) {
    net_.pause();  // so that they come at once
    backend_.arrive(packet_of(100));
  }
  rig_.resume(net_);
  EXPECT_EQ(net_.counters().receive_drops, VirtioNet::kPacketsPerRun);
  EXPECT_EQ(backend_.waiting_count(), 10U);
  EXPECT_TRUE(backend_.tell());
  EXPECT_EQ(backend_.waiting_count(), 0U);
}

TEST_F(VirtioNetTest, APacketInManyPiecesIsReceived) {
  set_up(kVirtioFIndirectDesc);
  auto builder = rx().chain().indirect();
  for (unsigned count = 0; count < kMaxQueueSize; ++count) {
    builder.writable(16);
  }
  const auto chain = builder.submit();
  net_.notify(kReceiveQueue);
  const Packet packet = packet_of(kMaxQueueSize * 16 - sizeof(Header));
  backend_.arrive(packet);
  EXPECT_EQ(rx().take_used()->len, packet.size());
  EXPECT_EQ(rig_.ram().read(chain.writable.back().base(), 16), std::vector<std::byte>(packet.end() - 16, packet.end()));
  EXPECT_EQ(rig_.ram().read(chain.writable.at(1).base(), 16),
            std::vector<std::byte>(packet.begin() + 16, packet.begin() + 32));
}

TEST_F(VirtioNetTest, TheLongestPacketIsReceivedIntoAHugeBuffer) {
  set_up(0);
  const GuestAddr addr = offer(1U << 20);
  const Packet packet = packet_of(kMaxFrameBytes);
  backend_.arrive(packet);
  EXPECT_EQ(rx().take_used()->len, packet.size());
  EXPECT_EQ(frame_at(addr, kMaxFrameBytes), frame_of(packet));
}

TEST_F(VirtioNetTest, WhatIsNoPacketIsDropped) {
  set_up();
  offer(2048);
  backend_.arrive(Packet(sizeof(Header) - 1));
  backend_.arrive(Packet());
  EXPECT_FALSE(rx().take_used());
  EXPECT_EQ(net_.counters().receive_drops, 2U);
}

TEST_F(VirtioNetTest, PacketsFromBeforeTheDriverAreDropped) {
  backend_.arrive(packet_of(100));
  set_up();
  offer(2048);
  EXPECT_FALSE(rx().take_used());
}

// --- Sending ---

TEST_F(VirtioNetTest, APacketIsSent) {
  set_up();
  const Packet packet = packet_of(100);
  send(packet);
  ASSERT_EQ(backend_.sent().size(), 1U);
  EXPECT_EQ(backend_.sent()[0], packet);
  EXPECT_EQ(tx().take_used()->len, 0U);
  EXPECT_EQ(net_.counters().sent_packets, 1U);
  EXPECT_EQ(net_.counters().sent_bytes, 100U);
  EXPECT_EQ(rig_.transport().used_count(kTransmitQueue), 1U);
}

TEST_F(VirtioNetTest, HeaderAndFrameMayBeCutAnywhere) {
  set_up();
  const Packet packet = packet_of(60);
  const std::span<const std::byte> bytes(packet);
  tx().chain().readable(bytes).submit();
  tx().chain().readable(bytes.first(5)).readable(bytes.subspan(5, 20)).readable(bytes.subspan(25)).submit();
  net_.notify(kTransmitQueue);
  ASSERT_EQ(backend_.sent().size(), 2U);
  EXPECT_EQ(backend_.sent()[0], packet);
  EXPECT_EQ(backend_.sent()[1], packet);
}

TEST_F(VirtioNetTest, APacketWithABadHeaderIsDropped) {
  set_up();
  Packet packet = packet_of(100);
  packet[0] = std::byte{kHdrNeedsCsum};  // was not negotiated
  send(packet);
  EXPECT_EQ(backend_.send_count(), 0U);
  EXPECT_EQ(net_.counters().send_drops, 1U);
  EXPECT_TRUE(tx().take_used());
}

TEST_F(VirtioNetTest, WhatIsNoPacketIsNotSent) {
  set_up();
  tx().chain().writable(100).submit();
  tx().chain().piece(FakeRam::kBase.value(), 0, 0).submit();
  tx().chain().readable("short").submit();
  tx().chain().piece(FakeRam::kBase.value(), 1U << 20, 0).submit();
  net_.notify(kTransmitQueue);
  EXPECT_EQ(backend_.send_count(), 0U);
  EXPECT_EQ(net_.counters().send_drops, 4U);
  EXPECT_FALSE(rig_.transport().needs_reset());
}

TEST_F(VirtioNetTest, APacketThatTheHostRefusesIsDropped) {
  set_up();
  backend_.stall_send(NetStall::kDropped);
  send(packet_of(100));
  EXPECT_TRUE(tx().take_used());
  EXPECT_EQ(net_.counters().send_drops, 1U);
  EXPECT_EQ(net_.counters().sent_packets, 0U);
}

TEST_F(VirtioNetTest, WhenTheHostHasNoRoomThePacketWaits) {
  set_up();
  backend_.stall_send(NetStall::kWouldBlock);
  send(packet_of(100));
  EXPECT_FALSE(tx().take_used());
  EXPECT_EQ(rig_.queue(kTransmitQueue).in_flight(), 0U) << "nothing is in flight between runs";
  EXPECT_EQ(backend_.waited_for(), Events::kWritable);
  net_.notify(kTransmitQueue);
  EXPECT_EQ(backend_.send_count(), 1U) << "a doorbell makes no room";
  backend_.stall_send(std::nullopt);
  EXPECT_TRUE(backend_.tell());
  EXPECT_TRUE(tx().take_used());
  EXPECT_EQ(backend_.sent().size(), 1U);
  EXPECT_EQ(backend_.waited_for(), Events::kNone);
}

TEST_F(VirtioNetTest, ManyPacketsAreSentInRuns) {
  set_up();
  const GuestAddr bytes = rig_.ram().allocate(64);
  for (unsigned sent = 0; sent < VirtioNet::kPacketsPerRun; sent += VirtioRig::kQueueSize) {
    ASSERT_TRUE(net_.pause());
    for (unsigned count = 0; count < VirtioRig::kQueueSize; ++count) {
      tx().chain().piece(bytes.value(), 64, 0).submit();
    }
    rig_.resume(net_);
    for (unsigned count = 0; count < VirtioRig::kQueueSize; ++count) {
      ASSERT_TRUE(tx().take_used());
    }
  }
  EXPECT_EQ(net_.counters().sent_packets, VirtioNet::kPacketsPerRun);
}

// --- The interface goes away ---

TEST_F(VirtioNetTest, WhenTheNetworkIsGoneTheLinkGoesDown) {
  set_up();
  offer(2048);
  backend_.stall_receive(NetStall::kGone);
  EXPECT_TRUE(backend_.tell());
  EXPECT_EQ(backend_.waited_for(), Events::kNone);
  EXPECT_EQ(config<uint16_t>(kStatus), 0U);
  EXPECT_EQ(rig_.transport().config_count(), 1U);
  send(packet_of(100));
  EXPECT_EQ(backend_.send_count(), 0U);
  EXPECT_TRUE(tx().take_used()) << "the driver gets its buffers back";
  ASSERT_TRUE(net_.reset());
  EXPECT_EQ(config<uint16_t>(kStatus), 0U);
}

TEST_F(VirtioNetTest, SendingMayFindOutThatTheNetworkIsGone) {
  set_up(0);
  backend_.stall_send(NetStall::kGone);
  send(packet_of(100));
  EXPECT_TRUE(tx().take_used());
  EXPECT_EQ(config<uint16_t>(kStatus), 0U);
  EXPECT_EQ(rig_.transport().config_count(), 0U) << "the driver does not know of status";
}

// --- Hostile drivers, and doorbells out of place ---

TEST_F(VirtioNetTest, AReceiveBufferThatHoldsNoHeaderNeedsAReset) {
  set_up();
  offer(sizeof(Header) - 1);
  EXPECT_TRUE(rig_.transport().needs_reset());
  EXPECT_EQ(backend_.waited_for(), Events::kNone);
  backend_.arrive(packet_of(100));
  EXPECT_EQ(net_.counters().received_packets, 0U);
}

TEST_F(VirtioNetTest, AReadableReceiveBufferNeedsAReset) {
  set_up();
  rx().chain().readable("no room at all in this one").submit();
  net_.notify(kReceiveQueue);
  EXPECT_TRUE(rig_.transport().needs_reset());
}

TEST_F(VirtioNetTest, ASecondBufferThatHoldsNoHeaderNeedsAReset) {
  set_up();
  offer(1000);
  rx().chain().writable(4).submit();
  backend_.arrive(packet_of(1500));
  EXPECT_TRUE(rig_.transport().needs_reset());
  EXPECT_FALSE(rx().take_used());
}

TEST_F(VirtioNetTest, ARingThatBreaksUnderAPacketNeedsAReset) {
  set_up();
  offer(1000);
  rig_.break_ring(kReceiveQueue);
  backend_.arrive(packet_of(1500));
  EXPECT_EQ(rig_.transport().needs_reset(), text_of(RingFault::kDescriptor));
}

TEST_F(VirtioNetTest, ABrokenTransmitRingNeedsAResetAndWorksAfterIt) {
  set_up();
  offer(1000);
  rig_.break_ring(kTransmitQueue);
  net_.notify(kTransmitQueue);
  EXPECT_TRUE(rig_.transport().needs_reset());
  EXPECT_EQ(backend_.waited_for(), Events::kNone);
  rig_.reset(net_);
  set_up();
  send(packet_of(100));
  EXPECT_EQ(backend_.sent().size(), 1U);
}

TEST_F(VirtioNetTest, DoorbellsOutOfPlaceAreIgnored) {
  net_.notify(kReceiveQueue);
  net_.notify(kTransmitQueue);
  set_up();
  net_.notify(2);
  net_.notify(UINT16_MAX);
  rig_.activate(net_, 0, {kReceiveQueue, kTransmitQueue});
  net_.notify(kReceiveQueue);
  net_.notify(kTransmitQueue);
  backend_.arrive(packet_of(100));
  EXPECT_FALSE(rig_.transport().needs_reset());
  EXPECT_EQ(backend_.waited_for(), Events::kNone);
}

// --- Life cycle ---

TEST_F(VirtioNetTest, PausesBeforeADriverIsThere) {
  EXPECT_TRUE(net_.pause());
  EXPECT_TRUE(net_.pause());
  EXPECT_TRUE(net_.resume());
  EXPECT_TRUE(net_.resume());
  EXPECT_EQ(backend_.waited_for(), Events::kNone);
}

TEST_F(VirtioNetTest, DuringAPauseNothingMoves) {
  set_up();
  offer(2048);
  ASSERT_TRUE(net_.pause());
  EXPECT_EQ(backend_.waited_for(), Events::kNone);
  backend_.arrive(packet_of(100));
  send(packet_of(100));
  EXPECT_FALSE(rx().take_used());
  EXPECT_FALSE(tx().take_used());
  rig_.resume(net_);
  EXPECT_TRUE(rx().take_used());
  EXPECT_TRUE(tx().take_used());
}

TEST_F(VirtioNetTest, AnEventOnItsWayWhenThePauseComesIsIgnored) {
  set_up();
  offer(2048);
  ASSERT_TRUE(net_.pause());
  backend_.arrive(packet_of(100));
  backend_.client()->net_ready(Events::kBoth);
  EXPECT_FALSE(rx().take_used());
  EXPECT_EQ(backend_.waited_for(), Events::kNone);
}

TEST_F(VirtioNetTest, AResetForgetsTheWaitingPacket) {
  set_up();
  offer(1000);
  backend_.arrive(packet_of(1500));
  rig_.reset(net_);
  EXPECT_EQ(backend_.waited_for(), Events::kNone);
  set_up();
  const GuestAddr addr = offer(2048);
  EXPECT_FALSE(rx().take_used());
  const Packet packet = packet_of(100, 9);
  backend_.arrive(packet);
  EXPECT_EQ(frame_at(addr, 100), frame_of(packet));
}

TEST_F(VirtioNetTest, AReceiveQueueTakenBackIsLeftAlone) {
  set_up();
  offer(2048);
  ASSERT_TRUE(net_.pause());
  rig_.queue(kReceiveQueue).reset();
  rig_.resume(net_);
  backend_.arrive(packet_of(100));
  EXPECT_FALSE(rx().take_used());
  EXPECT_EQ(backend_.waited_for(), Events::kNone);
}

TEST_F(VirtioNetTest, AddressLinkAndMtuAreSaved) {
  const StateRecord record = net_.save().value();
  FakeNetBackend other_backend(kAll, 1500);
  VirtioNet other("net0", MacAddress{0x02, 0, 0, 0, 0, 9}, rig_.executor(), other_backend);
  ASSERT_TRUE(other.pause());
  ASSERT_TRUE(other.restore(record));
  EXPECT_EQ(other.save().value(), record);
  std::array<std::byte, kConfigBytes> before{};
  std::array<std::byte, kConfigBytes> after{};
  net_.read_config(0, before);
  other.read_config(0, after);
  EXPECT_EQ(after, before);
}

TEST_F(VirtioNetTest, ALinkThatWasDownElsewhereComesUpAfterRestore) {
  ASSERT_TRUE(net_.pause());
  ASSERT_TRUE(net_.restore(save_state(VirtioNetStateV1{.mac = kMacAddress, .status = 0, .mtu = 1500})));
  EXPECT_EQ(config<uint16_t>(kStatus), 0U);
  rig_.activate(net_, kFStatus);
  EXPECT_EQ(rig_.transport().config_count(), 0U);
  rig_.resume(net_);
  EXPECT_EQ(config<uint16_t>(kStatus), kStatusLinkUp);
  EXPECT_EQ(rig_.transport().config_count(), 1U);
}

TEST_F(VirtioNetTest, ImpossibleStateIsRefused) {
  const MacAddress multicast{0x01, 0, 0, 0, 0, 1};
  const auto restore = [this](const StateRecord& record) { return net_.restore(record).error().code(); };
  EXPECT_EQ(restore(save_state(VirtioNetStateV1{.mac = multicast, .status = 1, .mtu = 0})), Errc::kCorrupt);
  EXPECT_EQ(restore(save_state(VirtioNetStateV1{.mac = kMacAddress, .status = 2, .mtu = 0})), Errc::kCorrupt);
  EXPECT_EQ(restore(StateRecord::none("virtio_net")), Errc::kCorrupt);
  EXPECT_EQ(restore(StateRecord::none("virtio_rng")), Errc::kCorrupt);
}

TEST_F(VirtioNetTest, ADriverThatStartsAgainAndAgainFillsNoLog) {
  backend_.fail_start();
  ::testing::internal::CaptureStderr();
  for (unsigned count = 0; count < 100; ++count) {
    set_up();
    rig_.reset(net_);
  }
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(lines, '\n'), 7) << lines;  // the 1st, 2nd, 4th, …, 64th
}

TEST_F(VirtioNetTest, TheBackendLosesItsClientWithTheDevice) {
  FakeNetBackend backend;
  {
    const VirtioNet net("net1", kMacAddress, rig_.executor(), backend);
    EXPECT_NE(backend.client(), nullptr);
  }
  EXPECT_EQ(backend.client(), nullptr);
}

}  // namespace
}  // namespace tandem::devices
