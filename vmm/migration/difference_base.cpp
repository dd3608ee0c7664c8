// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/difference_base.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

namespace tandem::migration {

Result<void> DifferenceBase::start(const Snapshot& snapshot) {
  base_.reset();
  writes_ = TANDEM_TRY(log_.open());
  const std::string& path = snapshot.chain().front().path();
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);  // who is told of it may be somewhere else
  accept(snapshot.identity(), error ? path : absolute.string());
  return {};
}

Result<void> DifferenceBase::require(const Snapshot& snapshot) const {
  const std::string& path = snapshot.chain().front().path();
  if (!base_) {
    return fail(Errc::kInvalidArgument,
                "{}: no difference to it: this virtual machine was neither restored from nor saved in a snapshot yet",
                path);
  }
  if (snapshot.identity() == base_->identity) {
    return {};
  }
  std::error_code error;
  if (std::filesystem::equivalent(path, base_->path, error)) {
    return fail(
        Errc::kInvalidArgument,
        "{}: no difference to it: it is another snapshot than when this virtual machine was saved in, or restored "
        "from it",
        path);
  }
  return fail(Errc::kInvalidArgument,
              "{}: no difference to it: this virtual machine was last saved in, or restored from, {}", path,
              base_->path);
}

Result<void> DifferenceBase::collect() {
  if (writes_) {
    return writes_->collect(changes_);
  }
  writes_ = TANDEM_TRY(log_.open());
  return {};
}

void DifferenceBase::accept(const Checksum& identity, std::string path) {
  TANDEM_ASSERT(writes_ != nullptr, "what was written since is noted");
  base_ = Named{.identity = identity, .path = std::move(path)};
  changes_.clear();
}

void DifferenceBase::discard() {
  if (!base_) {
    writes_.reset();  // nobody asks what is written since
  }
}

}  // namespace tandem::migration
