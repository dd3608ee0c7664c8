// SPDX-License-Identifier: Apache-2.0
// A source that says what it should not: the receiver refuses it, opens nothing and runs nothing.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "tests/unit/vmm/migration/migration_rig.hpp"
#include "vmm/lib/checksum/checksum.hpp"

namespace tandem::migration {
namespace {

constexpr size_t kRamBytes = 8 * 4096;
constexpr MigrationLimits kLimits{.farewell = std::chrono::milliseconds(0)};

using Script = std::function<void(MigrationStream& stream)>;

Offer good_offer() { return {.spec = "a machine", .ram_bytes = kRamBytes, .images = {}}; }

template <typename Message>
void say(MigrationStream& stream, Message message) {
  static_cast<void>(stream.send(std::move(message)));  // the receiver may have gone away by then
}

void say_chunk(MigrationStream& stream, const Chunk& chunk) {
  static_cast<void>(stream.send(MessageType::kChunk, chunk.header(), chunk.contents));
}

/// All that comes before RAM.
void begin(MigrationStream& stream) {
  ASSERT_TRUE(stream.open());
  say(stream, good_offer());
  ASSERT_TRUE(stream.expect<Answer>());
  ASSERT_TRUE(stream.expect<Prepared>());
}

/// One round that holds all of RAM.
void whole_round(MigrationStream& stream, uint32_t number) {
  say(stream, RoundBegin{number});
  say_chunk(stream, {.offset = 0, .size_bytes = kRamBytes, .encoding = ChunkEncoding::kZero, .contents = {}});
  say(stream, RoundEnd{1});
  ASSERT_TRUE(stream.expect<RoundDone>());
}

struct HostileCase {
  const char* name;
  const char* refusal;
  bool is_prepared;
  Script script;
};

const std::vector<std::byte> kPage(4096, std::byte{1});
const std::vector<std::byte> kLongChunk(kMaxChunkBytes + 64, std::byte{1});

Chunk raw_page(uint64_t offset) {
  return {.offset = offset, .size_bytes = 4096, .encoding = ChunkEncoding::kRaw, .contents = kPage};
}

Script with_offer(std::function<void(Offer& offer)> change) {
  return [change = std::move(change)](MigrationStream& stream) {
    ASSERT_TRUE(stream.open());
    Offer offer = good_offer();
    change(offer);
    say(stream, std::move(offer));
  };
}

Script with_chunks(std::vector<Chunk> chunks) {
  return [chunks = std::move(chunks)](MigrationStream& stream) {
    begin(stream);
    say(stream, RoundBegin{1});
    for (const Chunk& chunk : chunks) {
      say_chunk(stream, chunk);
    }
  };
}

Script after_ram(Script script) {
  return [script = std::move(script)](MigrationStream& stream) {
    begin(stream);
    whole_round(stream, 1);
    script(stream);
  };
}

const HostileCase kHostileCases[] = {
    {"ChunkFirst", "'chunk' came where 'offer' was due", false,
     [](MigrationStream& stream) {
       ASSERT_TRUE(stream.open());
       say_chunk(stream, raw_page(0));
     }},
    {"CommitFirst", "'commit' came where 'offer' was due", false,
     [](MigrationStream& stream) {
       ASSERT_TRUE(stream.open());
       say(stream, Commit{});
     }},
    {"NoRam", "the offer is impossible", false, with_offer([](Offer& offer) { offer.ram_bytes = 0; })},
    {"OddRam", "the offer is impossible", false, with_offer([](Offer& offer) { offer.ram_bytes = 4097; })},
    {"MachineOfOtherSize", "the offer speaks of 4096 bytes of RAM", true,
     with_offer([](Offer& offer) { offer.ram_bytes = 4096; })},
    {"LongSpec", "the offer is impossible", false,
     with_offer([](Offer& offer) { offer.spec.resize(kMaxSpecBytes + 1); })},
    {"ManyImages", "the offer is impossible", false, with_offer([](Offer& offer) { offer.images.resize(9); })},
    {"HugeImage", "impossible boot image", false,
     with_offer([](Offer& offer) { offer.images = {{.role = "kernel", .size_bytes = uint64_t{1} << 60}}; })},
    {"NamelessImage", "impossible boot image", false, with_offer([](Offer& offer) { offer.images.resize(1); })},
    {"ImageTwice", "two boot images", false,
     with_offer([](Offer& offer) { offer.images = {{.role = "kernel"}, {.role = "kernel"}}; })},
    {"ImageWithWrongChecksum", "wrong checksum", false,
     [](MigrationStream& stream) {
       ASSERT_TRUE(stream.open());
       Offer offer = good_offer();
       offer.images = {{.role = "kernel", .size_bytes = 4}};
       say(stream, std::move(offer));
       ASSERT_TRUE(stream.expect<Answer>());
       static_cast<void>(stream.send(MessageType::kImage, std::span(kPage).first(0), std::vector<std::byte>(8)));
     }},
    {"ImageLongerThanOffered", "longer than it was offered", false,
     [](MigrationStream& stream) {
       ASSERT_TRUE(stream.open());
       Offer offer = good_offer();
       offer.images = {{.role = "kernel", .size_bytes = 4}};
       say(stream, std::move(offer));
       ASSERT_TRUE(stream.expect<Answer>());
       static_cast<void>(stream.send(MessageType::kImage, std::vector<std::byte>(4), kPage));
     }},
    {"AnotherMachine", "does not fit here", false, with_offer([](Offer& offer) { offer.spec = "/etc/passwd"; })},
    {"ChunkBehindRam", "are not in RAM", true, with_chunks({raw_page(kRamBytes)})},
    {"ChunkAcrossTheEnd", "are not in RAM", true,
     with_chunks({{.offset = 4096, .size_bytes = kRamBytes, .encoding = ChunkEncoding::kZero, .contents = {}}})},
    {"ChunkThatWraps", "are not in RAM", true,
     with_chunks({{.offset = ~uint64_t{4095}, .size_bytes = 8192, .encoding = ChunkEncoding::kZero, .contents = {}}})},
    {"ChunkInsideAPage", "are not in RAM", true,
     with_chunks({{.offset = 8, .size_bytes = 4096, .encoding = ChunkEncoding::kRaw, .contents = kPage}})},
    {"EmptyChunk", "are not in RAM", true,
     with_chunks({{.offset = 0, .size_bytes = 0, .encoding = ChunkEncoding::kRaw, .contents = {}}})},
    {"PageTwice", "comes twice", true, with_chunks({raw_page(0), raw_page(0)})},
    {"PagesOutOfOrder", "out of order", true, with_chunks({raw_page(4096), raw_page(0)})},
    {"ShortContents", "bytes for", true,
     with_chunks({{.offset = 0, .size_bytes = 8192, .encoding = ChunkEncoding::kRaw, .contents = kPage}})},
    {"ZeroWithContents", "bytes for", true,
     with_chunks({{.offset = 0, .size_bytes = 4096, .encoding = ChunkEncoding::kZero, .contents = kPage}})},
    {"BrokenCompression", "broken compression", true,
     with_chunks({{.offset = 0, .size_bytes = 8192, .encoding = ChunkEncoding::kZstd, .contents = kPage}})},
    {"UnknownEncoding", "unknown encoding 3", true,
     with_chunks({{.offset = 0, .size_bytes = 4096, .encoding = static_cast<ChunkEncoding>(3), .contents = kPage}})},
    {"RoundOutOfOrder", "round 2 came after round 0", true,
     [](MigrationStream& stream) {
       begin(stream);
       say(stream, RoundBegin{2});
     }},
    {"WrongCountOfChunks", "has 1 chunks where 2 are due", true,
     [](MigrationStream& stream) {
       begin(stream);
       say(stream, RoundBegin{1});
       say_chunk(stream, raw_page(0));
       say(stream, RoundEnd{2});
     }},
    {"StateWithoutRam", "no RAM came", true,
     [](MigrationStream& stream) {
       begin(stream);
       say(stream, StateEnd{0});
     }},
    {"ComponentTwice", "comes twice", true, after_ram([](MigrationStream& stream) {
       say(stream, Record{.component = "vcpu0", .kind = "x", .version = 1, .payload = {}});
       say(stream, Record{.component = "vcpu0", .kind = "x", .version = 1, .payload = {}});
     })},
    {"ComponentWithALongName", "impossible name", true, after_ram([](MigrationStream& stream) {
       say(stream, Record{.component = std::string(65, 'x'), .kind = "x", .version = 1, .payload = {}});
     })},
    {"MissingComponent", "0 components came where 1 were due", true,
     after_ram([](MigrationStream& stream) { say(stream, StateEnd{1}); })},
    {"CommitBeforeTheState", "'commit' came where 'state end' was due", true,
     after_ram([](MigrationStream& stream) { say(stream, Commit{}); })},
    {"RamAfterTheState", "'round begin' came where 'commit' was due", true, after_ram([](MigrationStream& stream) {
       say(stream, StateEnd{0});
       ASSERT_TRUE(stream.expect<Ready>());
       say(stream, RoundBegin{2});
     })},
    {"GivesUp", "the other side gave up: no\xffpe ", true,
     after_ram([](MigrationStream& stream) { say(stream, Failure{"no\xffpe\n"}); })},
};

class HostileSourceTest : public testing::TestWithParam<HostileCase> {};

TEST_P(HostileSourceTest, IsRefused) {
  auto [source_end, target_end] = connected_sockets();
  FakeMigrationTarget target(kRamBytes, nullptr);
  Result<MigrationReceiver::End> end = MigrationReceiver::End::kChecked;
  std::thread receiving([&, socket = std::move(target_end)]() mutable {
    SocketChannel channel = SocketChannel::create(std::move(socket)).value();
    end = MigrationReceiver(channel, target, kLimits).run();
  });
  {
    SocketChannel channel = SocketChannel::create(std::move(source_end)).value();
    MigrationStream stream(channel, kLimits);
    GetParam().script(stream);
    channel.end_output();
    receiving.join();
  }
  ASSERT_FALSE(end);
  EXPECT_NE(end.error().message().find(GetParam().refusal), std::string::npos) << end.error().message();
  EXPECT_EQ(target.was_prepared(), GetParam().is_prepared);
  EXPECT_FALSE(target.is_running());
}

INSTANTIATE_TEST_SUITE_P(Cases, HostileSourceTest, testing::ValuesIn(kHostileCases),
                         [](const auto& row) { return std::string(row.param.name); });

/// What a receiver says to bytes that no stream of ours would send.
std::string refusal_of(std::span<const std::byte> bytes) {
  auto [source_end, target_end] = connected_sockets();
  EXPECT_EQ(::send(source_end.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  ::shutdown(source_end.get(), SHUT_WR);
  FakeMigrationTarget target(kRamBytes, nullptr);
  SocketChannel channel = SocketChannel::create(std::move(target_end)).value();
  const auto end = MigrationReceiver(channel, target, kLimits).run();
  EXPECT_FALSE(target.was_prepared());
  return end ? "accepted" : end.error().message();
}

std::vector<std::byte> preamble(uint32_t version = kProtocolVersion, std::string_view architecture = "aarch64") {
  std::vector<std::byte> bytes(32);
  std::memcpy(bytes.data(), "TANDEMMIG\r\n", 11);
  std::memcpy(&bytes[12], &version, sizeof version);
  std::memcpy(&bytes[16], architecture.data(), architecture.size());
  return bytes;
}

std::vector<std::byte> with_header(std::array<uint32_t, 4> words) {
  std::vector<std::byte> bytes = preamble();
  const auto checksum = checksum_of(std::as_bytes(std::span(words))).bytes();
  bytes.insert(bytes.end(), checksum.begin(), checksum.end());
  const auto header = std::as_bytes(std::span(words));
  bytes.insert(bytes.end(), header.begin(), header.end());
  return bytes;
}

TEST(HostileBytesTest, AnotherProtocolIsRefused) {
  const std::string_view text = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_EQ(refusal_of(std::as_bytes(std::span(text))), "the other side is no migration of Tandem");
}

TEST(HostileBytesTest, AnotherVersionIsNamed) {
  EXPECT_EQ(refusal_of(preamble(7)), "the other side speaks version 7 of the migration protocol, this one version 1");
}

TEST(HostileBytesTest, AnotherArchitectureIsRefused) {
  EXPECT_EQ(refusal_of(preamble(kProtocolVersion, "riscv64")), "the other side is no aarch64 host");
}

TEST(HostileBytesTest, NothingIsRefused) { EXPECT_EQ(refusal_of({}), "the other side has closed the connection"); }

TEST(HostileBytesTest, AHugeLengthIsRefusedByItsHeader) {
  EXPECT_EQ(refusal_of(with_header({1, 0xFFFF'FFFF, 0, 0})), "message 0: broken header");
}

TEST(HostileBytesTest, AnUnknownTypeIsRefused) {
  EXPECT_EQ(refusal_of(with_header({99, 0, 0, 0})), "message 0: broken header");
}

TEST(HostileBytesTest, AWrongSequenceNumberIsRefused) {
  EXPECT_EQ(refusal_of(with_header({1, 0, 1, 0})), "message 0: broken header");
}

TEST(HostileBytesTest, ReservedBitsAreRefused) {
  EXPECT_EQ(refusal_of(with_header({1, 0, 0, 1})), "message 0: broken header");
}

TEST(HostileBytesTest, AnEmptyOfferIsRefused) {
  EXPECT_NE(refusal_of(with_header({1, 0, 0, 0})).find("offer: "), std::string::npos);
}

TEST(HostileBytesTest, AWrongChecksumIsRefused) {
  std::vector<std::byte> bytes = with_header({1, 0, 0, 0});
  bytes[32] ^= std::byte{1};
  EXPECT_EQ(refusal_of(bytes), "message 0: wrong checksum");
}

}  // namespace
}  // namespace tandem::migration
