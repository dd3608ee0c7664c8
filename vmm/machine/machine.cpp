// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/machine.hpp"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include "devices/backend/host_entropy.hpp"
#include "devices/backend/stdio_backend.hpp"
#include "devices/virtio_net/virtio_net.hpp"
#include "vmm/lib/log/log.hpp"
#include "vmm/lib/thread/start_thread.hpp"
#include "vmm/machine/board_fdt.hpp"
#include "vmm/machine/board_layout.hpp"
#include "vmm/machine/host_probe.hpp"

namespace tandem {
namespace {

/// Signals that end the machine in an orderly way.
constexpr std::array kEndingSignals{SIGTERM, SIGINT, SIGHUP};

/// Those of them that were not ignored from the start: nohup(1), and shells with what they start in the background, mean
/// the process to survive these.
sigset_t ending_signal_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kEndingSignals) {
    struct sigaction now{};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
      sigaddset(&set, signal);
    }
  }
  return set;
}

/// Why a machine ends whose RAM was mapped from a file that is not what it was.
std::string cut_off_text(const std::string& file) {
  return fmt::format("{}: has become shorter while the virtual machine's memory was read from it", file);
}

/// A random address of those that anybody may use: locally administered, unicast. (IEEE 802, "Local MAC addresses")
Result<devices::MacAddress> make_mac() {
  constexpr uint8_t kMulticast = 1;
  constexpr uint8_t kLocal = 2;
  devices::MacAddress mac{};
  TANDEM_TRY(devices::HostEntropy().fill(std::as_writable_bytes(std::span(mac))));
  mac[0] = static_cast<uint8_t>((mac[0] & ~kMulticast) | kLocal);
  return mac;
}

VgicLayout vgic_layout(const MachineSpec& spec) {
  return {.distributor = board::kGicd,
          .cpu_interface = board::kGicc,
          .redistributors = board::gicr(spec.vcpu_count),
          .its = board::kGits,
          .interrupt_count = board::kInterruptCount};
}

}  // namespace

Result<std::unique_ptr<Machine>> Machine::create(MachineSpec spec) {
  devices::fill_standard_descriptors();  // before anything is opened that could take the number of a closed one
  // Images come first: what the user most likely got wrong is said before the host is touched.
  GuestLoader loader = TANDEM_TRY(GuestLoader::create(spec));
  Kvm kvm = TANDEM_TRY(Kvm::open());
  for (NetSpec& net : spec.nets) {
    if (!net.mac) {
      net.mac = TANDEM_TRY(make_mac());
    }
  }
  std::unique_ptr<Machine> machine(new Machine(std::move(spec), std::move(loader), std::move(kvm)));
  TANDEM_TRY(machine->build());
  TANDEM_TRY(machine->load_guest());
  return machine;
}

Result<std::unique_ptr<Machine>> Machine::create_to_restore(RestoreSource source) {
  devices::fill_standard_descriptors();
  Kvm kvm = TANDEM_TRY(Kvm::open());
  GuestLoader loader = TANDEM_TRY(GuestLoader::create(source.spec, std::move(source.images)));
  std::unique_ptr<Machine> machine(new Machine(std::move(source.spec), std::move(loader), std::move(kvm)));
  machine->ram_ = std::move(source.ram);
  machine->ram_file_ = std::move(source.ram_file);
  machine->disk_locking_ = source.disk_locking;
  machine->disks_are_away_ = source.disk_locking == devices::DiskFile::Locking::kLater;
  TANDEM_TRY(machine->build());
  return machine;
}

Result<void> Machine::build() {
  control_loop_ = TANDEM_TRY(EventLoop::create());
  io_loop_ = TANDEM_TRY(EventLoop::create());
  calls_.emplace(*control_loop_);
  TANDEM_TRY(watch_signals());
  TANDEM_TRY(create_memory());
  TANDEM_TRY(create_vcpus());
  TANDEM_TRY(loader_.require_cpu_fits(TANDEM_TRY(vcpus_.front()->id_aa64mmfr0())));
  TANDEM_TRY(create_devices());
  TANDEM_TRY(create_pv_services());
  note_what_was_chosen();
  dispatcher_ = std::make_unique<ExitDispatcher>(devices_->bus(), hypercalls_, *this);
  return {};
}

