// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::migration {

/// Whether a snapshot that is there already may be replaced.
enum class Replace : uint8_t { kNo, kYes };

/// A directory that is filled under a temporary name beside its place, `.<name>.tmp-XXXXXX`, and moved there when it is
/// complete. Unless that happens, it vanishes again, and what was at its place stays as it was.
class StagedDirectory {
 public:
  /// @errors  Errc::kExists: there is something at `path`, and it is not a snapshot that may be replaced.
  static Result<StagedDirectory> create(std::string path, Replace replace);
  StagedDirectory(StagedDirectory&& other) noexcept;
  StagedDirectory& operator=(StagedDirectory&&) = delete;
  ~StagedDirectory();

  /// Where it will be.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Where it is, until it is published.
  [[nodiscard]] std::string staged_path() const { return place_ + staged_name_; }

  /// A new, empty file in it.
  Result<UniqueFd> create_file(const std::string& name);
  /// Ends writing to a file: its bytes are on the disk then.
  Result<void> finish_file(UniqueFd file, const std::string& name);

  /// Moves it to its place, for good: a power failure later on does not undo it. What was there is deleted afterwards.
  /// @errors  Errc::kExists: something appeared there meanwhile.
  Result<void> publish();

 private:
  StagedDirectory(std::string path, Replace replace) : path_(std::move(path)), replace_(replace) {}
  Result<void> stage();
  [[nodiscard]] Result<void> check_place() const;
  Result<void> move_to_free_place();
  Result<void> exchange();
  Result<void> exchange_in_steps();
  void remove_staged();

  std::string path_;
  Replace replace_;
  std::string place_;        // the directory around it, with a slash, or nothing for the current one
  std::string name_;         // in `place_`
  std::string staged_name_;  // in `place_`; empty: there is nothing to remove
  UniqueFd parent_;
  UniqueFd directory_;
};

}  // namespace tandem::migration
