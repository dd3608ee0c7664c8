// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/char_output.hpp"

#include "tests/unit/devices/backend/backend_test.hpp"

namespace tandem::devices {
namespace {

class CharOutputTest : public BackendTest {
 protected:
  void attach(int fd) {
    auto descriptor = CharDescriptor::share(fd, CharDescriptor::Direction::kWrite);
    ASSERT_TRUE(descriptor);
    ASSERT_TRUE(output_->attach(std::move(*descriptor), [this] { ++ends_; }));
  }
  void write(std::string_view text) { output_->write(bytes_of(text)); }

  std::unique_ptr<CharOutput> output_ = CharOutput::create(executor_, CharOutput::Unattached::kDrop).value();
  int ends_ = 0;
};

TEST_F(CharOutputTest, WhatIsWrittenByteByByteArrivesInOrder) {
  Pipe pipe = make_pipe();
  attach(pipe.write_end.get());
  for (const char character : std::string_view("hello")) {
    write({&character, 1});
  }
  expect_output(pipe.read_end.get(), "hello");
}

TEST_F(CharOutputTest, WhatComesAfterAPauseIsWrittenAtOnce) {
  Pipe pipe = make_pipe();
  attach(pipe.write_end.get());
  write("hello");
  EXPECT_EQ(read_ready(pipe.read_end.get()), "hello");
}

TEST_F(CharOutputTest, WhatFollowsSoonIsCollectedIntoFewWrites) {
  auto sockets = make_socket_pair();
  attach(sockets[0].get());
  const std::string text(1000, 't');
  size_t arrivals = 0;
  size_t arrived = 0;
  for (const char character : text) {
    write({&character, 1});
    const size_t count = read_ready(sockets[1].get()).size();
    arrivals += count == 0 ? 0 : 1;
    arrived += count;
  }
  EXPECT_LT(arrivals, text.size() / 2);
  run_until([&] { return (arrived += read_ready(sockets[1].get()).size()) == text.size(); });
}

TEST_F(CharOutputTest, TheSharedDescriptionIsNotMadeNonBlocking) {
  Pipe pipe = make_pipe();
  attach(pipe.write_end.get());
  EXPECT_EQ(::fcntl(pipe.write_end.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(CharOutputTest, AReaderThatDoesNotReadCostsTheNewestOutputAndIsCounted) {
  Pipe pipe = make_pipe();
  const size_t stuck = fill(pipe.write_end.get());
  attach(pipe.write_end.get());
  const std::string megabyte(1U << 20, 'm');
  write(megabyte);
  EXPECT_EQ(output_->dropped_bytes(), megabyte.size() - kOutputRingBytes);
  expect_output(pipe.read_end.get(), std::string(stuck, '#') + megabyte.substr(0, kOutputRingBytes));
}

TEST_F(CharOutputTest, WhileTheReaderIsStuckTheLoopIsIdle) {
  Pipe pipe = make_pipe();
  fill(pipe.write_end.get());
  attach(pipe.write_end.get());
  write("x");
  run_until_called();  // the one attempt
  for (int round = 0; round < 100; ++round) {
    write("y");
    EXPECT_EQ(loop_->run_ready(), 0U);
  }
}

TEST_F(CharOutputTest, ABurstLargerThanTheRingIsNotDroppedWhenTheReaderTakesIt) {
  const std::string path = folder_ + "/file";
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  attach(file.get());
  const std::string burst(4 * kOutputRingBytes + 1, 'b');
  write(burst);
  EXPECT_EQ(output_->dropped_bytes(), 0U);
  run_until([&] { return std::filesystem::file_size(path) == burst.size(); });
}

TEST_F(CharOutputTest, AReaderThatGoesAwayIsReportedOnceAndOutputIsCountedFromThen) {
  Pipe pipe = make_pipe();
  attach(pipe.write_end.get());
  pipe.read_end.reset();
  write("lost");
  run_until([&] { return ends_ != 0; });
  write("too");
  loop_->run_ready();
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(output_->dropped_bytes(), 7U);
}

TEST_F(CharOutputTest, TheEndWritesWhatIsLeft) {
  Pipe pipe = make_pipe();
  attach(pipe.write_end.get());
  write("last words");
  output_.reset();
  EXPECT_EQ(read_ready(pipe.read_end.get()), "last words");
}

TEST_F(CharOutputTest, SocketsAreWrittenWithoutWaiting) {
  const auto ends = make_socket_pair();
  attach(ends[0].get());
  const std::string text(100'000, 's');
  write(text);
  expect_output(ends[1].get(), text);
  EXPECT_EQ(::fcntl(ends[0].get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(CharOutputTest, DevNullTakesEverything) {
  UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  attach(null.get());
  write(std::string(10 * kOutputRingBytes, 'n'));
  loop_->run_ready();
  EXPECT_EQ(output_->dropped_bytes(), 0U);
}

TEST_F(CharOutputTest, AFullFileSystemCostsOutputButNotTheDescriptor) {
  UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  attach(full.get());
  write("lost");
  run_until([&] { return output_->dropped_bytes() != 0; });
  EXPECT_EQ(output_->dropped_bytes(), 4U);
  EXPECT_EQ(ends_, 0);
}

TEST_F(CharOutputTest, KeptOutputGoesToTheNextReaderOnce) {
  auto output = CharOutput::create(executor_, CharOutput::Unattached::kKeep).value();
  output->write(bytes_of("early "));
  Pipe first = make_pipe();
  ASSERT_TRUE(
      output->attach(CharDescriptor::share(first.write_end.get(), CharDescriptor::Direction::kWrite).value(), [] {}));
  expect_output(first.read_end.get(), "early ");
  output->detach();
  output->write(bytes_of("late"));
  Pipe second = make_pipe();
  ASSERT_TRUE(
      output->attach(CharDescriptor::share(second.write_end.get(), CharDescriptor::Direction::kWrite).value(), [] {}));
  expect_output(second.read_end.get(), "late");
  EXPECT_EQ(output->dropped_bytes(), 0U);
}

}  // namespace
}  // namespace tandem::devices