/// Makes the spec say what the guest sees, whatever was left to this host.
void Machine::note_what_was_chosen() {
  spec_.gic = vgic_->version() == GicVersion::kV3 ? GicChoice::kV3 : GicChoice::kV2;
  spec_.its = vgic_->has_its();
  spec_.cpu = {.sve = features_.sve,
               .sve_quadwords = quadwords_of(vcpus_.front()->features().sve_vector_lengths),
               .pauth = features_.pauth,
               .pmu = features_.pmu};
  spec_.pv_time = pv_->has_time();
  if (!pv_->has_vcpu_state()) {
    spec_.pv_vcpu_state = VcpuStateChoice::kOff;
  }
}

Result<void> Machine::watch_signals() {
  const sigset_t set = ending_signal_set();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) {
    return fail_errno("signalfd");
  }
  signals_watch_ = TANDEM_TRY(control_loop_->watch(signals_.get(), Events::kReadable, [this](Events) {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      end(MachineEnd::Kind::kStopped, fmt::format("ended by SIG{}", ::sigabbrev_np(static_cast<int>(info.ssi_signo))));
    }
  }));
  return {};
}

Result<void> Machine::create_memory() {
  const auto range = GuestRange::create(board::kRamBase, spec_.memory_bytes);
  TANDEM_ASSERT(range && spec_.memory_bytes <= board::kMaxRamBytes, "the command line checked the size");
  if (!ram_) {
    ram_ = TANDEM_TRY(with_context(GuestRam::create_anonymous(*range), "guest memory"));
  }
  TANDEM_ASSERT(ram_->range().base() == range->base() && ram_->range().size() == range->size(),
                "who restores made it so");
  if (!ram_file_.empty()) {
    ram_guard_ = TANDEM_TRY(RamFileGuard::create(ram_->bytes(), "tandem: " + cut_off_text(ram_file_)));
  }
  memory_.emplace(std::vector{GuestMemory::Region{*range, ram_->bytes()}});
  vm_ = TANDEM_TRY(KvmVm::create(kvm_, range->last()));
  TANDEM_TRY(vm_->add_memory(*range, ram_->bytes()));
  guest_writes_ = TANDEM_TRY(KvmDirtyLog::create(*vm_, *range));
  write_log_.emplace(*memory_, *guest_writes_, *range, host_page_size());
  return {};
}

Result<void> Machine::create_vcpus() {
  const GicVersion gic = TANDEM_TRY(choose_gic());
  features_ = TANDEM_TRY(choose_features());
  vgic_ = TANDEM_TRY(KvmVgic::create(*vm_, gic, gic == GicVersion::kV3 && spec_.its, vgic_layout(spec_)));
  for (unsigned index = 0; index < spec_.vcpu_count; ++index) {
    vcpus_.push_back(TANDEM_TRY(with_context(KvmVcpu::create(*vm_, index, features_), fmt::format("vCPU {}", index))));
  }
  counter_ = TANDEM_TRY(KvmCounter::create(*vm_, *vcpus_.front()));
  TANDEM_TRY(vgic_->init(vcpus_));
  if (features_.pmu) {
    for (const auto& vcpu : vcpus_) {
      TANDEM_TRY(vcpu->init_pmu(board::kPmuIrq));
    }
  }
  return {};
}

