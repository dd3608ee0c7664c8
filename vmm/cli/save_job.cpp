// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/save_job.hpp"

#include <string>
#include <utility>

#include "vmm/lib/progress/progress.hpp"
#include "vmm/machine/machine_spec_json.hpp"
#include "vmm/migration/snapshot_writer.hpp"

namespace tandem::cli {
namespace {

using control::Job;
using control::JobContext;
using control::Json;
using migration::SnapshotWriter;

/// What the arguments of the command ask for.
struct SaveOrder {
  std::string directory;
  migration::Replace replace = migration::Replace::kNo;
  bool stop = false;
};

/// Passes on how far the work is, and ends it when the job is cancelled.
class JobProgressSink final : public ProgressSink {
 public:
  explicit JobProgressSink(JobContext& job) : job_(job) {}
  Result<void> report(const ProgressReport& progress) override {
    job_.report({.phase = std::string(progress.phase), .done = progress.done_bytes, .total = progress.total_bytes});
    return job_.is_cancelled() ? fail(Errc::kClosed, "cancelled") : Result<void>();
  }

 private:
  JobContext& job_;
};

/// A machine that is held for a job; it goes on when this ends.
class Hold {
 public:
  static Result<Hold> create(Machine& machine) {
    TANDEM_TRY(machine.on_control_thread([&machine] { return machine.hold(); }));
    return Hold(machine);
  }
  Hold(Hold&& other) noexcept : machine_(std::exchange(other.machine_, nullptr)) {}
  Hold& operator=(Hold&&) = delete;
  ~Hold() {
    if (const auto released = release(); !released) {
      log::error("save: {}", released.error().message());
    }
  }
  /// For a machine that has ended.
  void forget() { machine_ = nullptr; }
  /// @errors  the machine cannot go on, and stays paused.
  Result<void> release() {
    Machine* const machine = std::exchange(machine_, nullptr);
    return machine == nullptr ? Result<void>() : machine->on_control_thread([machine] { return machine->release(); });
  }

 private:
  explicit Hold(Machine& machine) : machine_(&machine) {}
  Machine* machine_;
};

Result<SaveOrder> read_order(const Json& arguments) {
  SaveOrder order;
  for (const auto& [key, value] : arguments.items()) {
    if (key == "directory" && value.is_string()) {
      order.directory = value.get<std::string>();
    } else if (key == "replace" && value.is_boolean()) {
      order.replace = value.get<bool>() ? migration::Replace::kYes : migration::Replace::kNo;
    } else if (key == "stop" && value.is_boolean()) {
      order.stop = value.get<bool>();
    } else {
      return fail(Errc::kInvalidArgument, "{}: is no argument of save, or of another type", key);
    }
  }
  if (!order.directory.starts_with('/') || order.directory.find('\0') != std::string::npos) {
    return fail(Errc::kInvalidArgument, "directory: an absolute path is needed");
  }
  return order;
}

/// The machine stands still when this returns, unless it is released before.
Result<void> write_machine(Machine& machine, SnapshotWriter& writer, ProgressSink& progress) {
  const MachineState state = TANDEM_TRY(machine.on_control_thread([&machine] { return machine.save_state(); }));
  TANDEM_TRY(writer.put_state(state));
  return writer.put_ram(machine.ram(), nullptr, progress);
}

Result<Json> save(Machine& machine, const SaveOrder& order, JobContext& job) {
  JobProgressSink progress(job);
  auto writer = TANDEM_TRY(SnapshotWriter::create({.directory = order.directory, .replace = order.replace}));
  TANDEM_TRY(writer.put_spec(to_json(machine.spec())));
  for (const auto& [role, image] : machine.boot_images()) {
    TANDEM_TRY(writer.put_image(role, *image));
  }
  Hold hold = TANDEM_TRY(Hold::create(machine));
  TANDEM_TRY(write_machine(machine, writer, progress));
  if (!order.stop) {
    TANDEM_TRY(hold.release());  // the guest need not wait for the disk
  }
  TANDEM_TRY(writer.commit());
  if (order.stop) {
    TANDEM_TRY(machine.on_control_thread([&] {
      machine.end(MachineEnd::Kind::kHandedOver, "saved in " + order.directory);
      return Result<void>();
    }));
    hold.forget();
  }
  return Json{{"directory", order.directory}};
}

}  // namespace

control::ControlCommand save_command(Machine& machine) {
  return {.name = "save", .start = [&machine](const Json& arguments) -> Result<control::CommandOutcome> {
            SaveOrder order = TANDEM_TRY(read_order(arguments));
            return Job{
                .command = "save",
                .work = [&machine, order = std::move(order)](JobContext& job) { return save(machine, order, job); },
                .when_alone = Job::WhenAlone::kIsCancelled};
          }};
}

}  // namespace tandem::cli
