// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_blk/virtio_blk.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>

#include "devices/virtio_blk/virtio_blk_state.hpp"
#include "devices/virtio_mmio/virtio_mmio.hpp"
#include "devices/virtio_mmio/virtio_mmio_regs.hpp"
#include "tests/fakes/fake_block_engine.hpp"
#include "tests/fakes/fake_irq_sink.hpp"
#include "tests/fakes/fake_ram.hpp"
#include "tests/fakes/guest_queue.hpp"
#include "tests/fakes/guest_virtio_mmio.hpp"
#include "tests/fakes/memory_file.hpp"

namespace tandem::devices {
namespace {

using namespace virtio_blk;
using fakes::MemoryFile;
using Kind = BlockRequest::Kind;

constexpr uint64_t kDiskSectors = 64;
constexpr uint64_t kDiskBytes = kDiskSectors * kSectorBytes;
constexpr uint64_t kWritableFeatures = VIRTIO_BLK_F_FLUSH | VIRTIO_BLK_F_DISCARD | VIRTIO_BLK_F_WRITE_ZEROES;
constexpr Intid kIntid = Intid::spi(16);

std::string sector_text(char fill, uint64_t count = 1) { return std::string(count * kSectorBytes, fill); }

RequestHeader header(uint32_t type, uint64_t sector = 0) { return {.type = type, .reserved = 0, .sector = sector}; }

/// A block device behind its transport, and a driver for it.
class BlkMachine {
 public:
  BlkMachine(FakeRam& ram, std::unique_ptr<BlockEngine> engine)
      : device_(VirtioBlk::create("disk0", "serial", std::move(engine), executor_).value()),
        transport_("virtio0", IrqLine(sink_, kIntid), *device_, ram.memory(), executor_) {}

  VirtioBlk& device() { return *device_; }
  VirtioMmio& transport() { return transport_; }
  GuestVirtioMmio& driver() { return driver_; }
  [[nodiscard]] uint64_t edges() const { return sink_.edge_count(kIntid); }
  void run_loop() { loop_->run_ready(); }
  [[nodiscard]] bool needs_reset() const {
    return (driver_.read(virtio_mmio::Status) & virtio_mmio::DEVICE_NEEDS_RESET) != 0;
  }

 private:
  FakeIrqSink sink_;
  std::unique_ptr<EventLoop> loop_ = EventLoop::create().value();
  DeviceExecutor executor_{*loop_};
  std::unique_ptr<VirtioBlk> device_;
  VirtioMmio transport_;
  GuestVirtioMmio driver_{transport_};
};

class VirtioBlkTest : public ::testing::Test {
 protected:
  explicit VirtioBlkTest(DiskFile::Access access = DiskFile::Access::kReadWrite, uint64_t disk_bytes = kDiskBytes)
      : engine_(new FakeBlockEngine(open_disk(access, disk_bytes))),
        machine_(ram_, std::unique_ptr<BlockEngine>(engine_)) {}

  DiskFile open_disk(DiskFile::Access access, uint64_t disk_bytes) {
    EXPECT_EQ(::ftruncate(file_.fd(), static_cast<off_t>(disk_bytes)), 0);
    return DiskFile::open(file_.path(), access).value();
  }