Result<GicVersion> Machine::choose_gic() const {
  const HostGic host = HostGic::probe(*vm_);
  const std::string_view has = host.v2 && host.v3 ? "GICv2 and GICv3" : host.v3 ? "GICv3" : host.v2 ? "GICv2" : "none";
  switch (spec_.gic) {
    case GicChoice::kV3:
      if (!host.v3) {
        return fail(Errc::kUnsupported, "--gic v3: this host's KVM offers {}", has);
      }
      return GicVersion::kV3;
    case GicChoice::kV2:
      if (!host.v2) {
        return fail(Errc::kUnsupported, "--gic v2: this host's KVM offers {}", has);
      }
      return GicVersion::kV2;
    case GicChoice::kAuto:
      break;
  }
  if (host.v3) {
    return GicVersion::kV3;
  }
  if (!host.v2) {
    return fail(Errc::kUnsupported, "this host's KVM offers no interrupt controller");
  }
  if (spec_.vcpu_count > kMaxVcpusGicV2) {
    return fail(Errc::kUnsupported, "--cpus {}: this host's KVM offers GICv2, which has at most {} vCPUs",
                spec_.vcpu_count, kMaxVcpusGicV2);
  }
  return GicVersion::kV2;
}

Result<VcpuFeatures> Machine::choose_features() const {
  const VcpuFeatures host = KvmVcpu::supported_features(kvm_);
  if (spec_.cpu.pmu && !host.pmu) {
    return fail(Errc::kUnsupported, "--pmu: this host's KVM has no PMU for guests");
  }
  VcpuFeatures features{.sve = spec_.cpu.sve && host.sve, .pauth = spec_.cpu.pauth && host.pauth, .pmu = spec_.cpu.pmu};
  if (features.sve && !spec_.cpu.sve_quadwords.empty()) {
    features.sve_vector_lengths = vector_lengths_of(spec_.cpu.sve_quadwords);
  }
  return features;
}

Result<void> Machine::create_devices() {
  devices_ = TANDEM_TRY(DeviceSet::create(spec_, {.loop = *io_loop_,
                                                  .irqs = *vm_,
                                                  .doorbells = *vm_,
                                                  .memory = *memory_,
                                                  .ram = *ram_,
                                                  .events = *this,
                                                  .disk_locking = disk_locking_}));
  for (const devices::Intid intid : devices_->edge_interrupts()) {
    TANDEM_TRY(vm_->connect_edge(intid));
  }
  for (const auto& [range, host] : devices_->read_only_memory()) {
    TANDEM_TRY(vm_->add_memory(range, host, KvmVm::MemoryAccess::kReadOnly));
  }
  return {};
}

Result<void> Machine::create_pv_services() {
  pv_ = TANDEM_TRY(
      PvServices::create(spec_, {.vm = *vm_, .vcpus = vcpus_, .bus = devices_->bus(), .hypercalls = hypercalls_}));
  return {};
}

devices::FdtNode Machine::hardware_tree() const {
  std::vector<uint64_t> mpidrs;
  for (const auto& vcpu : vcpus_) {
    mpidrs.push_back(vcpu->mpidr());
  }
  devices::FdtNode root = board::root_node({.mpidrs = std::move(mpidrs),
                                            .gic_v3 = vgic_->version() == GicVersion::kV3,
                                            .its = vgic_->has_its(),
                                            .pmu = features_.pmu,
                                            .ram = ram_->range()});
  devices_->describe(root);
  pv_->describe(root);
  return root;
}

Result<std::vector<std::byte>> Machine::device_tree() const {
  return loader_.device_tree(hardware_tree(), ram_->range());
}

Result<void> Machine::load_guest() {
  const boot::BootRegisters entry = TANDEM_TRY(loader_.load(hardware_tree(), ram_->range(), *memory_));
  return vcpus_.front()->set_entry(GuestAddr(entry.pc), entry.x0);
}

Result<void> Machine::create_threads() {
  for (const auto& vcpu : vcpus_) {
    vcpu_threads_.push_back(TANDEM_TRY(VcpuThread::create(*vcpu, *dispatcher_, *pv_)));
  }
  io_thread_ = TANDEM_TRY(start_thread("io", [this] { io_loop_->run(); }));
  return {};
}

Result<void> Machine::start(Start first) {
  started_at_ = std::chrono::steady_clock::now();
  if (!io_thread_.joinable()) {
    TANDEM_TRY(create_threads());
  }
  if (const std::string& summary = pv_->vcpu_state_summary(); !summary.empty()) {
    log::info("PV vCPU state: {}", summary);  // not before: a start that fails says one line, why it did
  }
  if (first == Start::kPaused) {
    life_.set_paused_by_user(true);
    return stop_guest();
  }
  return continue_guest();
}

