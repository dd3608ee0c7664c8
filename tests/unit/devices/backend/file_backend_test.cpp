// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/file_backend.hpp"

#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "tests/unit/devices/backend/backend_test.hpp"

namespace tandem::devices {
namespace {

class FileBackendTest : public BackendTest {
 protected:
  [[nodiscard]] std::string contents() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  const std::string path_ = folder_ + "/console";
};

TEST_F(FileBackendTest, CreatesTheFileAndWritesToIt) {
  auto backend = FileBackend::create(executor_, path_).value();
  backend->write(bytes_of("hello"));
  run_until([&] { return contents() == "hello"; });
}

TEST_F(FileBackendTest, EmptiesAnExistingFile) {
  std::ofstream(path_) << "old contents";
  auto backend = FileBackend::create(executor_, path_).value();
  backend->write(bytes_of("new"));
  backend.reset();
  EXPECT_EQ(contents(), "new");
}

TEST_F(FileBackendTest, TheFileMayBeTruncatedWhileItGrows) {
  auto backend = FileBackend::create(executor_, path_).value();
  backend->write(bytes_of("first"));
  run_until([&] { return contents() == "first"; });
  std::filesystem::resize_file(path_, 0);
  backend->write(bytes_of("second"));
  backend.reset();
  EXPECT_EQ(contents(), "second");
}

TEST_F(FileBackendTest, ADirectoryIsRefused) {
  const auto backend = FileBackend::create(executor_, folder_);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code(), Errc::kInvalidArgument);
}

TEST_F(FileBackendTest, AMissingFolderIsRefused) {
  const auto backend = FileBackend::create(executor_, folder_ + "/none/console");
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code(), Errc::kNotFound);
}

TEST_F(FileBackendTest, ANamedPipeThatNoOneReadsIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(FileBackend::create(executor_, path_));
}

}  // namespace
}  // namespace tandem::devices
