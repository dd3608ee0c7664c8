// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/job_runner.hpp"

#include <utility>

#include "vmm/lib/thread/start_thread.hpp"

namespace tandem::control {

/// What the job's thread and the loop share.
class JobRunner::Context final : public JobContext {
 public:
  Context(int news_fd, UniqueFd cancelled) : news_fd_(news_fd), cancelled_fd_(std::move(cancelled)) {}

  void report(JobProgress progress) override {
    const std::lock_guard lock(mutex_);
    progress_ = std::move(progress);
    has_progress_ = true;
    signal_eventfd(news_fd_);
  }
  [[nodiscard]] bool is_cancelled() const override { return cancelled_; }
  [[nodiscard]] int cancel_fd() const override { return cancelled_fd_.get(); }

  void cancel() {
    cancelled_ = true;
    signal_eventfd(cancelled_fd_.get());
  }
  void end(Result<Json> result) {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
    signal_eventfd(news_fd_);
  }
  [[nodiscard]] JobProgress progress() const {
    const std::lock_guard lock(mutex_);
    return progress_;
  }
  /// What was said since the last call.
  std::optional<JobProgress> take_progress() {
    const std::lock_guard lock(mutex_);
    return std::exchange(has_progress_, false) ? std::optional(progress_) : std::nullopt;
  }
  std::optional<Result<Json>> take_result() {
    const std::lock_guard lock(mutex_);
    return std::exchange(result_, std::nullopt);
  }

 private:
  const int news_fd_;
  const UniqueFd cancelled_fd_;
  std::atomic<bool> cancelled_{false};
  mutable std::mutex mutex_;  // guards the rest
  JobProgress progress_;
  bool has_progress_ = false;
  std::optional<Result<Json>> result_;
};

JobRunner::JobRunner(UniqueFd news) : news_(std::move(news)) {}

Result<std::unique_ptr<JobRunner>> JobRunner::create(EventLoop& loop) {
  std::unique_ptr<JobRunner> runner(new JobRunner(TANDEM_TRY(create_eventfd())));
  runner->news_watch_ = TANDEM_TRY(
      loop.watch(runner->news_.get(), Events::kReadable, [self = runner.get()](Events) { self->on_news(); }));
  return runner;
}

JobRunner::~JobRunner() { finish(); }

Result<void> JobRunner::start(Job job, Listener listener) {
  if (job_) {
    return fail(Errc::kBusy, "{} in progress", job_->command);
  }
  context_ = std::make_unique<Context>(news_.get(), TANDEM_TRY(create_eventfd()));
  thread_ =
      TANDEM_TRY(start_thread("job", [context = context_.get(), work = job.work] { context->end(work(*context)); }));
  job_ = std::move(job);
  listener_ = std::move(listener);
  return {};
}

Result<void> JobRunner::cancel(std::string_view command) {
  if (!job_ || job_->command != command) {
    return fail(Errc::kNotFound, "no {} in progress", command);
  }
  context_->cancel();
  return {};
}

JobProgress JobRunner::progress() const { return context_ ? context_->progress() : JobProgress(); }

void JobRunner::on_news() {
  drain_eventfd(news_.get());
  if (!job_) {
    return;
  }
  if (const auto progress = context_->take_progress(); progress && listener_.on_progress) {
    listener_.on_progress(*progress);
  }
  auto result = context_->take_result();
  if (!result) {
    return;
  }
  thread_.join();  // it has said its last
  job_.reset();
  context_.reset();
  const Listener listener = std::exchange(listener_, {});
  if (listener.on_end) {
    listener.on_end(std::move(*result));
  }
}

void JobRunner::finish() {
  if (!job_) {
    return;
  }
  context_->cancel();
  thread_.join();
  thread_ = {};
  job_.reset();
  auto result = context_->take_result();
  context_.reset();
  const Listener listener = std::exchange(listener_, {});
  if (result && listener.on_end) {
    listener.on_end(std::move(*result));
  }
}

}  // namespace tandem::control