  void start(uint64_t features = kWritableFeatures) {
    ASSERT_TRUE(machine_.driver().negotiate(features));
    machine_.driver().set_up_queue(0, ring_.state());
    machine_.driver().set_driver_ok();
    machine_.run_loop();
  }
  void ring_doorbell() {
    machine_.driver().write(virtio_mmio::QueueNotify, 0);
    machine_.run_loop();
  }
  /// Submits what `builder` holds and a status byte; waits for the device. The last piece is the status.
  GuestQueue::GuestChain submit(GuestQueue::ChainBuilder builder) {
    auto chain = builder.writable(1).submit();
    ram_.write(status_addr(chain), std::array{std::byte{0xff}});
    ring_doorbell();
    return chain;
  }
  static GuestAddr status_addr(const GuestQueue::GuestChain& chain) { return chain.writable.back().last(); }
  [[nodiscard]] uint8_t status_byte(const GuestQueue::GuestChain& chain) const {
    return std::to_integer<uint8_t>(ram_.read(status_addr(chain), 1)[0]);
  }
  /// Expects that `chain` is the next one returned, with this outcome.
  void expect_used(const GuestQueue::GuestChain& chain, Status status, uint32_t used_bytes) {
    const auto used = ring_.take_used();
    ASSERT_TRUE(used);
    EXPECT_EQ(used->head, chain.head);
    EXPECT_EQ(used->len, used_bytes);
    EXPECT_EQ(status_byte(chain), static_cast<uint8_t>(status));
  }
  void expect_status(const GuestQueue::GuestChain& chain, Status status) { expect_used(chain, status, 1); }
  /// Writes to a range and returns the status that came.
  GuestQueue::GuestChain submit_range(uint32_t type, DiscardWriteZeroes range) {
    return submit(ring_.chain().readable(header(type)).readable(range));
  }
  [[nodiscard]] std::string disk_text(uint64_t sector, uint64_t count) const {
    std::string text(count * kSectorBytes, '?');
    EXPECT_EQ(::pread(file_.fd(), text.data(), text.size(), static_cast<off_t>(sector * kSectorBytes)),
              static_cast<ssize_t>(text.size()));
    return text;
  }
  [[nodiscard]] std::string ram_text(GuestRange range) const {
    const auto bytes = ram_.read(range.base(), range.size());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  MemoryFile file_{std::string(kDiskBytes, 'x')};
  FakeRam ram_{16U << 20};
  GuestQueue ring_{ram_, 128};
  FakeBlockEngine* engine_;
  BlkMachine machine_;
};

class VirtioBlkReadOnlyTest : public VirtioBlkTest {
 protected:
  VirtioBlkReadOnlyTest() : VirtioBlkTest(DiskFile::Access::kReadOnly) {}
};

/// A disk larger than one request may be; a sparse file.
class VirtioBlkLargeDiskTest : public VirtioBlkTest {
 protected:
  VirtioBlkLargeDiskTest() : VirtioBlkTest(DiskFile::Access::kReadWrite, 2 * VirtioBlk::kMaxRequestBytes) {}
};

// What the driver sees

TEST_F(VirtioBlkTest, OffersFlushDiscardAndZeroes) {
  const uint64_t offered = machine_.device().device_features();
  EXPECT_EQ(offered & kWritableFeatures, kWritableFeatures);
  EXPECT_EQ(offered & VIRTIO_BLK_F_RO, 0U);
  EXPECT_EQ(machine_.device().device_id(), 2U);
}

TEST_F(VirtioBlkReadOnlyTest, OffersReadOnlyAndNothingThatWrites) {
  EXPECT_EQ(machine_.device().device_features() & (VIRTIO_BLK_F_RO | kWritableFeatures),
            VIRTIO_BLK_F_RO | VIRTIO_BLK_F_FLUSH);
}

TEST_F(VirtioBlkTest, ConfigurationTellsSizeAndLimits) {
  Config config;
  machine_.device().read_config(0, std::as_writable_bytes(std::span(&config, 1)));
  EXPECT_EQ(config.capacity, kDiskSectors);
  EXPECT_EQ(config.seg_max, 254U);
  EXPECT_EQ(config.blk_size, 512U);
  EXPECT_EQ(config.max_discard_seg, VirtioBlk::kMaxRanges);
  EXPECT_EQ(config.write_zeroes_may_unmap, 1U);
}

TEST_F(VirtioBlkTest, ConfigurationReadsZeroBeyondItsEndAndIgnoresWrites) {
  std::array<std::byte, 8> bytes{};
  bytes.fill(std::byte{0xff});
  machine_.device().read_config(sizeof(Config) - 4, bytes);
  EXPECT_EQ(bytes, (std::array<std::byte, 8>{}));
  machine_.device().read_config(UINT64_MAX - 3, bytes);
  machine_.device().write_config(0, bytes);
  machine_.device().read_config(0, bytes);
  EXPECT_EQ(std::to_integer<uint64_t>(bytes[0]), kDiskSectors);
}

// Transfers

TEST_F(VirtioBlkTest, ReadsReachGuestRam) {
  ASSERT_EQ(::pwrite(file_.fd(), sector_text('r').data(), kSectorBytes, 5 * kSectorBytes), 512);
  start();
  const auto chain = submit(ring_.chain().readable(header(VIRTIO_BLK_T_IN, 4)).writable(512).writable(1024));
  expect_used(chain, Status::VIRTIO_BLK_S_OK, 1537);
  EXPECT_EQ(ram_text(chain.writable[0]), sector_text('x'));
  EXPECT_EQ(ram_text(chain.writable[1]), sector_text('r') + sector_text('x'));
  EXPECT_EQ(machine_.edges(), 1U);
}

TEST_F(VirtioBlkTest, WritesReachTheDisk) {
  start();
  const auto chain = submit(
      ring_.chain().readable(header(VIRTIO_BLK_T_OUT, 62)).readable(sector_text('a')).readable(sector_text('b')));
  expect_status(chain, Status::VIRTIO_BLK_S_OK);
  EXPECT_EQ(disk_text(61, 3), sector_text('x') + sector_text('a') + sector_text('b'));
}

TEST_F(VirtioBlkTest, FramingOfARequestDoesNotMatter) {
  start();
  RequestHeader out = header(VIRTIO_BLK_T_OUT, 1);
  const auto bytes = std::as_bytes(std::span(&out, 1));
  const std::string data = sector_text('f', 2);
  std::string rest(reinterpret_cast<const char*>(bytes.data()) + 5, 11);
  rest += data.substr(0, 700);
  const auto written = submit(ring_.chain().readable(bytes.first(5)).readable(rest).readable(data.substr(700)));
  expect_status(written, Status::VIRTIO_BLK_S_OK);
  EXPECT_EQ(disk_text(1, 2), data);
  // Data and status in one piece
  const auto read = ring_.chain().readable(header(VIRTIO_BLK_T_IN, 1)).writable(513).submit();
  ring_doorbell();
  expect_used(read, Status::VIRTIO_BLK_S_OK, 513);
  EXPECT_EQ(ram_text(read.writable[0]).substr(0, 512), sector_text('f'));
}

TEST_F(VirtioBlkTest, ATransferOfNothingIsFine) {
  start();
  expect_status(submit(ring_.chain().readable(header(VIRTIO_BLK_T_IN, kDiskSectors))), Status::VIRTIO_BLK_S_OK);
  expect_status(submit(ring_.chain().readable(header(VIRTIO_BLK_T_OUT, 0))), Status::VIRTIO_BLK_S_OK);
}

TEST_F(VirtioBlkTest, RequestsInFlightEndTogetherWithOneInterrupt) {
  engine_->hold();
  start();
  std::vector<GuestQueue::GuestChain> chains;
  for (uint64_t sector = 0; sector < 10; ++sector) {
    chains.push_back(submit(ring_.chain().readable(header(VIRTIO_BLK_T_IN, sector)).writable(512)));
  }
  EXPECT_EQ(engine_->in_flight(), 10U);
  EXPECT_FALSE(ring_.take_used());
  engine_->let_go();
  machine_.run_loop();
  EXPECT_EQ(machine_.edges(), 1U);
  for (const auto& chain : chains) {
    expect_used(chain, Status::VIRTIO_BLK_S_OK, 513);
  }
}

TEST_F(VirtioBlkTest, RequestsPutInBeforeDriverOkAreServedAfterIt) {
  ASSERT_TRUE(machine_.driver().negotiate(kWritableFeatures));
  machine_.driver().set_up_queue(0, ring_.state());
  const auto chain = submit(ring_.chain().readable(header(VIRTIO_BLK_T_IN, 0)).writable(512));
  EXPECT_FALSE(ring_.take_used());
  machine_.driver().set_driver_ok();
  machine_.run_loop();
  expect_used(chain, Status::VIRTIO_BLK_S_OK, 513);
}

struct BadTransfer {
  const char* name;
  uint64_t sector;
  uint32_t size_bytes;
};

class VirtioBlkBadTransferTest : public VirtioBlkTest, public ::testing::WithParamInterface<BadTransfer> {};

TEST_P(VirtioBlkBadTransferTest, AReadEndsWithAnErrorAndLeavesRamAlone) {
  start();
  const auto chain =
      submit(ring_.chain().readable(header(VIRTIO_BLK_T_IN, GetParam().sector)).writable(GetParam().size_bytes));
  expect_used(chain, Status::VIRTIO_BLK_S_IOERR, 0);
  EXPECT_EQ(ram_text(chain.writable[0]), std::string(GetParam().size_bytes, '\0'));
  EXPECT_TRUE(engine_->performed.empty());
}

TEST_P(VirtioBlkBadTransferTest, AWriteEndsWithAnErrorAndLeavesTheDiskAlone) {
  start();
  const auto chain = submit(ring_.chain()
                                .readable(header(VIRTIO_BLK_T_OUT, GetParam().sector))
                                .readable(std::string(GetParam().size_bytes, 'w')));
  expect_status(chain, Status::VIRTIO_BLK_S_IOERR);
  EXPECT_TRUE(engine_->performed.empty());
  EXPECT_FALSE(machine_.needs_reset());
}

INSTANTIATE_TEST_SUITE_P(All, VirtioBlkBadTransferTest,
                         ::testing::Values(BadTransfer{"BehindTheEnd", kDiskSectors, 512},
                                           BadTransfer{"AcrossTheEnd", kDiskSectors - 1, 1024},
                                           BadTransfer{"SectorWraps", UINT64_MAX, 512},
                                           BadTransfer{"SectorTimes512Wraps", uint64_t{1} << 55, 512},
                                           BadTransfer{"HalfASector", 0, 256}, BadTransfer{"OneByte", 0, 1},
                                           BadTransfer{"ASectorAndAHalf", 0, 768}),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(VirtioBlkLargeDiskTest, MoreDataThanAllowedIsAnError) {
  start();
  auto builder = ring_.chain().readable(header(VIRTIO_BLK_T_IN, 0));
  constexpr uint32_t kPiece = 16U << 20;
  for (uint64_t total = 0; total <= VirtioBlk::kMaxRequestBytes; total += kPiece) {
    builder.piece(FakeRam::kBase.value(), kPiece, kDescWrite);
  }
  expect_used(submit(builder), Status::VIRTIO_BLK_S_IOERR, 0);
  EXPECT_TRUE(engine_->performed.empty());
}

TEST_F(VirtioBlkLargeDiskTest, SoMuchDataIsInFlightAndTheRestWaits) {
  constexpr uint32_t kPiece = 8U << 20;
  constexpr unsigned kRequests = 20;
  engine_->hold();
  start();
  for (unsigned count = 0; count < kRequests; ++count) {
    submit(
        ring_.chain().readable(header(VIRTIO_BLK_T_IN, 0)).piece(ram_.end_minus(kPiece).value(), kPiece, kDescWrite));
  }
  EXPECT_EQ(engine_->in_flight() * kPiece, VirtioBlk::kMaxInFlightBytes);
  engine_->let_go();
  for (unsigned count = 0; count < kRequests; ++count) {
    machine_.run_loop();
    const auto used = ring_.take_used();
    ASSERT_TRUE(used) << count;
    EXPECT_EQ(used->len, kPiece + 1);
  }
}

TEST_F(VirtioBlkLargeDiskTest, WhatIsToBeZeroedCountsAsData) {
  engine_->hold();
  start();
  for (unsigned count = 0; count < 2; ++count) {
    submit_range(VIRTIO_BLK_T_WRITE_ZEROES,
                 {.sector = 0, .num_sectors = VirtioBlk::kMaxWriteZeroesSectors, .flags = kFlagUnmap});
  }
  EXPECT_EQ(engine_->in_flight(), 1U);
  engine_->let_go();
  machine_.run_loop();
  EXPECT_EQ(engine_->performed.size(), 2U);
}

TEST_F(VirtioBlkTest, AFailureOfTheHostIsAnErrorOfThatRequest) {
  start();
  engine_->failure = ENOSPC;
  const auto failed = submit(ring_.chain().readable(header(VIRTIO_BLK_T_OUT, 0)).readable(sector_text('w')));
  expect_status(failed, Status::VIRTIO_BLK_S_IOERR);
  engine_->failure = 0;
  const auto fine = submit(ring_.chain().readable(header(VIRTIO_BLK_T_OUT, 0)).readable(sector_text('w')));
  expect_status(fine, Status::VIRTIO_BLK_S_OK);
}

TEST_F(VirtioBlkTest, AFileThatWasCutShortIsAnErrorThatCountsWhatWasRead) {
  start();
  ASSERT_EQ(::ftruncate(file_.fd(), 512), 0);
  const auto chain = submit(ring_.chain().readable(header(VIRTIO_BLK_T_IN, 0)).writable(1024));
  expect_used(chain, Status::VIRTIO_BLK_S_IOERR, 512);
}

// Other requests

TEST_F(VirtioBlkTest, FlushReachesTheDisk) {
  start();
  expect_status(submit(ring_.chain().readable(header(VIRTIO_BLK_T_FLUSH))), Status::VIRTIO_BLK_S_OK);
  ASSERT_EQ(engine_->performed.size(), 1U);
  EXPECT_EQ(engine_->performed[0].kind, Kind::kFlush);
}

TEST_F(VirtioBlkTest, AFailedFlushIsReported) {
  start();
  engine_->failure = EIO;
  expect_status(submit(ring_.chain().readable(header(VIRTIO_BLK_T_FLUSH))), Status::VIRTIO_BLK_S_IOERR);
}

TEST_F(VirtioBlkTest, WritesAreDurableOnlyForADriverWithoutFlush) {
  start(0);
  submit(ring_.chain().readable(header(VIRTIO_BLK_T_OUT, 0)).readable(sector_text('w')));
  machine_.driver().write(virtio_mmio::Status, 0);
  ring_ = GuestQueue(ram_, 128);
  start();
  submit(ring_.chain().readable(header(VIRTIO_BLK_T_OUT, 0)).readable(sector_text('w')));
  ASSERT_EQ(engine_->performed.size(), 2U);
  EXPECT_TRUE(engine_->performed[0].durable);
  EXPECT_FALSE(engine_->performed[1].durable);
}

TEST_F(VirtioBlkTest, GetIdAnswersTheSerialPaddedWithZeroes) {
  start();
  const auto chain = submit(ring_.chain().readable(header(VIRTIO_BLK_T_GET_ID)).writable(20));
  expect_used(chain, Status::VIRTIO_BLK_S_OK, 21);
  EXPECT_EQ(ram_text(chain.writable[0]), std::string("serial") + std::string(14, '\0'));
}

TEST_F(VirtioBlkTest, GetIdFillsWhatRoomThereIsAndNoMore) {
  start();
  const auto small = submit(ring_.chain().readable(header(VIRTIO_BLK_T_GET_ID)).writable(3));
  expect_used(small, Status::VIRTIO_BLK_S_OK, 4);
  EXPECT_EQ(ram_text(small.writable[0]), "ser");
  const auto large = submit(ring_.chain().readable(header(VIRTIO_BLK_T_GET_ID)).writable(100));
  expect_used(large, Status::VIRTIO_BLK_S_OK, 20);
}

TEST_F(VirtioBlkTest, UnknownTypesAreUnsupported) {
  start();
  for (const uint32_t type : {2U, 10U, 12U, 14U, 0x8000'0000U, UINT32_MAX}) {
    expect_status(submit(ring_.chain().readable(header(type))), Status::VIRTIO_BLK_S_UNSUPP);
  }
}

TEST_F(VirtioBlkTest, AShortHeaderIsAnError) {
  start();
  expect_status(submit(ring_.chain().readable("only 15 bytes !")), Status::VIRTIO_BLK_S_IOERR);
  expect_status(submit(ring_.chain()), Status::VIRTIO_BLK_S_IOERR);
}

// Discarding and zeroing

TEST_F(VirtioBlkTest, DiscardAndZeroesChangeTheirRange) {
  start();
  expect_status(submit_range(VIRTIO_BLK_T_DISCARD, {.sector = 8, .num_sectors = 8, .flags = 0}),
                Status::VIRTIO_BLK_S_OK);
  expect_status(submit_range(VIRTIO_BLK_T_WRITE_ZEROES, {.sector = 20, .num_sectors = 2, .flags = kFlagUnmap}),
                Status::VIRTIO_BLK_S_OK);
  expect_status(submit_range(VIRTIO_BLK_T_WRITE_ZEROES, {.sector = 30, .num_sectors = 1, .flags = 0}),
                Status::VIRTIO_BLK_S_OK);
  EXPECT_EQ(disk_text(7, 1), sector_text('x'));
  EXPECT_EQ(disk_text(20, 3), sector_text('\0', 2) + sector_text('x'));
  EXPECT_EQ(disk_text(30, 2), sector_text('\0') + sector_text('x'));
}

TEST_F(VirtioBlkTest, SeveralRangesAreOneRequest) {
  start();
  const std::array<DiscardWriteZeroes, 3> ranges{{{.sector = 0, .num_sectors = 1, .flags = 0},
                                                  {.sector = 1, .num_sectors = 0, .flags = 0},
                                                  {.sector = 2, .num_sectors = 1, .flags = 0}}};
  expect_status(submit(ring_.chain().readable(header(VIRTIO_BLK_T_WRITE_ZEROES)).readable(ranges)),
                Status::VIRTIO_BLK_S_OK);
  EXPECT_EQ(disk_text(0, 3), sector_text('\0') + sector_text('x') + sector_text('\0'));
}

struct BadRange {
  const char* name;
  uint32_t type;
  DiscardWriteZeroes range;
  Status status;
};

class VirtioBlkBadRangeTest : public VirtioBlkTest, public ::testing::WithParamInterface<BadRange> {};

TEST_P(VirtioBlkBadRangeTest, IsRefusedBeforeAnythingIsDone) {
  start();
  const std::array<DiscardWriteZeroes, 2> ranges{{{.sector = 0, .num_sectors = 1, .flags = 0}, GetParam().range}};
  expect_status(submit(ring_.chain().readable(header(GetParam().type)).readable(ranges)), GetParam().status);
  EXPECT_TRUE(engine_->performed.empty());
}

constexpr Status kIoError = Status::VIRTIO_BLK_S_IOERR;
constexpr Status kUnsupported = Status::VIRTIO_BLK_S_UNSUPP;
INSTANTIATE_TEST_SUITE_P(
    All, VirtioBlkBadRangeTest,
    ::testing::Values(BadRange{"DiscardUnmap", VIRTIO_BLK_T_DISCARD, {0, 1, 1}, kUnsupported},
                      BadRange{"DiscardFlags", VIRTIO_BLK_T_DISCARD, {0, 1, 0x8000'0000}, kUnsupported},
                      BadRange{"ZeroesFlags", VIRTIO_BLK_T_WRITE_ZEROES, {0, 1, 2}, kUnsupported},
                      BadRange{"BehindTheEnd", VIRTIO_BLK_T_DISCARD, {kDiskSectors, 1, 0}, kIoError},
                      BadRange{"AcrossTheEnd", VIRTIO_BLK_T_WRITE_ZEROES, {kDiskSectors - 1, 2, 0}, kIoError},
                      BadRange{"Wraps", VIRTIO_BLK_T_DISCARD, {UINT64_MAX, 1, 0}, kIoError},
                      BadRange{"TooManySectors", VIRTIO_BLK_T_DISCARD, {0, UINT32_MAX, 0}, kIoError}),
    [](const auto& row) { return std::string(row.param.name); });

TEST_F(VirtioBlkTest, TooManyRangesOrHalfOnesAreAnError) {
  start();
  const std::array<DiscardWriteZeroes, VirtioBlk::kMaxRanges + 1> many{};
  expect_status(submit(ring_.chain().readable(header(VIRTIO_BLK_T_DISCARD)).readable(many)), kIoError);
  expect_status(submit(ring_.chain().readable(header(VIRTIO_BLK_T_DISCARD)).readable("17 bytes of range")), kIoError);
  expect_status(submit(ring_.chain().readable(header(VIRTIO_BLK_T_DISCARD))), kIoError);
}

TEST_F(VirtioBlkTest, WithoutTheirFeaturesDiscardAndZeroesAreUnsupported) {
  start(VIRTIO_BLK_F_FLUSH);
  expect_status(submit_range(VIRTIO_BLK_T_DISCARD, {.sector = 0, .num_sectors = 1, .flags = 0}), kUnsupported);
  expect_status(submit_range(VIRTIO_BLK_T_WRITE_ZEROES, {.sector = 0, .num_sectors = 1, .flags = 0}), kUnsupported);
}

// Read-only disks (field reports D 46-48)

TEST_F(VirtioBlkReadOnlyTest, WritesFailAndTheDeviceGoesOn) {
  start(VIRTIO_BLK_F_RO | VIRTIO_BLK_F_FLUSH);
  expect_status(submit(ring_.chain().readable(header(VIRTIO_BLK_T_OUT, 0)).readable(sector_text('w'))), kIoError);
  expect_used(submit(ring_.chain().readable(header(VIRTIO_BLK_T_IN, 0)).writable(512)), Status::VIRTIO_BLK_S_OK, 513);
  EXPECT_FALSE(machine_.needs_reset());
}

TEST_F(VirtioBlkReadOnlyTest, ADriverThatDoesNotAgreeOnReadOnlyCannotWriteEither) {
  start(0);
  expect_status(submit(ring_.chain().readable(header(VIRTIO_BLK_T_OUT, 0)).readable(sector_text('w'))), kIoError);
  expect_status(submit_range(VIRTIO_BLK_T_DISCARD, {.sector = 0, .num_sectors = 1, .flags = 0}), kIoError);
  expect_status(submit_range(VIRTIO_BLK_T_WRITE_ZEROES, {.sector = 0, .num_sectors = 1, .flags = 0}), kIoError);
  EXPECT_TRUE(engine_->performed.empty());
  EXPECT_EQ(disk_text(0, 1), sector_text('x'));
}

TEST_F(VirtioBlkReadOnlyTest, FlushSucceeds) {
  start(VIRTIO_BLK_F_RO);
  expect_status(submit(ring_.chain().readable(header(VIRTIO_BLK_T_FLUSH))), Status::VIRTIO_BLK_S_OK);
}

// Hostile drivers

TEST_F(VirtioBlkTest, ARequestWithoutRoomForItsStatusNeedsAReset) {
  start();
  const auto fine = ring_.chain().readable(header(VIRTIO_BLK_T_OUT, 0)).readable(sector_text('w')).writable(1).submit();
  ring_.chain().readable(header(VIRTIO_BLK_T_FLUSH)).submit();
  ring_doorbell();
  EXPECT_TRUE(machine_.needs_reset());
  EXPECT_FALSE(ring_.take_used());  // not even what was right
  machine_.driver().write(virtio_mmio::Status, 0);
  ring_ = GuestQueue(ram_, 128);
  start();
  expect_used(submit(ring_.chain().readable(header(VIRTIO_BLK_T_IN, 0)).writable(512)), Status::VIRTIO_BLK_S_OK, 513);
}

TEST_F(VirtioBlkTest, ABrokenRingNeedsAReset) {
  start();
  ring_.offer(128);
  ring_doorbell();
  EXPECT_TRUE(machine_.needs_reset());
}

TEST_F(VirtioBlkTest, AfterAWholeQueueOthersOnTheEventLoopHaveTheirTurn) {
  ring_ = GuestQueue(ram_, VirtioBlk::kQueueSize);
  start();
  // The same bad request all over; each is returned at once, so that a driver could go on for ever.
  const auto chain = ring_.chain().readable("short").writable(1).build();
  for (unsigned count = 0; count < VirtioBlk::kQueueSize; ++count) {
    ring_.offer(chain.head);
  }
  ring_doorbell();
  EXPECT_EQ(ring_.used_index(), VirtioBlk::kQueueSize);
  EXPECT_EQ(ring_.used_flags(), 1U);  // no doorbells: the device will look again by itself
  machine_.run_loop();
  EXPECT_EQ(ring_.used_flags(), 0U);
}

// Pause and reset

TEST_F(VirtioBlkTest, PauseWaitsForWhatIsInFlight) {
  engine_->hold();
  start();
  const auto chain = submit(ring_.chain().readable(header(VIRTIO_BLK_T_IN, 0)).writable(512));
  std::thread host([this] { engine_->let_go(); });
  ASSERT_TRUE(machine_.transport().pause());
  host.join();
  expect_used(chain, Status::VIRTIO_BLK_S_OK, 513);
  EXPECT_EQ(engine_->in_flight(), 0U);
  EXPECT_EQ(machine_.edges(), 1U);
  ASSERT_TRUE(machine_.transport().pause());
}

TEST_F(VirtioBlkTest, WhatComesWhilePausedIsServedAfterResume) {
  start();
  ASSERT_TRUE(machine_.transport().pause());
  const auto chain = submit(ring_.chain().readable(header(VIRTIO_BLK_T_IN, 0)).writable(512));
  EXPECT_FALSE(ring_.take_used());
  ASSERT_TRUE(machine_.transport().resume());
  machine_.run_loop();
  expect_used(chain, Status::VIRTIO_BLK_S_OK, 513);
}

TEST_F(VirtioBlkTest, PauseBeforeAnyDriverReturns) {
  ASSERT_TRUE(machine_.transport().pause());
  ASSERT_TRUE(machine_.transport().resume());
}

TEST_F(VirtioBlkTest, AfterAResetNothingOfBeforeReachesTheRing) {
  engine_->hold();
  start();
  submit(ring_.chain().readable(header(VIRTIO_BLK_T_IN, 0)).writable(512));
  std::thread host([this] { engine_->let_go(); });
  machine_.driver().write(virtio_mmio::Status, 0);  // waits
  host.join();
  EXPECT_EQ(engine_->in_flight(), 0U);
  EXPECT_FALSE(ring_.take_used());
  machine_.run_loop();
  EXPECT_EQ(machine_.edges(), 0U);
}

TEST_F(VirtioBlkTest, AQueueTakenBackIsFinishedFirst) {
  engine_->hold();
  start();
  const auto chain = submit(ring_.chain().readable(header(VIRTIO_BLK_T_IN, 0)).writable(512));
  std::thread host([this] { engine_->let_go(); });
  machine_.driver().write(virtio_mmio::QueueSel, 0);
  machine_.driver().write(virtio_mmio::QueueReady, 0);
  host.join();
  expect_used(chain, Status::VIRTIO_BLK_S_OK, 513);
}

TEST_F(VirtioBlkTest, TheEndOfTheDeviceWaitsForWhatIsInFlight) {
  engine_->hold();
  start();
  submit(ring_.chain().readable(header(VIRTIO_BLK_T_IN, 0)).writable(512));
  engine_->let_go();  // taken back in the destructor at the latest
}

// Saved state

TEST_F(VirtioBlkTest, GoesOnWithTheSameDiskInAnotherProcess) {
  start();
  submit(ring_.chain().readable(header(VIRTIO_BLK_T_OUT, 0)).readable(sector_text('s')));
  ASSERT_TRUE(ring_.take_used());
  ASSERT_TRUE(machine_.transport().pause());
  const StateRecord saved = machine_.transport().save().value();
  const auto chain = submit(ring_.chain().readable(header(VIRTIO_BLK_T_IN, 0)).writable(512));

  MemoryFile copy{disk_text(0, kDiskSectors)};
  BlkMachine other(ram_, create_block_engine(DiskFile::open(copy.path(), DiskFile::Access::kReadWrite).value(),
                                             VirtioBlk::kQueueSize, BlockEngineKind::kWorker)
                             .value());
  ASSERT_TRUE(other.transport().pause());
  ASSERT_TRUE(other.transport().restore(saved));
  EXPECT_EQ(other.transport().save(), saved);
  EXPECT_EQ(other.edges(), 0U);
  ASSERT_TRUE(other.transport().resume());
  other.run_loop();
  ASSERT_TRUE(other.transport().pause());  // waits for the worker
  expect_used(chain, Status::VIRTIO_BLK_S_OK, 513);
  EXPECT_EQ(ram_text(chain.writable[0]), sector_text('s'));
}

TEST_F(VirtioBlkTest, AnotherDiskIsRefused) {
  const auto refused = [this](VirtioBlkStateV1 state) {
    const auto done = machine_.device().restore(save_state(std::move(state)));
    return !done && done.error().code() == Errc::kInvalidArgument;
  };
  EXPECT_TRUE(machine_.device().restore(machine_.device().save().value()));
  EXPECT_TRUE(refused({.capacity_sectors = kDiskSectors + 1, .read_only = false, .serial = "serial"}));
  EXPECT_TRUE(refused({.capacity_sectors = kDiskSectors, .read_only = true, .serial = "serial"}));
  EXPECT_TRUE(refused({.capacity_sectors = kDiskSectors, .read_only = false, .serial = "other"}));
}

// Both engines

class VirtioBlkEngineTest : public ::testing::TestWithParam<BlockEngineKind> {
 protected:
  MemoryFile file_{std::string(kDiskBytes, 'x')};
  FakeRam ram_{16U << 20};
  GuestQueue ring_{ram_, 256};
};

TEST_P(VirtioBlkEngineTest, AFullQueueOfWritesAndReadsIsServed) {
  auto engine = create_block_engine(DiskFile::open(file_.path(), DiskFile::Access::kReadWrite).value(),
                                    VirtioBlk::kQueueSize, GetParam());
  if (!engine && GetParam() == BlockEngineKind::kUring) {
    GTEST_SKIP() << "this host has no io_uring: " << engine.error().message();
  }
  BlkMachine machine(ram_, std::move(engine).value());
  ASSERT_TRUE(machine.driver().negotiate(kWritableFeatures | kVirtioFIndirectDesc | kVirtioFEventIdx));
  machine.driver().set_up_queue(0, ring_.state());
  machine.driver().set_driver_ok();
  for (uint64_t sector = 0; sector < kDiskSectors; ++sector) {
    const std::string data = sector_text(static_cast<char>('0' + sector));
    ring_.chain().indirect().readable(header(VIRTIO_BLK_T_OUT, sector)).readable(data).writable(1).submit();
  }
  machine.driver().write(virtio_mmio::QueueNotify, 0);
  machine.run_loop();
  ASSERT_TRUE(machine.transport().pause());
  ASSERT_TRUE(machine.transport().resume());
  for (uint64_t sector = 0; sector < kDiskSectors; ++sector) {
    ASSERT_TRUE(ring_.take_used());
  }
  const auto read = ring_.chain().readable(header(VIRTIO_BLK_T_IN, 0)).writable(kDiskBytes).writable(1).submit();
  machine.driver().write(virtio_mmio::QueueNotify, 0);
  machine.run_loop();
  ASSERT_TRUE(machine.transport().pause());
  const auto used = ring_.take_used();
  ASSERT_TRUE(used);
  EXPECT_EQ(used->len, kDiskBytes + 1);
  const auto bytes = ram_.read(read.writable[0].base(), kDiskBytes);
  for (uint64_t sector = 0; sector < kDiskSectors; ++sector) {
    EXPECT_EQ(std::to_integer<char>(bytes[sector * kSectorBytes + 7]), static_cast<char>('0' + sector));
  }
}

INSTANTIATE_TEST_SUITE_P(All, VirtioBlkEngineTest, ::testing::Values(BlockEngineKind::kUring, BlockEngineKind::kWorker),
                         [](const auto& row) { return row.param == BlockEngineKind::kUring ? "Uring" : "Worker"; });

}  // namespace
}  // namespace tandem::devices
