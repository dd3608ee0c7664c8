// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/file_transfer.hpp"

#include <sys/stat.h>

#include <fstream>

#include "tests/unit/guest-agent/agent_rig.hpp"

namespace tandem::agent {
namespace {

class FileTransferTest : public AgentTest {
 protected:
  [[nodiscard]] std::string read_file() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// How many files are in the folder.
  [[nodiscard]] auto file_count() const {
    return std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator());
  }

  const std::string path_ = folder_ + "/file";
};

TEST_F(FileTransferTest, WhatIsPutIsThereWithItsMode) {
  ask_for<Done>(PutRequest{.path = path_, .mode = 0751});
  send_input(std::string_view("con\0tents", 9));
  send_input(" and more");
  send_input("");
  EXPECT_EQ(next_message().as<FileReply>().value().size_bytes, 18U);
  EXPECT_EQ(read_file(), std::string("con\0tents and more", 18));
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0751U);
  EXPECT_EQ(file_count(), 1);
}

TEST_F(FileTransferTest, AFileThatWasThereIsReplacedAsAWhole) {
  std::ofstream(path_) << "old";
  ask_for<Done>(PutRequest{.path = path_});
  send_input("new");
  EXPECT_EQ(read_file(), "old");
  send_input("");
  EXPECT_TRUE(next_message().as<FileReply>());
  EXPECT_EQ(read_file(), "new");
}

TEST_F(FileTransferTest, ALinkStaysOne) {
  std::ofstream(path_) << "old";
  std::filesystem::create_symlink("file", folder_ + "/link");
  ask_for<Done>(PutRequest{.path = folder_ + "/link"});
  send_input("new");
  send_input("");
  EXPECT_TRUE(next_message().as<FileReply>());
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/link"));
  EXPECT_EQ(read_file(), "new");
}

TEST_F(FileTransferTest, OfAPutThatIsCutShortNothingIsLeft) {
  ask_for<Done>(PutRequest{.path = path_});
  send_input("half");
  disconnect();
  EXPECT_EQ(file_count(), 0);
}

TEST_F(FileTransferTest, AMessageInTheMiddleOfAFileEndsIt) {
  ask_for<Done>(PutRequest{.path = path_});
  EXPECT_EQ(error_of(PingRequest{}), "bad-request");
  EXPECT_EQ(file_count(), 0);
  ask_for<PingReply>(PingRequest{});
}

TEST_F(FileTransferTest, WhatIsThereComesBack) {
  const std::string contents(3 * kMaxStreamBytes + 1, 'c');
  std::ofstream(path_) << contents;
  std::filesystem::permissions(path_, std::filesystem::perms::owner_read);
  ask_for<Done>(GetRequest{.path = path_});
  std::string received;
  for (Frame frame = channel_->receive().value(); !frame.payload.empty(); frame = channel_->receive().value()) {
    ASSERT_EQ(frame.kind, FrameKind::kOutput);
    received.append(reinterpret_cast<const char*>(frame.payload.data()), frame.payload.size());
  }
  const auto end = channel_->receive_message().value().as<FileReply>().value();
  EXPECT_EQ(received, contents);
  EXPECT_EQ(end.size_bytes, contents.size());
  EXPECT_EQ(end.mode, 0400U);
}

TEST_F(FileTransferTest, OnlyRegularFilesAreMovedAround) {
  EXPECT_EQ(error_of(GetRequest{.path = folder_}), "bad-request");
  EXPECT_EQ(error_of(GetRequest{.path = "/dev/zero"}), "bad-request");
  EXPECT_EQ(error_of(PutRequest{.path = "/dev/null"}), "bad-request");
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(error_of(GetRequest{.path = path_}), "bad-request");
}

TEST_F(FileTransferTest, WhatMakesNoSenseIsRefused) {
  EXPECT_EQ(error_of(GetRequest{.path = folder_ + "/none"}), "not-found");
  EXPECT_EQ(error_of(GetRequest{}), "bad-request");
  EXPECT_EQ(error_of(PutRequest{.path = folder_ + "/no/folder"}), "not-found");
  EXPECT_EQ(error_of(PutRequest{.path = path_, .mode = 010000}), "bad-request");
  EXPECT_EQ(error_of(PutRequest{.path = std::string("a\0b", 3)}), "bad-request");
}

}  // namespace
}  // namespace tandem::agent
