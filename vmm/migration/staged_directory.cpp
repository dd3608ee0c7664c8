// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/staged_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/lib/regular_file/regular_file.hpp"
#include "vmm/migration/snapshot_format.hpp"

namespace tandem::migration {
namespace {

struct CloseDirectory {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

UniqueFd open_directory(int around, const std::string& name) {
  return UniqueFd(::openat(around, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

/// The names in `directory`.
Result<std::vector<std::string>> names_in(int directory) {
  UniqueFd own(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, CloseDirectory> stream(own ? ::fdopendir(own.get()) : nullptr);
  if (!stream) {
    return fail_errno("read directory");
  }
  (void)own.release();  // the stream's
  std::vector<std::string> names;
  while (const dirent* const entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") {
      names.emplace_back(name);
    }
  }
  return names;
}

bool is_of_a_snapshot(std::string_view name) {
  return name == kManifestName || name == kSpecName || name == kStateName || name == kRamName || name == kRamSumsName ||
         name.starts_with(kImagePrefix);
}

/// Refuses a directory with anything in it that is not a snapshot's: it would be deleted.
Result<void> check_is_snapshot(int directory) {
  const auto names = TANDEM_TRY(names_in(directory));
  for (const std::string& name : names) {
    if (!is_of_a_snapshot(name)) {
      return fail(Errc::kExists, "holds '{}', which is no part of a snapshot: it is not replaced", name);
    }
  }
  if (names.empty()) {
    return {};
  }
  const auto manifest = RegularFile::open_in(directory, kManifestName, "manifest");
  std::string magic(kSnapshotMagic.size(), '\0');
  const auto count =
      manifest ? manifest->read_at(0, std::as_writable_bytes(std::span(magic))) : Result<size_t>(size_t{0});
  if (!count || magic != kSnapshotMagic) {
    return fail(Errc::kExists, "is no snapshot: it is not replaced");
  }
  return {};
}

Result<void> sync_directory(int directory) {
  if (::fsync(directory) != 0 && errno != EINVAL) {  // some file systems do not know it for directories
    return fail_errno("fsync");
  }
  return {};
}

bool lacks_rename_flags(int os_error) { return os_error == EINVAL || os_error == ENOSYS; }

}  // namespace

Result<StagedDirectory> StagedDirectory::create(std::string path, Replace replace) {
  while (path.size() > 1 && path.ends_with('/')) {
    path.pop_back();
  }
  StagedDirectory directory(std::move(path), replace);
  TANDEM_TRY(with_context(directory.stage(), directory.path()));
  return directory;
}

Result<void> StagedDirectory::stage() {
  const size_t slash = path_.rfind('/');
  place_ = slash == std::string::npos ? "" : path_.substr(0, slash + 1);
  name_ = path_.substr(place_.size());
  if (name_.empty() || name_ == "." || name_ == "..") {
    return fail(Errc::kInvalidArgument, "is no name for a new directory");
  }
  parent_.reset(::open(place_.empty() ? "." : place_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent_) {
    return fail_errno("directory around it");
  }
  TANDEM_TRY(check_place());
  std::string staged = fmt::format("{}.{}.tmp-XXXXXX", place_, name_);
  if (::mkdtemp(staged.data()) == nullptr) {
    return fail_errno("temporary directory beside it");
  }
  staged_name_ = staged.substr(place_.size());
  directory_ = open_directory(parent_.get(), staged_name_);
  if (!directory_) {
    return fail_errno("temporary directory beside it");
  }
  return {};
}

StagedDirectory::StagedDirectory(StagedDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      replace_(other.replace_),
      place_(std::move(other.place_)),
      name_(std::move(other.name_)),
      staged_name_(std::exchange(other.staged_name_, {})),
      parent_(std::move(other.parent_)),
      directory_(std::move(other.directory_)) {}

StagedDirectory::~StagedDirectory() {
  if (!staged_name_.empty()) {
    remove_staged();
  }
}

Result<void> StagedDirectory::check_place() const {
  struct stat status{};
  if (::fstatat(parent_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? Result<void>() : fail_errno("stat");
  }
  if (replace_ == Replace::kNo) {
    return fail(Errc::kExists, "is there already (--replace replaces a snapshot)");
  }
  if (!S_ISDIR(status.st_mode)) {
    return fail(Errc::kExists, "is no directory: it is not replaced");
  }
  const UniqueFd there = open_directory(parent_.get(), name_);
  return there ? check_is_snapshot(there.get()) : fail_errno("open");
}

Result<UniqueFd> StagedDirectory::create_file(const std::string& name) {
  UniqueFd file(
      ::openat(directory_.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!file) {
    return fail_errno("{}/{}: create", staged_path(), name);
  }
  return file;
}

Result<void> StagedDirectory::finish_file(UniqueFd file, const std::string& name) {
  if (::fsync(file.get()) != 0 || ::close(file.release()) != 0) {
    return fail_errno("{}/{}: write", staged_path(), name);
  }
  return {};
}

Result<void> StagedDirectory::publish() {
  TANDEM_TRY(with_context(sync_directory(directory_.get()), staged_path()));
  auto moved = move_to_free_place();
  if (!moved && moved.error().code() == Errc::kExists && replace_ == Replace::kYes) {
    TANDEM_TRY(with_context(check_place(), path_));
    moved = exchange();
  }
  TANDEM_TRY(with_context(std::move(moved), path_));
  if (auto synced = sync_directory(parent_.get()); !synced) {
    staged_name_.clear();  // an old one stays: after a crash either of them may be what is there
    return with_context(std::move(synced), path_);
  }
  if (!staged_name_.empty()) {
    remove_staged();  // the old one
  }
  return {};
}

Result<void> StagedDirectory::move_to_free_place() {
  const int parent = parent_.get();
  int status = ::renameat2(parent, staged_name_.c_str(), parent, name_.c_str(), RENAME_NOREPLACE);
  if (status != 0 && lacks_rename_flags(errno)) {
    // What is there, if it is not an empty directory, makes rename(2) fail.
    struct stat there{};
    if (::fstatat(parent, name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) {
      return fail(Errc::kExists, "is there already");
    }
    status = ::renameat(parent, staged_name_.c_str(), parent, name_.c_str());
  }
  if (status != 0) {
    return fail_errno("rename");
  }
  staged_name_.clear();
  return {};
}

Result<void> StagedDirectory::exchange() {
  const int parent = parent_.get();
  if (::renameat2(parent, staged_name_.c_str(), parent, name_.c_str(), RENAME_EXCHANGE) != 0) {
    return lacks_rename_flags(errno) ? exchange_in_steps() : fail_errno("exchange with the new one");
  }
  return {};
}

Result<void> StagedDirectory::exchange_in_steps() {
  const int parent = parent_.get();
  const std::string old_name = staged_name_ + ".old";
  if (::renameat(parent, name_.c_str(), parent, old_name.c_str()) != 0) {
    return fail_errno("move the old one aside");
  }
  if (auto moved = move_to_free_place(); !moved) {
    ::renameat(parent, old_name.c_str(), parent, name_.c_str());
    return moved;
  }
  staged_name_ = old_name;
  return {};
}

void StagedDirectory::remove_staged() {
  // Only files are there, and a name that cannot be removed is no reason to fail: what counts is done, or has failed.
  const UniqueFd directory = open_directory(parent_.get(), staged_name_);
  if (const auto names = directory ? names_in(directory.get()) : Result<std::vector<std::string>>()) {
    for (const std::string& name : *names) {
      ::unlinkat(directory.get(), name.c_str(), 0);
    }
  }
  ::unlinkat(parent_.get(), staged_name_.c_str(), AT_REMOVEDIR);
  staged_name_.clear();
}

}  // namespace tandem::migration
