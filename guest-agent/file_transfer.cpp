// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/file_transfer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>

#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::agent {
namespace {

Result<void> check(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return fail(Errc::kInvalidArgument, "no file is named");
  }
  return {};
}

/// What `path` names once links are followed; itself if nothing is there.
Result<std::string> place_of(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  if (!real) {
    return path;
  }
  struct stat status{};
  if (::stat(real.get(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return fail(Errc::kInvalidArgument, "{}: not a regular file", path);
  }
  return std::string(real.get());
}

/// A file under a name of its own beside the one that it is to have.
class NewFile {
 public:
  static Result<NewFile> create(std::string place) {
    std::string name = place + ".tandem-XXXXXX";
    UniqueFd file(::mkostemp(name.data(), O_CLOEXEC));
    if (!file) {
      return fail_errno("{}", place);
    }
    return NewFile(std::move(place), std::move(name), std::move(file));
  }
  NewFile(NewFile&& other) noexcept = default;
  NewFile& operator=(NewFile&&) = delete;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (file_) {
      ::unlink(name_.c_str());
    }
  }

  Result<void> write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR) {
        return fail_errno("{}", place_);
      }
      bytes = bytes.subspan(count < 0 ? 0 : static_cast<size_t>(count));
    }
    return {};
  }

  /// Gives the file its name; lasting, as far as the file system lets it.
  Result<void> commit(mode_t mode) {
    if (::fchmod(file_.get(), mode) != 0 || ::fsync(file_.get()) != 0 || ::rename(name_.c_str(), place_.c_str()) != 0) {
      return fail_errno("{}", place_);
    }
    file_.reset();
    const size_t slash = place_.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : place_.substr(0, slash + 1);
    if (const UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); directory) {
      ::fsync(directory.get());
    }
    return {};
  }

 private:
  NewFile(std::string place, std::string name, UniqueFd file)
      : place_(std::move(place)), name_(std::move(name)), file_(std::move(file)) {}
  std::string place_;
  std::string name_;
  UniqueFd file_;
};

/// Takes the contents of a file from the client. @return their length.
Result<uint64_t> receive_contents(FrameChannel& channel, NewFile& file) {
  uint64_t size_bytes = 0;
  while (true) {
    const Frame frame = TANDEM_TRY(channel.receive());
    if (frame.kind != FrameKind::kInput) {
      return fail(Errc::kCorrupt, "something else came in the middle of the file");
    }
    if (frame.payload.empty()) {
      return size_bytes;
    }
    TANDEM_TRY(file.write(frame.payload));
    size_bytes += frame.payload.size();
    TANDEM_TRY(channel.send(FrameKind::kCredit, credit_payload(static_cast<uint32_t>(frame.payload.size()))));
  }
}

}  // namespace

Result<void> receive_file(FrameChannel& channel, const PutRequest& request) {
  constexpr uint32_t kModeBits = 07777;
  TANDEM_TRY(check(request.path));
  if ((request.mode & ~kModeBits) != 0) {
    return fail(Errc::kInvalidArgument, "no file has the mode {:o}", request.mode);
  }
  NewFile file = TANDEM_TRY(NewFile::create(TANDEM_TRY(place_of(request.path))));
  TANDEM_TRY(channel.send(Done{}));
  const uint64_t size_bytes = TANDEM_TRY(receive_contents(channel, file));
  TANDEM_TRY(file.commit(request.mode));
  return channel.send(FileReply{.size_bytes = size_bytes, .mode = request.mode});
}

Result<void> send_file(FrameChannel& channel, const GetRequest& request) {
  TANDEM_TRY(check(request.path));
  struct stat status{};
  // Asked before it is opened, too: opening some devices has consequences.
  if (::stat(request.path.c_str(), &status) != 0) {
    return fail_errno("{}", request.path);
  }
  const UniqueFd file(S_ISREG(status.st_mode) ? ::open(request.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1);
  if (!S_ISREG(status.st_mode) || (file && (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)))) {
    return fail(Errc::kInvalidArgument, "{}: not a regular file", request.path);
  }
  if (!file) {
    return fail_errno("{}", request.path);
  }
  TANDEM_TRY(channel.send(Done{}));
  std::array<std::byte, kMaxStreamBytes> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init): read fills it
  uint64_t size_bytes = 0;
  while (true) {
    const ssize_t count = ::read(file.get(), bytes.data(), bytes.size());
    if (count < 0) {
      return fail_errno("{}", request.path);
    }
    TANDEM_TRY(channel.send(FrameKind::kOutput, std::span(bytes).first(static_cast<size_t>(count))));
    if (count == 0) {
      return channel.send(FileReply{.size_bytes = size_bytes, .mode = status.st_mode & 07777U});
    }
    size_bytes += static_cast<uint64_t>(count);
  }
}

}  // namespace tandem::agent
