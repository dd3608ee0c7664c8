// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "vmm/lib/event_loop/event_loop.hpp"

namespace tandem {

/// Calls from other threads into the thread of a loop, each of which waits for its result.
class LoopCalls {
 public:
  /// @pre `loop` outlives this.
  explicit LoopCalls(EventLoop& loop);
  LoopCalls(const LoopCalls&) = delete;
  LoopCalls& operator=(const LoopCalls&) = delete;
  /// @pre nobody waits.
  ~LoopCalls() = default;

  /// Runs `call`, which returns a Result, on the loop's thread, and returns what it returns.
  /// @errors  those of `call`; Errc::kClosed: the loop has ended, and `call` did not run.
  /// @thread  any but the loop's.
  template <typename Call>
  std::invoke_result_t<Call> run(Call call) {
    std::optional<std::invoke_result_t<Call>> result;
    TANDEM_TRY(run_and_wait([&] { result = call(); }));
    return *std::move(result);
  }

  /// Sends everybody who waits, or comes later, away. @thread the loop's, once the loop does not run any more.
  void close();

 private:
  struct State;
  Result<void> run_and_wait(std::function<void()> call);

  EventLoop& loop_;
  std::shared_ptr<State> state_;  // shared with tasks in the loop that come too late
};

}  // namespace tandem
