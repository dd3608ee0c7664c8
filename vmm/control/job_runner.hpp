// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "vmm/lib/event_loop/event_loop.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::control {

/// What requests and replies are made of: fields stay in their order.
using Json = nlohmann::ordered_json;

/// How far a job has come.
struct JobProgress {
  std::string phase{};    ///< The same for all that `done` counts.
  std::string details{};  ///< More for people; mostly empty.
  uint64_t done = 0;      ///< In units of the job's own, mostly bytes.
  uint64_t total = 0;     ///< 0: not known.
  bool operator==(const JobProgress&) const = default;
};

/// What a job sees of whoever runs it. @thread that of the job.
class JobContext {
 public:
  virtual ~JobContext() = default;
  /// Says how far the job is. Cheap: what nobody has looked at yet is replaced.
  virtual void report(JobProgress progress) = 0;
  /// Whether the job is to stop, and to leave everything as it was, if that is still possible.
  [[nodiscard]] virtual bool is_cancelled() const = 0;
  /// A descriptor that is readable once `is_cancelled`, for poll(2). It stays the runner's.
  [[nodiscard]] virtual int cancel_fd() const = 0;
};

/// The work of a job; what it returns is its result. Runs on a thread of its own, and reaches the machine by
/// `Machine::on_control_thread`.
using JobWork = std::function<Result<Json>(JobContext&)>;

/// What a job is asked to be.
struct Job {
  enum class WhenAlone : bool { kGoesOn, kIsCancelled };

  std::string command{};  ///< By which it was asked for: "save".
  JobWork work{};
  WhenAlone when_alone = WhenAlone::kIsCancelled;  ///< When whoever asked for it has gone away.
};

/// Runs one job at a time beside the control thread's loop.
/// @thread the loop's, unless it says otherwise.
class JobRunner {
 public:
  struct Listener {
    std::function<void(const JobProgress&)> on_progress{};  ///< On the loop.
    std::function<void(Result<Json>)> on_end{};             ///< On the loop, once; a new job may be started then.
  };

  /// @pre `loop` outlives it.
  static Result<std::unique_ptr<JobRunner>> create(EventLoop& loop);
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;
  ~JobRunner();

  /// @errors  Errc::kBusy: another job runs. Those of a thread's start.
  Result<void> start(Job job, Listener listener);
  /// Asks the job that `command` started to stop. It ends when it ends.
  /// @errors  Errc::kNotFound: there is none.
  Result<void> cancel(std::string_view command);

  /// The command of the job that runs now; empty if none does.
  [[nodiscard]] std::string running() const { return job_ ? job_->command : std::string(); }
  /// How far it has come.
  [[nodiscard]] JobProgress progress() const;

  /// Cancels the job, waits for its end, and tells its listener. @pre the loop does not run any more.
  void finish();

 private:
  class Context;
  explicit JobRunner(UniqueFd news);
  void on_news();

  UniqueFd news_;  // eventfd: the job said something
  EventLoop::Watch news_watch_;
  std::optional<Job> job_;
  Listener listener_;
  std::unique_ptr<Context> context_;
  std::thread thread_;
};

}  // namespace tandem::control
