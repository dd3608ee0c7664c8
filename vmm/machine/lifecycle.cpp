// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/lifecycle.hpp"

#include "vmm/lib/result/result.hpp"

namespace tandem {

std::string_view Lifecycle::state_name() const {
  switch (state_) {
    case State::kCreated:
      return "created";
    case State::kRunning:
      return "running";
    case State::kPaused:
      return "paused";
    case State::kEnded:
      return "ended";
  }
  TANDEM_UNREACHABLE("every state returns above");
}

void Lifecycle::note_paused() {
  TANDEM_ASSERT(state_ == State::kCreated || state_ == State::kRunning,
                "only what is new or runs comes to stand still");
  state_ = State::kPaused;
}

void Lifecycle::note_running() {
  TANDEM_ASSERT(state_ == State::kCreated || state_ == State::kPaused,
                "only what is new or stands still starts to run");
  state_ = State::kRunning;
}

void Lifecycle::drop_hold() {
  TANDEM_ASSERT(holds_ != 0, "a hold ends once");
  --holds_;
}

}  // namespace tandem
