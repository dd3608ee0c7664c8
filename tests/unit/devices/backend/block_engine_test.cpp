// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/block_engine.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/memory_file.hpp"

namespace tandem::devices {
namespace {

using fakes::MemoryFile;
using Kind = BlockRequest::Kind;
constexpr unsigned kMaxRequests = 256;
constexpr uint64_t kDiskBytes = 1U << 20;

iovec buffer_of(std::string& text) { return {.iov_base = text.data(), .iov_len = text.size()}; }

class BlockEngineTest : public ::testing::TestWithParam<BlockEngineKind> {
 protected:
  void SetUp() override {
    auto disk = DiskFile::open(file_.path(), DiskFile::Access::kReadWrite);
    ASSERT_TRUE(disk);
    auto engine = create_block_engine(std::move(*disk), kMaxRequests, GetParam());
    if (!engine && GetParam() == BlockEngineKind::kUring) {
      GTEST_SKIP() << "this host has no io_uring: " << engine.error().message();
    }
    ASSERT_TRUE(engine);
    engine_ = std::move(*engine);
  }
  /// Waits until `count` requests have ended.
  std::vector<BlockRequest*> wait_for(size_t count) {
    std::vector<BlockRequest*> ended;
    engine_->kick();
    while (ended.size() < count) {
      wait_for_completion(*engine_);
      engine_->reap(ended);
    }
    return ended;
  }
  void run(BlockRequest& request) {
    engine_->submit(request);
    ASSERT_EQ(wait_for(1), std::vector<BlockRequest*>{&request});
  }
  [[nodiscard]] std::string content(uint64_t offset, size_t size_bytes) const {
    std::string text(size_bytes, '?');
    EXPECT_EQ(::pread(file_.fd(), text.data(), size_bytes, static_cast<off_t>(offset)),
              static_cast<ssize_t>(size_bytes));
    return text;
  }

