// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/char_input.hpp"

#include "tests/unit/devices/backend/backend_test.hpp"

namespace tandem::devices {
namespace {

class CharInputTest : public BackendTest {
 protected:
  CharInputTest() { input_->set_sink(&sink_); }
  void attach(int fd) {
    auto descriptor = CharDescriptor::share(fd, CharDescriptor::Direction::kRead);
    ASSERT_TRUE(descriptor);
    ASSERT_TRUE(input_->attach(std::move(*descriptor), [this](IoStatus status) {
      ++ends_;
      last_end_ = status;
    }));
  }
  std::string make_text(size_t size) {
    std::string text;
    for (unsigned line = 0; text.size() < size; ++line) {
      text += std::to_string(line) + "\n";
    }
    return text;
  }

  FakeCharSink sink_;
  std::unique_ptr<CharInput> input_ = CharInput::create(executor_).value();
  int ends_ = 0;
  IoStatus last_end_ = IoStatus::kDone;
};

TEST_F(CharInputTest, InputReachesTheSink) {
  Pipe pipe = make_pipe();
  attach(pipe.read_end.get());
  send_all(pipe.write_end.get(), "typed");
  expect_input(sink_, "typed");
}

TEST_F(CharInputTest, NoMoreIsHandedOnThanThereIsRoomFor) {
  Pipe pipe = make_pipe();
  attach(pipe.read_end.get());
  sink_.set_room(3);
  send_all(pipe.write_end.get(), "typed");
  expect_input(sink_, "typ");
  loop_->run_ready();
  EXPECT_EQ(sink_.received(), "typ");
}

TEST_F(CharInputTest, ResumeHandsOnTheRestButNotBeforeItReturns) {
  Pipe pipe = make_pipe();
  attach(pipe.read_end.get());
  sink_.set_room(1);
  send_all(pipe.write_end.get(), "typed");
  expect_input(sink_, "t");
  sink_.set_room(100);
  input_->resume_input();
  EXPECT_EQ(sink_.received(), "t");
  expect_input(sink_, "typed");
}

TEST_F(CharInputTest, ALongPasteArrivesWhole) {
  const auto ends = make_socket_pair();
  attach(ends[1].get());
  const std::string paste = make_text(65536);
  size_t sent = 0;
  sink_.set_room(32);
  run_until([&] {
    const auto rest = std::string_view(paste).substr(sent);
    const ssize_t count = ::send(ends[0].get(), rest.data(), rest.size(), MSG_DONTWAIT);
    sent += count > 0 ? static_cast<size_t>(count) : 0;
    if (sink_.room() == 0) {
      sink_.set_room(32);
      input_->resume_input();
    }
    return sink_.received().size() == paste.size();
  });
  EXPECT_EQ(sink_.received(), paste);
}

TEST_F(CharInputTest, ASinkWithoutRoomLeavesTheLoopIdle) {
  const auto ends = make_socket_pair();
  attach(ends[1].get());
  sink_.set_room(0);
  send_all(ends[0].get(), std::string(3 * kInputPendingBytes, 'x'));
  for (int round = 0; round < 10; ++round) {
    loop_->run_ready();
  }
  EXPECT_EQ(loop_->run_ready(), 0U);
}

TEST_F(CharInputTest, TheEndIsReportedOnceAndLeavesTheLoopIdle) {
  Pipe pipe = make_pipe();
  attach(pipe.read_end.get());
  send_all(pipe.write_end.get(), "x");
  pipe.write_end.reset();
  run_until([&] { return ends_ != 0; });
  EXPECT_EQ(last_end_, IoStatus::kEnd);
  EXPECT_EQ(sink_.received(), "x");
  EXPECT_EQ(loop_->run_ready(), 0U);
  EXPECT_EQ(ends_, 1);
  EXPECT_FALSE(input_->is_attached());
}

TEST_F(CharInputTest, DevNullEndsAtOnce) {
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  attach(null.get());
  run_until([&] { return ends_ != 0; });
  EXPECT_EQ(loop_->run_ready(), 0U);
}

TEST_F(CharInputTest, ARegularFileIsReadToItsEnd) {
  const std::string text = make_text(20'000);
  const std::string path = folder_ + "/input";
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  send_all(file.get(), text);
  ASSERT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  attach(file.get());
  run_until([&] { return ends_ != 0; });
  EXPECT_EQ(sink_.received(), text);
}

TEST_F(CharInputTest, ARegularFileWaitsForRoom) {
  const std::string text = make_text(10'000);
  const std::string path = folder_ + "/input";
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  send_all(file.get(), text);
  ASSERT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  attach(file.get());
  sink_.set_room(10);
  expect_input(sink_, text.substr(0, 10));
  for (int round = 0; round < 10; ++round) {
    loop_->run_ready();
  }
  EXPECT_EQ(loop_->run_ready(), 0U);
  sink_.set_room(SIZE_MAX);
  input_->resume_input();
  run_until([&] { return ends_ != 0; });
  EXPECT_EQ(sink_.received(), text);
}

TEST_F(CharInputTest, TheFilterSeesInputAlthoughTheSinkHasNoRoom) {
  std::string seen;
  auto input = CharInput::create(executor_, [&](std::span<std::byte> bytes) {
                 seen.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                 return size_t{0};
               }).value();
  sink_.set_room(0);
  input->set_sink(&sink_);
  Pipe pipe = make_pipe();
  ASSERT_TRUE(input->attach(CharDescriptor::share(pipe.read_end.get(), CharDescriptor::Direction::kRead).value(),
                            [](IoStatus) {}));
  send_all(pipe.write_end.get(), "\x01x");
  run_until([&] { return !seen.empty(); });
  EXPECT_EQ(seen, "\x01x");
}

TEST_F(CharInputTest, ADirectoryIsRefused) {
  UniqueFd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto descriptor = CharDescriptor::share(folder.get(), CharDescriptor::Direction::kRead);
  ASSERT_FALSE(descriptor);
  EXPECT_EQ(descriptor.error().code(), Errc::kInvalidArgument);
}

}  // namespace
}  // namespace tandem::devices
