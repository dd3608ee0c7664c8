// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/regular_file/regular_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>

#include "tests/fakes/memory_file.hpp"

namespace tandem {
namespace {

TEST(RegularFileTest, ReadsUntilTheEnd) {
  const fakes::MemoryFile source("hello");
  const auto file = RegularFile::open("kernel", source.path());
  ASSERT_TRUE(file);
  std::array<std::byte, 16> out{};
  EXPECT_EQ(file->size(), 5U);
  EXPECT_EQ(file->read_at(1, out).value(), 4U);
  EXPECT_EQ(out[0], std::byte{'e'});
  EXPECT_EQ(file->read_at(5, out).value(), 0U);
}

TEST(RegularFileTest, AMissingFileIsNamed) {
  const auto file = RegularFile::open("kernel", "/nonexistent/vmlinuz");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), Errc::kNotFound);
  EXPECT_EQ(file.error().message(), "kernel /nonexistent/vmlinuz: No such file or directory");
}

TEST(RegularFileTest, AnEmptyPathIsAMissingFile) {
  EXPECT_EQ(RegularFile::open("kernel", "").error().code(), Errc::kNotFound);
}

TEST(RegularFileTest, ADirectoryIsRefused) {
  EXPECT_EQ(RegularFile::open("initrd", "/proc").error().message(),
            "initrd /proc: is a directory; a regular file is needed");
}

TEST(RegularFileTest, ACharacterDeviceIsRefused) {
  EXPECT_EQ(RegularFile::open("kernel", "/dev/zero").error().message(),
            "kernel /dev/zero: is a character device; a regular file is needed");
}

TEST(RegularFileTest, AFifoWithoutWriterIsRefusedAtOnce) {
  const std::string path = testing::TempDir() + "regular_file_test." + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto file = RegularFile::open("kernel", path);
  ::unlink(path.c_str());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message(), "kernel " + path + ": is a FIFO; a regular file is needed");
}

}  // namespace
}  // namespace tandem
