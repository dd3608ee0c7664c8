// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "devices/backend/block_engine.hpp"
#include "devices/backend/block_worker.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::devices {

/// An engine that performs requests when the test lets it, on the thread that takes them back.
class FakeBlockEngine final : public BlockEngine {
 public:
  explicit FakeBlockEngine(DiskFile disk) : disk_(std::move(disk)) {}

  [[nodiscard]] const DiskFile& disk() const override { return disk_; }
  [[nodiscard]] std::string_view name() const override { return "fake"; }
  void submit(BlockRequest& request) override { submitted_.push_back(&request); }
  void kick() override {
    in_flight_.insert(in_flight_.end(), submitted_.begin(), submitted_.end());
    submitted_.clear();
    if (!holding_ && !in_flight_.empty()) {
      signal_eventfd(completion_.get());
    }
  }
  [[nodiscard]] int completion_fd() const override { return completion_.get(); }
  void reap(std::vector<BlockRequest*>& ended) override {
    drain_eventfd(completion_.get());
    if (holding_) {
      return;
    }
    for (BlockRequest* const request : std::exchange(in_flight_, {})) {
      if (failure != 0) {
        request->os_error = failure;
      } else {
        perform(disk_, *request);
      }
      performed.push_back({.kind = request->kind, .durable = request->durable});
      ended.push_back(request);
    }
  }

  /// Keeps requests in flight until `let_go`.
  void hold() { holding_ = true; }
  /// @thread any.
  void let_go() {
    holding_ = false;
    signal_eventfd(completion_.get());
  }
  [[nodiscard]] size_t in_flight() const { return in_flight_.size(); }

  struct Performed {
    BlockRequest::Kind kind;
    bool durable;
  };
  std::vector<Performed> performed;  ///< In order.
  int failure = 0;                   ///< errno that every request ends with, if not 0.

 private:
  DiskFile disk_;
  UniqueFd completion_ = create_eventfd().value();
  std::vector<BlockRequest*> submitted_;
  std::vector<BlockRequest*> in_flight_;
  std::atomic<bool> holding_{false};
};

}  // namespace tandem::devices
