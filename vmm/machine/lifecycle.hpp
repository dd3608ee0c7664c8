// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

/// Where a machine is in its life, and who wants it to stand still.
///
/// The user's wish and the holds of jobs are counted apart: a machine that a job has held goes on afterwards only if the
/// user did not pause it, before or meanwhile. What is done about a wish is the machine's business.
class Lifecycle {
 public:
  enum class State : uint8_t {
    kCreated,  ///< Built; no vCPU has run.
    kRunning,
    kPaused,  ///< vCPUs are parked, devices paused.
    kEnded,
  };

  [[nodiscard]] State state() const { return state_; }
  /// As `status` has it: "created", "running", "paused" or "ended".
  [[nodiscard]] std::string_view state_name() const;

  // What has happened to the machine. Each asserts that it can have.

  /// It stands still: after the start, or after a pause.
  void note_paused();
  /// It runs: after the start, or after a pause.
  void note_running();
  /// Its end has come. Comes from every state, and any number of times.
  void note_ended() { state_ = State::kEnded; }

  // Who wants it to stand still.

  void set_paused_by_user(bool paused) { paused_by_user_ = paused; }
  [[nodiscard]] bool is_paused_by_user() const { return paused_by_user_; }
  void add_hold() { ++holds_; }
  /// @pre add_hold was called more often.
  void drop_hold();
  [[nodiscard]] bool is_held() const { return holds_ != 0; }
  /// Whether it stands still and nobody wants that any more.
  [[nodiscard]] bool is_to_run() const { return state_ == State::kPaused && !paused_by_user_ && holds_ == 0; }
  /// Whether it runs and somebody wants it to stand still.
  [[nodiscard]] bool is_to_pause() const { return state_ == State::kRunning && (paused_by_user_ || holds_ != 0); }

 private:
  State state_ = State::kCreated;
  bool paused_by_user_ = false;
  unsigned holds_ = 0;
};

}  // namespace tandem
