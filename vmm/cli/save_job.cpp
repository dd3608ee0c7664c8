// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/save_job.hpp"

#include <optional>
#include <string>
#include <utility>

#include "vmm/control/frozen_guest.hpp"
#include "vmm/lib/progress/progress.hpp"
#include "vmm/machine/machine_spec_json.hpp"
#include "vmm/migration/snapshot_writer.hpp"

namespace tandem::cli {
namespace {

using control::FrozenGuest;
using control::Job;
using control::JobContext;
using control::Json;
using migration::DifferenceBase;
using migration::Snapshot;
using migration::SnapshotWriter;

/// What the arguments of the command ask for.
struct SaveOrder {
  std::string directory;
  migration::Replace replace = migration::Replace::kNo;
  std::string base;  ///< Of the difference; empty: the snapshot is to be a full one.
  bool stop = false;
  bool freeze = false;

  [[nodiscard]] bool has_base() const { return !base.empty(); }
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

Result<void> require_absolute(const std::string& path) {
  if (!path.starts_with('/') || path.find('\0') != std::string::npos) {
    return fail(Errc::kInvalidArgument, "an absolute path is needed");
  }
  return {};
}

Result<SaveOrder> read_order(const Json& arguments) {
  SaveOrder order;
  for (const auto& [key, value] : arguments.items()) {
    if (key == "directory" && value.is_string()) {
      order.directory = value.get<std::string>();
    } else if (key == "base" && value.is_string()) {
      order.base = value.get<std::string>();
    } else if (key == "replace" && value.is_boolean()) {
      order.replace = value.get<bool>() ? migration::Replace::kYes : migration::Replace::kNo;
    } else if (key == "stop" && value.is_boolean()) {
      order.stop = value.get<bool>();
    } else if (key == "freeze" && value.is_boolean()) {
      order.freeze = value.get<bool>();
    } else {
      return fail(Errc::kInvalidArgument, "{}: is no argument of save, or of another type", key);
    }
  }
  TANDEM_TRY(with_context(require_absolute(order.directory), "directory"));
  if (order.has_base()) {
    TANDEM_TRY(with_context(require_absolute(order.base), "base"));
  }
  return order;
}

/// The snapshot that a difference is to be taken to.
Result<std::optional<Snapshot>> open_base(const SaveOrder& order, const DifferenceBase& base) {
  if (!order.has_base()) {
    return std::nullopt;
  }
  auto snapshot = TANDEM_TRY(Snapshot::open(order.base));
  TANDEM_TRY(base.require(snapshot));
  return snapshot;
}

/// Has the guest's agent freeze the file systems, if that is wanted.
Result<std::optional<FrozenGuest>> freeze(Machine& machine, const SaveOrder& order, JobContext& job) {
  if (!order.freeze) {
    return std::nullopt;
  }
  if (!machine.spec().vsock) {
    return fail(Errc::kUnsupported, "the virtual machine has no vsock device (tandem run --vsock)");
  }
  TANDEM_TRY(machine.on_control_thread([&machine]() -> Result<void> {
    if (machine.is_paused_by_user()) {
      return fail(Errc::kBusy, "the virtual machine is paused: its guest can freeze nothing");
    }
    return {};
  }));
  return TANDEM_TRY(FrozenGuest::create(machine.spec().vsock->path, job.cancel_fd()));
}

/// Writes what is of the machine at one moment. It stands still when this returns, unless it is released before.
Result<void> write_machine(Machine& machine, DifferenceBase& base, const SaveOrder& order, SnapshotWriter& writer,
                           ProgressSink& progress) {
  const MachineState state = TANDEM_TRY(machine.on_control_thread([&machine] { return machine.save_state(); }));
  if (order.has_base() || !order.stop) {
    TANDEM_TRY(base.collect());
  }
  TANDEM_TRY(writer.put_state(state));
  return writer.put_ram(machine.ram(), order.has_base() ? &base.changes() : nullptr, progress);
}

Result<void> write_snapshot(Machine& machine, DifferenceBase& base, const SaveOrder& order, JobContext& job) {
  JobProgressSink progress(job);
  const auto base_snapshot = TANDEM_TRY(open_base(order, base));
  auto writer = TANDEM_TRY(SnapshotWriter::create(
      {.directory = order.directory, .replace = order.replace, .base = base_snapshot ? &*base_snapshot : nullptr}));
  TANDEM_TRY(writer.put_spec(to_json(machine.spec())));
  for (const auto& [role, image] : machine.boot_images()) {
    TANDEM_TRY(writer.put_image(role, *image));
  }
  auto frozen = TANDEM_TRY(with_context(freeze(machine, order, job), "freeze"));
  Hold hold = TANDEM_TRY(Hold::create(machine));
  TANDEM_TRY(write_machine(machine, base, order, writer, progress));
  if (!order.stop) {
    TANDEM_TRY(hold.release());  // the guest need not wait for the disk
    if (frozen) {
      TANDEM_TRY(with_context(frozen->thaw(), "thaw"));  // and were they still frozen?
    }
  }
  const Checksum identity = TANDEM_TRY(writer.commit());
  if (!order.stop) {
    base.accept(identity, order.directory);
    return {};
  }
  TANDEM_TRY(machine.on_control_thread([&] {
    machine.end(MachineEnd::Kind::kHandedOver, "saved in " + order.directory);
    return Result<void>();
  }));
  hold.forget();
  return {};
}

Result<Json> save(Machine& machine, DifferenceBase& base, const SaveOrder& order, JobContext& job) {
  if (auto written = write_snapshot(machine, base, order, job); !written) {
    base.discard();
    return std::unexpected(std::move(written).error());
  }
  return Json{{"directory", order.directory}};
}

}  // namespace

control::ControlCommand save_command(Machine& machine, DifferenceBase& base) {
  return {.name = "save", .start = [&machine, &base](const Json& arguments) -> Result<control::CommandOutcome> {
            SaveOrder order = TANDEM_TRY(read_order(arguments));
            return Job{.command = "save",
                       .work = [&machine, &base,
                                order = std::move(order)](JobContext& job) { return save(machine, base, order, job); },
                       .when_alone = Job::WhenAlone::kIsCancelled};
          }};
}

}  // namespace tandem::cli
