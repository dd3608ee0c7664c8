// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/disk_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/memory_file.hpp"

namespace tandem::devices {
namespace {

using fakes::MemoryFile;
constexpr auto kReadWrite = DiskFile::Access::kReadWrite;
constexpr auto kReadOnly = DiskFile::Access::kReadOnly;
constexpr uint64_t kBlock = 4096;

std::string fd_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

void expect_refused(const std::string& path, Errc code, std::string_view why) {
  const auto disk = DiskFile::open(path, kReadOnly);
  ASSERT_FALSE(disk);
  EXPECT_EQ(disk.error().code(), code);
  EXPECT_EQ(disk.error().message(), "disk " + path + ": " + std::string(why));
}

std::string content_of(const MemoryFile& file, size_t size_bytes) {
  std::string content(size_bytes, '?');
  EXPECT_EQ(::pread(file.fd(), content.data(), content.size(), 0), static_cast<ssize_t>(size_bytes));
  return content;
}

TEST(DiskFileTest, ARegularFileIsADisk) {
  const MemoryFile file(std::string(3 * kSectorBytes, 'x'));
  const auto disk = DiskFile::open(file.path(), kReadWrite);
  ASSERT_TRUE(disk);
  EXPECT_EQ(disk->size_bytes(), 3 * kSectorBytes);
  EXPECT_FALSE(disk->is_read_only());
  EXPECT_EQ(::fcntl(disk->fd(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::fcntl(disk->fd(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(DiskFileTest, AReadOnlyDiskCannotBeWrittenTo) {
  const MemoryFile file(std::string(kSectorBytes, 'x'));
  const auto disk = DiskFile::open(file.path(), kReadOnly);
  ASSERT_TRUE(disk);
  EXPECT_TRUE(disk->is_read_only());
  EXPECT_EQ(::pwrite(disk->fd(), "y", 1, 0), -1);
}

TEST(DiskFileTest, AMissingFileIsNamed) {
  expect_refused("/proc/self/fd/1000000", Errc::kNotFound, "No such file or directory");
}

TEST(DiskFileTest, AnEmptyFileIsRefused) {
  const MemoryFile file(std::string_view{});
  expect_refused(file.path(), Errc::kInvalidArgument, "is empty");
}

TEST(DiskFileTest, AHalfSectorIsRefused) {
  const MemoryFile file(std::string(513, 'x'));
  expect_refused(file.path(), Errc::kInvalidArgument, "its size of 513 bytes is not a multiple of 512");
}

TEST(DiskFileTest, ADirectoryIsRefused) {
  expect_refused("/proc/self", Errc::kInvalidArgument, "is a directory, where a regular file or block device is due");
}

TEST(DiskFileTest, AFifoIsRefusedAtOnce) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  expect_refused(fd_path(ends[0]), Errc::kInvalidArgument, "is a FIFO, where a regular file or block device is due");
}

TEST(DiskFileTest, ASocketIsRefused) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  expect_refused(fd_path(socket.get()), Errc::kInvalidArgument,
                 "is a socket, where a regular file or block device is due");
}

TEST(DiskFileTest, ACharacterDeviceIsRefused) {
  expect_refused("/dev/null", Errc::kInvalidArgument,
                 "is a character device, where a regular file or block device is due");
}

// Locks

TEST(DiskFileTest, ADiskThatIsWrittenToIsNobodyElses) {
  const MemoryFile file(std::string(kSectorBytes, 'x'));
  const auto disk = DiskFile::open(file.path(), kReadWrite);
  ASSERT_TRUE(disk);
  const auto writer = DiskFile::open(file.path(), kReadWrite);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code(), Errc::kBusy);
  EXPECT_EQ(writer.error().message(), "disk " + file.path() + ": is in use: locked by another process, or given twice");
  expect_refused(file.path(), Errc::kBusy, "is in use for writing: locked by another process, or given twice");
}

TEST(DiskFileTest, ADiskMayHaveManyReadersButThenNoWriter) {
  const MemoryFile file(std::string(kSectorBytes, 'x'));
  const auto first = DiskFile::open(file.path(), kReadOnly);
  const auto second = DiskFile::open(file.path(), kReadOnly);
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(DiskFile::open(file.path(), kReadWrite));
}

TEST(DiskFileTest, ClosingADiskUnlocksIt) {
  const MemoryFile file(std::string(kSectorBytes, 'x'));
  {
    ASSERT_TRUE(DiskFile::open(file.path(), kReadWrite));
  }
  EXPECT_TRUE(DiskFile::open(file.path(), kReadWrite));
}

TEST(DiskFileTest, ADiskToBeLockedLaterIsOpenedBesideItsOwner) {
  const MemoryFile file(std::string(kSectorBytes, 'x'));
  const auto owner = DiskFile::open(file.path(), kReadWrite);
  const auto next = DiskFile::open(file.path(), kReadWrite, DiskFile::Locking::kLater);
  ASSERT_TRUE(owner && next);
  EXPECT_TRUE(next->is_locked_elsewhere());
  EXPECT_FALSE(owner->is_locked_elsewhere());
  EXPECT_EQ(next->take_lock().error().code(), Errc::kBusy);
}

TEST(DiskFileTest, ALockIsHandedOverAndBack) {
  const MemoryFile file(std::string(kSectorBytes, 'x'));
  const auto owner = DiskFile::open(file.path(), kReadWrite);
  const auto next = DiskFile::open(file.path(), kReadWrite, DiskFile::Locking::kLater);
  ASSERT_TRUE(owner && next);
  owner->drop_lock();
  EXPECT_FALSE(next->is_locked_elsewhere());
  EXPECT_TRUE(next->take_lock());
  EXPECT_TRUE(next->take_lock()) << "it is ours already";
  EXPECT_EQ(owner->take_lock().error().code(), Errc::kBusy);
  next->drop_lock();
  EXPECT_TRUE(owner->take_lock());
}

TEST(DiskFileTest, ADiskThatNobodyLockedIsAnybodys) {
  const MemoryFile file(std::string(kSectorBytes, 'x'));
  const auto disk = DiskFile::open(file.path(), kReadWrite, DiskFile::Locking::kLater);
  ASSERT_TRUE(disk);
  EXPECT_FALSE(disk->is_locked_elsewhere());
  EXPECT_TRUE(DiskFile::open(file.path(), kReadWrite));
}

/// Runs `body` on a thread for which setting a lock fails with `os_error`.
void without_locks(int os_error, const std::function<void()>& body) {
  std::thread([&] {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(os_error)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{.len = std::size(filter), .filter = filter};
    ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    body();
  }).join();
}

TEST(DiskFileTest, ALockThatCannotBeHadIsNoMissingLock) {
  const MemoryFile file(std::string(kSectorBytes, 'x'));
  for (const int os_error : {ENOLCK, EIO, EINTR, ENOMEM}) {
    without_locks(os_error, [&] {
      const auto disk = DiskFile::open(file.path(), kReadWrite);
      ASSERT_FALSE(disk) << os_error;
      EXPECT_TRUE(disk.error().message().starts_with("disk " + file.path() + ": cannot be locked: "))
          << disk.error().message();
    });
  }
}

TEST(DiskFileTest, AFileSystemWithoutLocksIsUsedAndHandedOver) {
  const MemoryFile file(std::string(kSectorBytes, 'x'));
  for (const int os_error : {EINVAL, ENOSYS, EOPNOTSUPP}) {
    without_locks(os_error, [&] {
      const auto disk = DiskFile::open(file.path(), kReadWrite);
      ASSERT_TRUE(disk) << os_error;
      disk->drop_lock();
      EXPECT_TRUE(disk->take_lock()) << os_error;
    });
  }
}

// Who hands a disk over must not run the guest again for an error that says nothing of who has the disk now.
TEST(DiskFileTest, ALockIsNotTakenBackWhereLocksAreGone) {
  const MemoryFile file(std::string(kSectorBytes, 'x'));
  const auto owner = DiskFile::open(file.path(), kReadWrite);
  const auto next = DiskFile::open(file.path(), kReadWrite, DiskFile::Locking::kLater);
  ASSERT_TRUE(owner && next);
  owner->drop_lock();
  for (const int os_error : {ENOLCK, EIO, EINVAL, ENOSYS, EOPNOTSUPP}) {
    without_locks(os_error, [&] {
      EXPECT_FALSE(owner->take_lock()) << os_error;
      EXPECT_FALSE(next->take_lock()) << os_error;
    });
  }
}

// Operations

class DiskFileOperationTest : public ::testing::Test {
 protected:
  MemoryFile file_{std::string(4 * kBlock, 'x')};
  DiskFile disk_ = DiskFile::open(file_.path(), kReadWrite).value();
  /// Storage that the file takes [bytes].
  [[nodiscard]] int64_t stored_bytes() const {
    struct stat file = {};
    EXPECT_EQ(::fstat(file_.fd(), &file), 0);
    return file.st_blocks * 512;
  }
};

TEST_F(DiskFileOperationTest, DiscardGivesStorageBackAndKeepsTheSize) {
  const int64_t before = stored_bytes();
  EXPECT_EQ(disk_.discard(kBlock, 2 * kBlock), 0);
  EXPECT_EQ(stored_bytes(), before - static_cast<int64_t>(2 * kBlock));
  EXPECT_EQ(content_of(file_, 4 * kBlock).substr(3 * kBlock), std::string(kBlock, 'x'));
}

TEST_F(DiskFileOperationTest, ZeroesMayGiveStorageBack) {
  const int64_t before = stored_bytes();
  EXPECT_EQ(disk_.write_zeroes(0, kBlock, DiskFile::Unmap::kAllowed), 0);
  EXPECT_EQ(stored_bytes(), before - static_cast<int64_t>(kBlock));
  EXPECT_EQ(content_of(file_, kBlock), std::string(kBlock, '\0'));
}

TEST_F(DiskFileOperationTest, ZeroesKeepStorageWhenTheyMust) {
  const int64_t before = stored_bytes();
  EXPECT_EQ(disk_.write_zeroes(kSectorBytes, 2 * kBlock, DiskFile::Unmap::kNo), 0);
  EXPECT_EQ(stored_bytes(), before);
  const std::string content = content_of(file_, 4 * kBlock);
  EXPECT_EQ(content.substr(0, kSectorBytes), std::string(kSectorBytes, 'x'));
  EXPECT_EQ(content.substr(kSectorBytes, 2 * kBlock), std::string(2 * kBlock, '\0'));
  EXPECT_EQ(content.find_first_not_of('x', kSectorBytes + 2 * kBlock), std::string::npos);
}

TEST_F(DiskFileOperationTest, AFileThatRefusesWritesSaysSo) {
  ASSERT_EQ(::fcntl(file_.fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(disk_.write_zeroes(0, kBlock, DiskFile::Unmap::kAllowed), EPERM);
  EXPECT_EQ(disk_.discard(0, kBlock), EPERM);
}

TEST_F(DiskFileOperationTest, FlushWorks) { EXPECT_EQ(disk_.flush(), 0); }

}  // namespace
}  // namespace tandem::devices