MachineEnd Machine::run(Start first) {
  if (const auto started = start(first); !started) {
    end(MachineEnd::Kind::kFailed, started.error().message());
  }
  while (!end_) {
    control_loop_->run();
  }
  calls_->close();
  return *end_;
}

Machine::~Machine() {
  vcpu_threads_.clear();
  if (io_thread_.joinable()) {
    io_loop_->stop();
    io_thread_.join();
  }
}

Result<void> Machine::stop_guest() {
  for (const auto& thread : vcpu_threads_) {
    thread->request_park();
  }
  for (const auto& thread : vcpu_threads_) {
    thread->wait_parked();
  }
  Result<void> paused = devices_->pause();
  if (paused) {
    paused = pv_->pause();
  }
  if (paused) {
    life_.note_paused();
  } else if (life_.state() == Lifecycle::State::kRunning) {
    TANDEM_TRY(release_guest());
  }
  return paused;
}

/// Undoes `stop_guest`, or half of it.
Result<void> Machine::release_guest() {
  TANDEM_TRY(devices_->resume());
  TANDEM_TRY(pv_->resume());
  for (const auto& thread : vcpu_threads_) {
    thread->unpark();
  }
  return {};
}

Result<void> Machine::continue_guest() {
  TANDEM_TRY(release_guest());
  life_.note_running();
  return {};
}

Result<void> Machine::follow_wishes() {
  if (life_.is_to_pause()) {
    return stop_guest();
  }
  if (life_.is_to_run()) {
    answer_guest();
    return end_ ? Result<void>() : continue_guest();
  }
  return {};
}

/// Who holds the machine has told somebody how it goes on, or soon will.
Result<void> Machine::require_not_held() const {
  return life_.is_held() ? fail(Errc::kBusy, "the virtual machine is being saved or sent") : Result<void>();
}

Result<void> Machine::pause() {
  TANDEM_TRY(require_not_held());
  const bool was_paused = life_.is_paused_by_user();
  life_.set_paused_by_user(true);
  auto done = follow_wishes();
  if (!done) {
    life_.set_paused_by_user(was_paused);
  }
  return done;
}

void Machine::release_disks() {
  devices_->release_disks();
  disks_are_away_ = true;
}

Result<void> Machine::reclaim_disks() {
  TANDEM_TRY(devices_->take_disks());
  disks_are_away_ = false;
  return {};
}

Result<std::unique_ptr<VcpuThrottle>> Machine::make_throttle() const {
  std::vector<VcpuThread*> threads;
  for (const auto& thread : vcpu_threads_) {
    threads.push_back(thread.get());
  }
  return VcpuThrottle::create(std::move(threads));
}

Result<void> Machine::resume() {
  TANDEM_TRY(require_not_held());
  if (disks_are_away_) {
    TANDEM_TRY(reclaim_disks());
  }
  const bool was_paused = life_.is_paused_by_user();
  life_.set_paused_by_user(false);
  auto done = follow_wishes();
  if (!done) {
    life_.set_paused_by_user(was_paused);
  }
  return done;
}

Result<void> Machine::hold() {
  life_.add_hold();
  auto done = follow_wishes();
  if (done) {
    answer_guest();
    if (end_) {
      done = fail(Errc::kClosed, "the virtual machine has ended{}{}", end_->reason.empty() ? "" : ": ", end_->reason);
    }
  }
  if (!done) {
    life_.drop_hold();
  }
  return done;
}

Result<void> Machine::release() {
  life_.drop_hold();
  return follow_wishes();
}

Result<void> Machine::release_paused() {
  life_.set_paused_by_user(true);
  return release();
}

Result<void> Machine::reset() {
  TANDEM_TRY(require_not_held());
  [[maybe_unused]] const auto void_now = requests_.take();  // by a guest that is gone after the reset
  auto done = reset_guest("asked for on the host");
  if (!done) {
    end(MachineEnd::Kind::kFailed, done.error().message());
  }
  return done;
}

