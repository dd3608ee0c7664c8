// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/migrate_job.hpp"

#include <poll.h>

#include <array>
#include <thread>
#include <utility>

#include "vmm/cli/leaving_machine.hpp"
#include "vmm/cli/migration_progress.hpp"
#include "vmm/lib/thread/start_thread.hpp"
#include "vmm/migration/migration_address.hpp"
#include "vmm/migration/migration_sender.hpp"
#include "vmm/migration/socket_channel.hpp"

namespace tandem::cli {
namespace {

using control::Job;
using control::JobContext;
using control::Json;
using migration::MigrationOutcome;
using migration::MigrationProgress;
using migration::MigrationReport;

/// How long a receiver may take to answer a call.
constexpr std::chrono::seconds kConnectPatience{20};

/// What the arguments of the command ask for.
struct MigrateOrder {
  migration::MigrationAddress address;
  migration::MigrationWishes wishes;
};

/// Passes on how far the migration is.
class JobProgressObserver final : public migration::MigrationObserver {
 public:
  explicit JobProgressObserver(JobContext& job) : job_(job) {}
  void on_progress(const MigrationProgress& progress) override { job_.report(job_progress_of(progress)); }

 private:
  JobContext& job_;
};

/// Passes a job's cancellation on to its migration, for as long as it lives.
class CancelRelay {
 public:
  static Result<std::unique_ptr<CancelRelay>> create(const JobContext& job, Machine& machine,
                                                     migration::Cancellation& cancellation) {
    std::unique_ptr<CancelRelay> relay(new CancelRelay(TANDEM_TRY(create_eventfd())));
    const auto main = [relay = relay.get(), fd = job.cancel_fd(), &machine, &cancellation] {
      std::array<pollfd, 2> entries{{{fd, POLLIN, 0}, {relay->end_.get(), POLLIN, 0}}};
      while (::poll(entries.data(), entries.size(), -1) < 0) {
      }
      if (entries[0].revents != 0) {
        const auto alive = machine.on_control_thread([] { return Result<void>(); });
        cancellation.request(alive ? "cancelled" : "the guest has ended");
      }
    };
    relay->thread_ = TANDEM_TRY(start_thread("cancel", main));
    return relay;
  }
  CancelRelay(const CancelRelay&) = delete;
  CancelRelay& operator=(const CancelRelay&) = delete;
  ~CancelRelay() {
    signal_eventfd(end_.get());
    if (thread_.joinable()) {
      thread_.join();
    }
  }

 private:
  explicit CancelRelay(UniqueFd end) : end_(std::move(end)) {}
  UniqueFd end_;
  std::thread thread_;
};

Result<std::chrono::nanoseconds> read_duration(const Json& value, std::string_view key) {
  constexpr uint64_t kMostMilliseconds = 1'000'000'000;
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kMostMilliseconds) {
    return fail(Errc::kInvalidArgument, "{}: a number of milliseconds up to {} is due", key, kMostMilliseconds);
  }
  return std::chrono::milliseconds(value.get<uint64_t>());
}

Result<void> read_argument(const std::string& key, const Json& value, MigrateOrder& order) {
  if (key == "address" && value.is_string()) {
    order.address = TANDEM_TRY(migration::MigrationAddress::parse(value.get<std::string>()));
  } else if (key == "downtime_ms") {
    order.wishes.downtime = TANDEM_TRY(read_duration(value, key));
  } else if (key == "timeout_ms") {
    order.wishes.timeout = TANDEM_TRY(read_duration(value, key));
  } else if (key == "check" && value.is_boolean()) {
    order.wishes.check_only = value.get<bool>();
  } else if (key == "verify" && value.is_boolean()) {
    order.wishes.verify_ram = value.get<bool>();
  } else if (key == "compress" && value == "zstd") {
    order.wishes.compress = migration::ChunkEncoder::Compress::kZstd;
  } else {
    return fail(Errc::kInvalidArgument, "{}: is no argument of migrate, or of another type", key);
  }
  return {};
}

Result<MigrateOrder> read_order(const Json& arguments) {
  MigrateOrder order;
  for (const auto& [key, value] : arguments.items()) {
    TANDEM_TRY(read_argument(key, value, order));
  }
  using Kind = migration::MigrationAddress::Kind;
  if (order.address.kind == Kind::kFd || (order.address.kind == Kind::kUnix && !order.address.path.starts_with('/'))) {
    return fail(Errc::kInvalidArgument, "address: tcp:HOST:PORT or unix: with an absolute path is needed");
  }
  return order;
}

Json to_json(const MigrationReport& report) {
  return {{"total_ns", report.total.count()},
          {"sent_bytes", report.sent_bytes},
          {"ram_bytes_copied", report.copied_bytes},
          {"rounds", report.rounds},
          {"throttle_percent", report.throttle_percent},
          {"ram_compared", report.ram_compared},
          {"downtime_ns",
           {{"total", report.downtime.total().count()},
            {"pause", report.downtime.pause.count()},
            {"remainder", report.downtime.remainder.count()},
            {"state", report.downtime.state.count()},
            {"hand_over", report.downtime.hand_over.count()}}},
          {"text", report.text()}};
}

Result<Json> migrate(Machine& machine, const MigrateOrder& order, JobContext& job) {
  const auto cancellation = TANDEM_TRY(migration::Cancellation::create());
  const auto relay = TANDEM_TRY(CancelRelay::create(job, machine, *cancellation));
  JobProgressObserver observer(job);
  LeavingMachine leaving(machine);
  auto connected = migration::connect_to(order.address, Deadline(kConnectPatience), cancellation->fd());
  TANDEM_TRY(cancellation->check());
  UniqueFd socket = TANDEM_TRY(std::move(connected));
  auto channel = TANDEM_TRY(migration::SocketChannel::create(std::move(socket), cancellation->fd()));
  MigrationOutcome outcome = migration::MigrationSender(channel, leaving, observer, *cancellation, order.wishes).run();
  switch (outcome.kind) {
    case MigrationOutcome::Kind::kChecked:
      return Json{{"differences", outcome.differences}};
    case MigrationOutcome::Kind::kMoved:
      TANDEM_TRY(machine.on_control_thread([&]() -> Result<void> {
        machine.end(MachineEnd::Kind::kHandedOver, "moved to " + order.address.text);
        return {};
      }));
      return to_json(outcome.report);
    case MigrationOutcome::Kind::kStays:
    case MigrationOutcome::Kind::kUnknown:
      break;
  }
  return fail(Errc::kIo, "{}", outcome.reason);
}

}  // namespace

control::ControlCommand migrate_command(Machine& machine) {
  return {.name = "migrate", .start = [&machine](const Json& arguments) -> Result<control::CommandOutcome> {
            MigrateOrder order = TANDEM_TRY(read_order(arguments));
            return Job{
                .command = "migrate",
                .work = [&machine, order = std::move(order)](JobContext& job) { return migrate(machine, order, job); },
                .when_alone = Job::WhenAlone::kIsCancelled};
          }};
}

}  // namespace tandem::cli
