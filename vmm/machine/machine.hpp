// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "vmm/kvm/kvm_counter.hpp"
#include "vmm/kvm/kvm_dirty_log.hpp"
#include "vmm/kvm/kvm_vgic.hpp"
#include "vmm/lib/event_loop/event_loop.hpp"
#include "vmm/lib/event_loop/loop_calls.hpp"
#include "vmm/lib/guest_memory/guest_memory.hpp"
#include "vmm/lib/guest_memory/guest_ram.hpp"
#include "vmm/lib/guest_memory/ram_write_log.hpp"
#include "vmm/lib/state/machine_state.hpp"
#include "vmm/machine/device_set.hpp"
#include "vmm/machine/guest_loader.hpp"
#include "vmm/machine/guest_requests.hpp"
#include "vmm/machine/lifecycle.hpp"
#include "vmm/machine/machine_spec.hpp"
#include "vmm/machine/machine_status.hpp"
#include "vmm/machine/pv_services.hpp"
#include "vmm/machine/ram_file_guard.hpp"
#include "vmm/vcpu/vcpu_thread.hpp"
#include "vmm/vcpu/vcpu_throttle.hpp"

namespace tandem {

/// How a machine came to its end.
struct MachineEnd {
  enum class Kind : uint8_t {
    kPoweredOff,  ///< By the guest.
    kCrashed,     ///< The guest, or KVM under it.
    kStopped,     ///< By a signal or the user.
    kHandedOver,  ///< Saved or moved: it goes on elsewhere.
    kFailed,      ///< The host failed.
  };
  Kind kind;
  std::string reason;  ///< One line; empty for kPoweredOff.
};

/// What a machine that has run before, here or elsewhere, is made of.
struct RestoreSource {
  MachineSpec spec;               ///< Resolved; what it calls things exists on this host.
  std::vector<BootImage> images;  ///< What a reset loads.
  GuestRam ram;                   ///< As long as the spec says.
  std::string ram_file{};         ///< What errors call the file that RAM is mapped from; empty: it is mapped from none.
  /// kLater: the disks are to be locked by `reclaim_disks` before the machine runs.
  devices::DiskFile::Locking disk_locking = devices::DiskFile::Locking::kNow;
};

/// How a machine goes on from its state.
struct RestoreChoices {
  enum class Clock : uint8_t {
    kWall,    ///< The guest's clock chip shows the host's time.
    kFreeze,  ///< It goes on from the saved time.
  };
  enum class Identity : uint8_t {
    kSame,  ///< The machine runs nowhere else: it has moved.
    kCopy,  ///< Others may go on from the same state, and the guest is told.
  };
  Clock clock = Clock::kWall;
  Identity identity = Identity::kCopy;
};

/// Owns everything of one VM, wires it by the spec, and drives its life in a fixed order.
///
/// Threads: the one that calls `run` controls the machine; "io" runs the devices' asynchronous work; one thread a vCPU.
/// Unless it says otherwise, a function is called on the control thread: from a callback of `control_loop()`, or by way of
/// `on_control_thread()`.
class Machine final : public MachineEvents {
 public:
  /// What the vCPUs do first.
  enum class Start : uint8_t { kRunning, kPaused };

  /// Builds the machine, up to but not including the first guest instruction. SIGTERM, SIGINT and SIGHUP, unless
  /// ignored, are blocked in the calling thread from then on: `run` handles them.
  /// @errors  whatever of the host is missing or refuses; nothing is left behind.
  static Result<std::unique_ptr<Machine>> create(MachineSpec spec);

  /// As `create`, but RAM and images are given, and `restore` has to follow before `run`.
  /// @pre     the host fits: see require_host_fits.
  static Result<std::unique_ptr<Machine>> create_to_restore(RestoreSource source);
  /// Gives the machine the state that another one saved, whose RAM it has.
  /// @errors  Errc::kCorrupt: not the state of such a machine. Errc::kUnsupported: this host cannot take it over. The machine
  ///          is then good for nothing but its end.
  Result<void> restore(MachineState state, const RestoreChoices& choices);

  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() override;

  /// The device tree as the guest would get it at the next reset.
  [[nodiscard]] Result<std::vector<std::byte>> device_tree() const;

  /// Runs the guest until it ends, or a signal or the user ends it. Called once.
  MachineEnd run(Start first = Start::kRunning);
  /// Makes the threads that `run` needs, if they are to be there before: none is to be had is an error here, and not when
  /// nobody else has the guest any more. The guest stays stopped. Once, after `restore`.
  /// @errors  as VcpuThread::create and start_thread fail.
  Result<void> create_threads();

  /// The loop that `run` runs, for what else belongs to the control thread. @thread any.
  [[nodiscard]] EventLoop& control_loop() { return *control_loop_; }
  /// Runs `call`, which returns a Result, on the control thread, and returns what it returns.
  /// @errors  those of `call`; Errc::kClosed: the machine has ended.
  /// @thread  any but the control thread.
  template <typename Call>
  auto on_control_thread(Call call) {
    return calls_->run(std::move(call));
  }

  /// Parks the vCPUs and finishes what the devices have in flight, as the user's wish: the machine stays paused until
  /// `resume`. What the guest asked for just before waits until then. Does nothing if that is so already.
  /// @errors  what a device cannot finish; the machine runs on. Errc::kBusy: a job holds the machine, and may have told
  ///          somebody already how it goes on.
  Result<void> pause();
  /// Takes back `pause`.
  /// @errors  what a device cannot take up again; the machine stays paused. Errc::kBusy: as for `pause`.
  Result<void> resume();

