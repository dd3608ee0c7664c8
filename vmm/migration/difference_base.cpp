// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/difference_base.hpp"

#include <utility>

namespace tandem::migration {

Result<void> DifferenceBase::start(const Snapshot& snapshot) {
  base_.reset();
  writes_ = TANDEM_TRY(log_.open());
  accept(snapshot.identity(), snapshot.chain().front().path());
  return {};
}

Result<void> DifferenceBase::require(const Snapshot& snapshot) const {
  const std::string& path = snapshot.chain().front().path();
  if (!base_) {
    return fail(Errc::kInvalidArgument,
                "{}: no difference to it: this virtual machine was neither restored from nor saved in a snapshot yet",
                path);
  }
  if (snapshot.identity() != base_->identity) {
    return fail(Errc::kInvalidArgument,
                "{}: no difference to it: this virtual machine was last saved in, or restored from, {}", path,
                base_->path);
  }
  return {};
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