Result<void> Machine::reset_guest(std::string_view why) {
  log::info("guest reset {} ({})", reset_count_ + 1, why);
  const bool runs = life_.state() == Lifecycle::State::kRunning;
  if (runs) {
    TANDEM_TRY(with_context(stop_guest(), "reset"));
  }
  TANDEM_TRY(with_context(reset_stopped_guest(), "reset"));
  return runs ? with_context(continue_guest(), "reset") : Result<void>();
}

Result<void> Machine::reset_stopped_guest() {
  TANDEM_TRY(devices_->reset());
  TANDEM_TRY(pv_->reset());
  TANDEM_TRY(vgic_->reset());
  for (const auto& vcpu : vcpus_) {
    TANDEM_TRY(vcpu->reset());
  }
  TANDEM_TRY(load_guest());
  ++reset_count_;
  return {};
}

void Machine::end(MachineEnd::Kind kind, std::string reason) {
  if (!end_) {
    end_ = MachineEnd{kind, std::move(reason)};
  }
  life_.note_ended();
  control_loop_->stop();
}

MachineStatus Machine::status() const {
  using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::steady_clock;
  std::vector<pid_t> threads;
  for (const auto& thread : vcpu_threads_) {
    threads.push_back(thread->thread_id());
  }
  const auto uptime = duration_cast<nanoseconds>(steady_clock::now() - started_at_);
  return {.name = spec_.name,
          .pid = ::getpid(),
          .state = std::string(life_.state_name()),
          .paused_by_user = life_.is_paused_by_user(),
          .uptime_ns = static_cast<uint64_t>(uptime.count()),
          .reset_count = reset_count_,
          .memory_bytes = spec_.memory_bytes,
          .gic = vgic_->version() == GicVersion::kV3 ? "v3" : "v2",
          .its = vgic_->has_its(),
          .vcpu_threads = std::move(threads),
          .back_ends = devices_->back_ends(),
          .balloon = devices_->balloon(),
          .pv_vcpu_state = pv_->vcpu_state_status(),
          .pv_time = pv_->has_time()};
}

void Machine::ask(GuestRequest request) {
  requests_.add(std::move(request));
  control_loop_->post([this] {
    if (life_.state() != Lifecycle::State::kPaused) {
      answer_guest();
    }
  });
}

void Machine::answer_guest() {
  for (GuestRequest& request : requests_.take()) {
    answer(std::move(request));
  }
}

void Machine::answer(GuestRequest request) {
  switch (request.kind) {
    case GuestRequest::Kind::kPowerOff:
      return end(MachineEnd::Kind::kPoweredOff, {});
    case GuestRequest::Kind::kCrash:
      if (ram_->is_cut_off()) {
        return end(MachineEnd::Kind::kFailed, cut_off_text(ram_file_));
      }
      return end(MachineEnd::Kind::kCrashed, std::move(request.text));
    case GuestRequest::Kind::kReset:
      break;
  }
  // Several vCPUs may ask at once: only the first of those that ran before a reset counts.
  if (end_ || request.resets_before != reset_count_) {
    return;
  }
  if (const auto done = reset_guest(request.text); !done) {
    end(MachineEnd::Kind::kFailed, done.error().message());
  }
}

void Machine::on_system_off() { ask({.kind = GuestRequest::Kind::kPowerOff, .text = {}}); }

void Machine::on_system_reset(const SystemResetExit& reset_exit) {
  ask({.kind = GuestRequest::Kind::kReset,
       .text = reset_exit.is_reset2
                   ? fmt::format("SYSTEM_RESET2 type {:#x} cookie {:#x}", reset_exit.reset_type, reset_exit.cookie)
                   : "SYSTEM_RESET",
       .resets_before = reset_count_});
}

void Machine::on_crash(std::string reason) { ask({.kind = GuestRequest::Kind::kCrash, .text = std::move(reason)}); }

void Machine::on_quit() {
  control_loop_->post([this] { end(MachineEnd::Kind::kStopped, "ended by the console's escape key"); });
}

}  // namespace tandem