  /// As `pause`, for a job that saves or sends the machine: what the guest has asked for is done first, so that no state
  /// is saved that waits for a machine to act on it.
  /// @errors  as `pause`; Errc::kClosed: the guest asked for its end. Nothing is held then.
  Result<void> hold();
  /// Ends a hold: the machine goes on, unless the user paused it.
  /// @errors  as `resume`.
  Result<void> release();
  /// Ends a hold and leaves the machine to the user, as if they had paused it meanwhile.
  /// @errors  as `pause`.
  Result<void> release_paused();

  /// Resets the guest in place, as one that asks for it. A paused one stays paused, and starts anew when it is resumed.
  /// @errors  Errc::kBusy: a job holds the machine. All others end the machine.
  Result<void> reset();
  /// Ends the machine: `run` returns. The first end counts.
  void end(MachineEnd::Kind kind, std::string reason);

  /// The state of everything but RAM, which is complete once this returns: saving the interrupt controller writes to it.
  /// @pre paused or held.
  Result<MachineState> save_state();
  /// What the machine is, with everything that was chosen for it. @thread any.
  [[nodiscard]] const MachineSpec& spec() const { return spec_; }
  /// What a reset loads. @thread any.
  [[nodiscard]] std::vector<BootImageView> boot_images() const { return loader_.images(); }
  /// All of RAM, which the guest writes to while it runs. @thread any.
  [[nodiscard]] std::span<const std::byte> ram() const { return ram_->bytes(); }

  /// Who wants to know what is written to RAM asks here. @thread any.
  [[nodiscard]] RamWriteLog& write_log() { return *write_log_; }
  /// Slows the guest down for as long as it lives. @pre `run` has been called. @thread any.
  [[nodiscard]] Result<std::unique_ptr<VcpuThrottle>> make_throttle() const;

  /// Whether the user has paused the machine.
  [[nodiscard]] bool is_paused_by_user() const { return life_.is_paused_by_user(); }
  /// Gives up the locks of the disks. Without them the machine cannot be resumed. @pre paused or held.
  void release_disks();
  /// Takes them again. @errors  Errc::kBusy: somebody else has one.
  Result<void> reclaim_disks();

  /// @pre `run` has been called.
  [[nodiscard]] MachineStatus status() const;
  /// The devices, for what the host does to them.
  [[nodiscard]] DeviceSet& devices() { return *devices_; }

 private:
  Machine(MachineSpec spec, GuestLoader loader, Kvm kvm)
      : spec_(std::move(spec)), loader_(std::move(loader)), kvm_(std::move(kvm)) {}
  Result<void> build();
  Result<void> create_memory();
  void note_what_was_chosen();
  Result<void> create_vcpus();
  Result<void> create_devices();
  Result<void> create_pv_services();
  [[nodiscard]] Result<GicVersion> choose_gic() const;
  [[nodiscard]] Result<VcpuFeatures> choose_features() const;
  [[nodiscard]] devices::FdtNode hardware_tree() const;
  Result<void> watch_signals();

  Result<void> load_guest();
  Result<void> start(Start first);
  [[nodiscard]] Result<void> require_not_held() const;
  Result<void> stop_guest();
  Result<void> release_guest();
  Result<void> continue_guest();
  Result<void> follow_wishes();
  Result<void> reset_guest(std::string_view why);
  Result<void> reset_stopped_guest();
  void ask(GuestRequest request);
  void answer_guest();
  void answer(GuestRequest request);

  void on_system_off() override;
  void on_system_reset(const SystemResetExit& reset) override;
  void on_crash(std::string reason) override;
  void on_quit() override;

  MachineSpec spec_;  // fixed once the machine is built
  const GuestLoader loader_;
  const Kvm kvm_;

  std::unique_ptr<EventLoop> control_loop_;  // of the thread in `run`
  std::unique_ptr<EventLoop> io_loop_;       // of the "io" thread
  std::optional<LoopCalls> calls_;           // into control_loop_
  UniqueFd signals_;
  EventLoop::Watch signals_watch_;

  std::optional<GuestRam> ram_;
  std::string ram_file_;  // for errors; empty if RAM is mapped from none
  std::unique_ptr<RamFileGuard> ram_guard_;
  std::optional<GuestMemory> memory_;
  std::unique_ptr<KvmVm> vm_;
  std::unique_ptr<KvmDirtyLog> guest_writes_;
  std::optional<RamWriteLog> write_log_;
  std::unique_ptr<KvmVgic> vgic_;
  VcpuFeatures features_;
  std::vector<std::unique_ptr<KvmVcpu>> vcpus_;
  std::unique_ptr<KvmCounter> counter_;
  std::unique_ptr<DeviceSet> devices_;
  devices::HypercallBus hypercalls_;
  std::unique_ptr<PvServices> pv_;

  std::unique_ptr<ExitDispatcher> dispatcher_;
  std::vector<std::unique_ptr<VcpuThread>> vcpu_threads_;
  std::thread io_thread_;

  Lifecycle life_;
  GuestRequests requests_;
  devices::DiskFile::Locking disk_locking_ = devices::DiskFile::Locking::kNow;
  bool disks_are_away_ = false;  // locked by nobody, or by whom the machine was handed over to
  std::chrono::steady_clock::time_point started_at_;
  std::atomic<uint64_t> reset_count_{0};
  std::optional<MachineEnd> end_;  // set once, by the control thread
};

}  // namespace tandem
