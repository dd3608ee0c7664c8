// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/socket_channel.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <thread>
#include <vector>

#include "tests/fakes/faulty_channel.hpp"
#include "vmm/migration/migration_message.hpp"
#include "vmm/migration/migration_stream.hpp"
#include "vmm/migration/ram_sender.hpp"

namespace tandem::migration {
namespace {

class SocketChannelTest : public testing::Test {
 protected:
  SocketChannelTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    here_.emplace(SocketChannel::create(UniqueFd(ends[0])).value());
    there_.emplace(SocketChannel::create(UniqueFd(ends[1])).value());
  }
  static std::vector<std::byte> bytes(size_t count) {
    std::vector<std::byte> all(count);
    for (size_t index = 0; index < count; ++index) {
      all[index] = static_cast<std::byte>(index * 7 + index / 251);
    }
    return all;
  }
  std::optional<SocketChannel> here_;
  std::optional<SocketChannel> there_;
};

TEST_F(SocketChannelTest, WhatCameAtOnceIsReadInPiecesOfAnySize) {
  const std::vector<std::byte> sent = bytes(300'000);
  std::thread sender([&] { EXPECT_TRUE(here_->write(sent, Deadline())); });
  std::vector<std::byte> read;
  for (const size_t count : {1U, 32U, 100U, 70'000U, 5U, 65'536U, 64'000U, 100'000U, 326U}) {
    std::vector<std::byte> piece(count);
    ASSERT_TRUE(there_->read(piece, Deadline()));
    read.insert(read.end(), piece.begin(), piece.end());
  }
  sender.join();
  EXPECT_TRUE(read == sent);
  EXPECT_FALSE(there_->has_input());
}

TEST_F(SocketChannelTest, WhatWasReadAheadIsInput) {
  ASSERT_TRUE(here_->write(bytes(10), Deadline()));
  std::array<std::byte, 4> first{};
  ASSERT_TRUE(there_->read(first, Deadline()));
  EXPECT_TRUE(there_->has_input());
  std::array<std::byte, 6> rest{};
  ASSERT_TRUE(there_->read(rest, Deadline()));
  EXPECT_FALSE(there_->has_input());
  EXPECT_EQ(rest[0], bytes(10)[4]);
}

TEST_F(SocketChannelTest, WhatCameBeforeTheEndIsReadBeforeIt) {
  ASSERT_TRUE(here_->write(bytes(10), Deadline()));
  here_.reset();
  std::array<std::byte, 5> half{};
  EXPECT_TRUE(there_->read(half, Deadline()));
  EXPECT_TRUE(there_->read(half, Deadline()));
  EXPECT_EQ(there_->read(half, Deadline()).error().code(), Errc::kClosed);
}

TEST_F(SocketChannelTest, ChunksOfOnePageAreSentManyAtATime) {
  constexpr size_t kPage = 4096;
  constexpr size_t kPages = 512;
  std::vector<std::byte> ram(kPages * kPage);
  for (size_t page = 0; page < kPages; page += 2) {
    ram[page * kPage + 9] = std::byte{1};
  }
  std::vector<std::byte> arrived(ram.size());
  std::thread receiver([&] {
    MigrationStream stream(*there_, MigrationLimits{});
    ChunkPlacer placer(arrived);
    placer.begin_round();
    EXPECT_TRUE(stream.expect<RoundBegin>());
    for (auto message = stream.receive(); message && message->type == MessageType::kChunk; message = stream.receive()) {
      EXPECT_TRUE(placer.place(Chunk::decode(message->payload).value()));
    }
    EXPECT_TRUE(stream.send(RoundDone{1}));
  });
  fakes::FaultyChannel channel(*std::move(here_), fakes::ChannelFault::kNone, 0);
  MigrationStream stream(channel, MigrationLimits{});
  RamSender sender(stream, ram, ChunkEncoder::Compress::kNo);
  DirtyBitmap pages(GuestRange::fixed(0, kPages * kPage), kPage);
  pages.mark_all();
  EXPECT_TRUE(sender.send_round(pages, [](uint64_t) { return Result<void>(); }));
  receiver.join();
  EXPECT_TRUE(arrived == ram);
  EXPECT_LT(channel.message_count(), kPages / 16);
}

}  // namespace
}  // namespace tandem::migration
