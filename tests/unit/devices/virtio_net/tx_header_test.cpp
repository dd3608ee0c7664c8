// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_net/tx_header.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace tandem::devices::virtio_net {
namespace {

constexpr uint64_t kAllOffloads = kFCsum | kFHostTso4 | kFHostTso6 | kFHostEcn | kFHostUso;

/// A packet in host memory: header, then zeros.
class Packet {
 public:
  Packet(const Header& header, size_t frame_bytes) : bytes_(sizeof header + frame_bytes) {
    std::memcpy(bytes_.data(), &header, sizeof header);
  }
  [[nodiscard]] std::optional<Header> check(uint64_t features) const {
    const DescriptorChain chain(0, {.readable = {std::span(bytes_)}, .writable = {}});
    return checked_tx_header(chain, features);
  }

 private:
  std::vector<std::byte> bytes_;
};

struct Case {
  const char* what;
  Header header;
  size_t frame_bytes;
  uint64_t features;
  bool is_sent;
};

constexpr Header kPlain{};
constexpr Header kChecksum{.flags = kHdrNeedsCsum,
                           .gso_type = 0,
                           .hdr_len = 0,
                           .gso_size = 0,
                           .csum_start = 34,
                           .csum_offset = 16,
                           .num_buffers = 0};
constexpr Header segmented(uint8_t type, uint16_t size = 1448) {
  return {.flags = kHdrNeedsCsum,
          .gso_type = type,
          .hdr_len = 66,
          .gso_size = size,
          .csum_start = 34,
          .csum_offset = 16,
          .num_buffers = 0};
}
constexpr Header checksum_at(uint16_t start, uint16_t offset) {
  return {.flags = kHdrNeedsCsum,
          .gso_type = 0,
          .hdr_len = 0,
          .gso_size = 0,
          .csum_start = start,
          .csum_offset = offset,
          .num_buffers = 0};
}

class TxHeaderCaseTest : public ::testing::TestWithParam<Case> {};

TEST_P(TxHeaderCaseTest, IsSentOrRefused) {
  const Case& row = GetParam();
  EXPECT_EQ(Packet(row.header, row.frame_bytes).check(row.features).has_value(), row.is_sent);
}

INSTANTIATE_TEST_SUITE_P(Frames, TxHeaderCaseTest,
                         ::testing::Values(Case{"Empty", kPlain, 0, 0, false},
                                           Case{"Runt", kPlain, kMinFrameBytes - 1, 0, false},
                                           Case{"Shortest", kPlain, kMinFrameBytes, 0, true},
                                           Case{"Longest", kPlain, kMaxFrameBytes, 0, true},
                                           Case{"TooLong", kPlain, kMaxFrameBytes + 1, 0, false}),
                         [](const auto& row) { return std::string(row.param.what); });

INSTANTIATE_TEST_SUITE_P(Checksums, TxHeaderCaseTest,
                         ::testing::Values(Case{"Negotiated", kChecksum, 1514, kFCsum, true},
                                           Case{"NotNegotiated", kChecksum, 1514, kAllOffloads & ~kFCsum, false},
                                           Case{"AtTheEnd", checksum_at(50, 8), 60, kFCsum, true},
                                           Case{"BeyondTheEnd", checksum_at(50, 9), 60, kFCsum, false},
                                           Case{"StartBeyondTheEnd", checksum_at(UINT16_MAX, 0), 60, kFCsum, false},
                                           Case{"SumOver16Bits", checksum_at(UINT16_MAX, UINT16_MAX), 60, kFCsum,
                                                false}),
                         [](const auto& row) { return std::string(row.param.what); });

INSTANTIATE_TEST_SUITE_P(
    Segmentation, TxHeaderCaseTest,
    ::testing::Values(Case{"TcpV4", segmented(kGsoTcpV4), 4000, kFCsum | kFHostTso4, true},
                      Case{"TcpV4NotNegotiated", segmented(kGsoTcpV4), 4000, kAllOffloads & ~kFHostTso4, false},
                      Case{"TcpV6", segmented(kGsoTcpV6), 4000, kFCsum | kFHostTso6, true},
                      Case{"TcpV6NotNegotiated", segmented(kGsoTcpV6), 4000, kAllOffloads & ~kFHostTso6, false},
                      Case{"Ecn", segmented(kGsoTcpV4 | kGsoEcn), 4000, kAllOffloads, true},
                      Case{"EcnNotNegotiated", segmented(kGsoTcpV4 | kGsoEcn), 4000, kAllOffloads & ~kFHostEcn, false},
                      Case{"EcnAlone", segmented(kGsoEcn), 4000, kAllOffloads, false},
                      Case{"Udp", segmented(kGsoUdpL4), 4000, kFCsum | kFHostUso, true},
                      Case{"UdpNotNegotiated", segmented(kGsoUdpL4), 4000, kAllOffloads & ~kFHostUso, false},
                      Case{"UdpWithEcn", segmented(kGsoUdpL4 | kGsoEcn), 4000, kAllOffloads, false},
                      Case{"UdpFragmentation", segmented(3), 4000, kAllOffloads, false},
                      Case{"Unknown", segmented(0x7f), 4000, kAllOffloads, false},
                      Case{"SegmentsOfNothing", segmented(kGsoTcpV4, 0), 4000, kAllOffloads, false}),
    [](const auto& row) { return std::string(row.param.what); });

TEST(TxHeaderTest, ABufferShorterThanAHeaderIsRefused) {
  const std::vector<std::byte> bytes(sizeof(Header) - 1);
  const DescriptorChain chain(0, {.readable = {std::span(bytes)}, .writable = {}});
  EXPECT_FALSE(checked_tx_header(chain, kAllOffloads));
}

TEST(TxHeaderTest, WhatADeviceIgnoresIsCleared) {
  const Header poked{.flags = 0xfe,
                     .gso_type = 0,
                     .hdr_len = UINT16_MAX,
                     .gso_size = UINT16_MAX,
                     .csum_start = UINT16_MAX,
                     .csum_offset = UINT16_MAX,
                     .num_buffers = UINT16_MAX};
  const auto header = Packet(poked, 60).check(0);
  ASSERT_TRUE(header);
  const Header zero{};
  EXPECT_EQ(std::memcmp(&*header, &zero, sizeof zero), 0);
}

TEST(TxHeaderTest, AHeaderLengthThatCannotBeTrueIsCleared) {
  Header header = segmented(kGsoTcpV4);
  header.hdr_len = 4001;
  EXPECT_EQ(Packet(header, 4000).check(kAllOffloads)->hdr_len, 0U);
  header.hdr_len = kMinFrameBytes - 1;
  EXPECT_EQ(Packet(header, 4000).check(kAllOffloads)->hdr_len, 0U);
  header.hdr_len = 66;
  EXPECT_EQ(Packet(header, 4000).check(kAllOffloads)->hdr_len, 66U);
}

}  // namespace
}  // namespace tandem::devices::virtio_net