  MemoryFile file_{std::string(kDiskBytes, 'x')};
  std::unique_ptr<BlockEngine> engine_;
};

TEST_P(BlockEngineTest, WritesAreGatheredAndReadsScattered) {
  std::string first(512, 'a');
  std::string second(1024, 'b');
  BlockRequest request;
  request.kind = Kind::kWrite;
  request.offset = 4096;
  request.buffers = {buffer_of(first), buffer_of(second)};
  run(request);
  EXPECT_EQ(request.os_error, 0);
  EXPECT_EQ(request.done_bytes, 1536U);
  EXPECT_EQ(content(4096, 1536), first + second);

  std::string head(100, '?');
  std::string tail(1436, '?');
  BlockRequest back;
  back.kind = Kind::kRead;
  back.offset = 4096;
  back.buffers = {buffer_of(head), buffer_of(tail)};
  run(back);
  EXPECT_EQ(back.done_bytes, 1536U);
  EXPECT_EQ(head + tail, first + second);
}

TEST_P(BlockEngineTest, DurableWritesAndFlushesEndWell) {
  std::string text(512, 'd');
  BlockRequest write;
  write.kind = Kind::kWrite;
  write.durable = true;
  write.buffers = {buffer_of(text)};
  run(write);
  EXPECT_EQ(write.os_error, 0);
  BlockRequest flush;
  flush.kind = Kind::kFlush;
  run(flush);
  EXPECT_EQ(flush.os_error, 0);
  EXPECT_EQ(content(0, 512), text);
}

TEST_P(BlockEngineTest, ADiskThatBecameShorterEndsReadsWithAnError) {
  ASSERT_EQ(::ftruncate(file_.fd(), 700), 0);
  std::string text(1024, '?');
  BlockRequest request;
  request.kind = Kind::kRead;
  request.buffers = {buffer_of(text)};
  run(request);
  EXPECT_EQ(request.os_error, EIO);
  EXPECT_EQ(request.done_bytes, 700U);
  EXPECT_EQ(text.substr(0, 700), std::string(700, 'x'));
}

TEST_P(BlockEngineTest, AnErrorOfTheHostIsPassedOn) {
  ASSERT_EQ(::fcntl(file_.fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  std::string text(512, 'w');
  BlockRequest request;
  request.kind = Kind::kWrite;
  request.buffers = {buffer_of(text)};
  run(request);
  EXPECT_EQ(request.os_error, EPERM);
  EXPECT_EQ(request.done_bytes, 0U);
}

TEST_P(BlockEngineTest, RangesAreDiscardedAndZeroed) {
  BlockRequest zero;
  zero.kind = Kind::kWriteZeroes;
  zero.ranges = {{.offset = 0, .size_bytes = 512, .unmap = DiskFile::Unmap::kNo},
                 {.offset = 1024, .size_bytes = 512, .unmap = DiskFile::Unmap::kAllowed}};
  run(zero);
  EXPECT_EQ(zero.os_error, 0);
  EXPECT_EQ(content(0, 2048),
            std::string(512, '\0') + std::string(512, 'x') + std::string(512, '\0') + std::string(512, 'x'));
  BlockRequest discard;
  discard.kind = Kind::kDiscard;
  discard.ranges = {{.offset = 8192, .size_bytes = 4096, .unmap = DiskFile::Unmap::kNo}};
  run(discard);
  EXPECT_EQ(discard.os_error, 0);
  EXPECT_EQ(content(8192, 4096), std::string(4096, '\0'));
}

TEST_P(BlockEngineTest, AsManyRequestsAsAgreedCanBeInFlight) {
  std::deque<std::string> memory;
  std::deque<BlockRequest> requests(kMaxRequests);
  for (unsigned index = 0; index < kMaxRequests; ++index) {
    memory.emplace_back(512, static_cast<char>(index));
    requests[index].kind = Kind::kWrite;
    requests[index].offset = uint64_t{index} * 512;
    requests[index].buffers = {buffer_of(memory.back())};
    engine_->submit(requests[index]);
  }
  const auto ended = wait_for(kMaxRequests);
  EXPECT_TRUE(std::ranges::all_of(ended, [](const BlockRequest* request) { return request->os_error == 0; }));
  std::string all;
  for (const std::string& text : memory) {
    all += text;
  }
  EXPECT_EQ(content(0, all.size()), all);
}

TEST_P(BlockEngineTest, ARequestCanBeUsedAgain) {
  std::string text(512, 'r');
  BlockRequest request;
  request.kind = Kind::kWrite;
  request.buffers = {buffer_of(text)};
  run(request);
  request.clear();
  request.kind = Kind::kRead;
  request.offset = 512;
  request.buffers = {buffer_of(text)};
  run(request);
  EXPECT_EQ(text, std::string(512, 'x'));
}

INSTANTIATE_TEST_SUITE_P(All, BlockEngineTest, ::testing::Values(BlockEngineKind::kUring, BlockEngineKind::kWorker),
                         [](const auto& row) { return row.param == BlockEngineKind::kUring ? "Uring" : "Worker"; });

/// Whether the kernel has made a thread to work on what the calling one submitted to io_uring.
bool has_uring_worker() {
  const std::string worker = "iou-wrk-" + std::to_string(::gettid());
  return std::ranges::any_of(std::filesystem::directory_iterator("/proc/self/task"), [&worker](const auto& task) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    return name == worker;
  });
}

TEST(UringBlockEngineTest, NoLargeTransferIsDoneByTheThreadThatSubmitsIt) {
  // A file whose cached contents io_uring would copy at once: one in memory is none.
  const std::string path = ::testing::TempDir() + "tandem-large-" + std::to_string(::getpid());
  std::string text(4U << 20, 'x');
  std::ofstream(path) << text;
  auto engine = create_block_engine(DiskFile::open(path, DiskFile::Access::kReadWrite).value(), kMaxRequests,
                                    BlockEngineKind::kUring);
  ::unlink(path.c_str());
  if (!engine) {
    GTEST_SKIP() << "this host has no io_uring: " << engine.error().message();
  }
  BlockRequest request;
  request.kind = Kind::kRead;
  request.buffers = {buffer_of(text)};
  bool has_worker = false;
  std::thread([&] {
    (*engine)->submit(request);
    (*engine)->kick();
    std::vector<BlockRequest*> ended;
    while (ended.empty()) {
      wait_for_completion(**engine);
      (*engine)->reap(ended);
    }
    has_worker = has_uring_worker();
  }).join();
  EXPECT_EQ(request.done_bytes, text.size());
  EXPECT_TRUE(has_worker);
}

TEST(BlockRequestTest, AdvanceGoesThroughTheBuffers) {
  std::string a(4, 'a');
  std::string b(4, 'b');
  BlockRequest request;
  request.buffers = {buffer_of(a), buffer_of(b)};
  EXPECT_FALSE(request.advance(1));
  ASSERT_EQ(request.remaining().size(), 2U);
  EXPECT_EQ(request.remaining()[0].iov_base, a.data() + 1);
  EXPECT_EQ(request.remaining()[0].iov_len, 3U);
  EXPECT_FALSE(request.advance(-EINTR));
  EXPECT_FALSE(request.advance(5));
  ASSERT_EQ(request.remaining().size(), 1U);
  EXPECT_EQ(request.remaining()[0].iov_base, b.data() + 2);
  EXPECT_TRUE(request.advance(2));
  EXPECT_EQ(request.done_bytes, 8U);
  EXPECT_EQ(request.os_error, 0);
}

TEST(BlockRequestTest, NoProgressIsAnError) {
  std::string a(4, 'a');
  BlockRequest request;
  request.buffers = {buffer_of(a)};
  EXPECT_TRUE(request.advance(0));
  EXPECT_EQ(request.os_error, EIO);
}

}  // namespace
}  // namespace tandem::devices
