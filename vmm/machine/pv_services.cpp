// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/pv_services.hpp"

#include <algorithm>

#include "pv/host/bpf_vcpu_state.hpp"
#include "pv/host/choose_vcpu_state_backend.hpp"
#include "pv/host/kernel_vcpu_state.hpp"
#include "pv/host/zero_vcpu_state_backend.hpp"
#include "vmm/machine/board_layout.hpp"

namespace tandem {
namespace {

constexpr std::string_view kCannotForward = "this host's KVM cannot forward hypercalls (Linux 6.4 and newer can)";

std::string_view option_of(VcpuStateChoice choice) {
  switch (choice) {
    case VcpuStateChoice::kAuto:
      return "--pv-vcpu-state auto";
    case VcpuStateChoice::kKernel:
      return "--pv-vcpu-state kernel";
    case VcpuStateChoice::kBpf:
      return "--pv-vcpu-state bpf";
    case VcpuStateChoice::kOff:
      return "--pv-vcpu-state off";
    case VcpuStateChoice::kRequire:
      return "--pv-vcpu-state require";
  }
  TANDEM_UNREACHABLE("every choice returns above");
}

/// The back ends that a choice admits, the best one first.
std::vector<pv::NamedVcpuStateBackend> candidates(VcpuStateChoice choice, pv::KernelRecords& records) {
  std::vector<pv::NamedVcpuStateBackend> found;
  if (choice != VcpuStateChoice::kBpf) {
    found.push_back({"kernel", [&records] { return pv::KernelVcpuState::create(records); }});
  }
  if (choice != VcpuStateChoice::kKernel) {
    found.push_back({"bpf", &pv::BpfVcpuState::create});
  }
  return found;
}

}  // namespace

Result<std::unique_ptr<PvServices>> PvServices::create(const MachineSpec& spec, const Host& host) {
  std::unique_ptr<PvServices> services(new PvServices);
  if (spec.pv_vcpu_state != VcpuStateChoice::kOff) {
    TANDEM_TRY(with_context(services->add_vcpu_state(spec.pv_vcpu_state, host), option_of(spec.pv_vcpu_state)));
  }
  if (spec.pv_time) {
    TANDEM_TRY(with_context(services->add_time(host), "stolen time"));
  }
  return services;
}

Result<void> PvServices::add_vcpu_state(VcpuStateChoice choice, const Host& host) {
  const bool is_optional = choice == VcpuStateChoice::kAuto;
  if (!host.vm.can_forward_hypercalls()) {
    if (!is_optional) {
      return fail(Errc::kUnsupported, "{}", kCannotForward);
    }
    vcpu_state_summary_ = fmt::format("absent: {}", kCannotForward);
    vcpu_state_status_ = {.back_end = "absent", .reason = std::string(kCannotForward)};
    return {};
  }
  records_.emplace(host.vcpus);
  auto chosen = TANDEM_TRY(pv::choose_vcpu_state_backend(
      candidates(choice, *records_), is_optional ? &pv::ZeroVcpuStateBackend::create : pv::VcpuStateBackendFactory()));
  backend_ = std::move(chosen.backend);
  vcpu_state_summary_ = chosen.why_not_better.empty() ? std::string(backend_->name())
                                                      : fmt::format("{} ({})", backend_->name(), chosen.why_not_better);
  vcpu_state_status_ = {.back_end = std::string(backend_->name()), .reason = std::move(chosen.why_not_better)};
  return connect_vcpu_state(host);
}

Result<void> PvServices::connect_vcpu_state(const Host& host) {
  if (backend_->capabilities().needs_no_halt_polling) {
    TANDEM_TRY(host.vm.disable_halt_polling());
  }
  const auto vcpu_count = static_cast<unsigned>(host.vcpus.size());
  auto& state = vcpu_state_.emplace(*backend_, board::kPvVcpuState, vcpu_count);
  TANDEM_TRY(host.vm.add_memory(board::kPvVcpuState, backend_->region(), KvmVm::MemoryAccess::kReadOnly));
  TANDEM_TRY(backend_->place_region(board::kPvVcpuState.base()));
  TANDEM_TRY(host.bus.map(board::kPvVcpuState, std::string(state.name()), state, vcpu_state_mutex_));
  TANDEM_TRY(host.hypercalls.map(pv::VcpuState::kFunctions, std::string(state.name()), state, vcpu_state_mutex_));
  return host.vm.forward_hypercalls(pv::VcpuState::kFunctions);
}

Result<void> PvServices::add_time(const Host& host) {
  static_assert(kMaxVcpus <= pv::PvTime::kMaxVcpus);
  if (!std::ranges::all_of(host.vcpus, [](const auto& vcpu) { return vcpu->has_stolen_time(); })) {
    return {};
  }
  time_ = TANDEM_TRY(pv::PvTime::create());
  TANDEM_TRY(host.vm.add_memory(board::kPvTime, time_->region()));
  for (const auto& vcpu : host.vcpus) {
    const GuestAddr addr = board::kPvTime.base().plus(pv::PvTime::kStride * vcpu->index()).value();
    TANDEM_TRY(with_context(vcpu->set_stolen_time_addr(addr), fmt::format("vCPU {}", vcpu->index())));
  }
  return {};
}

void PvServices::describe(devices::FdtNode& root) const {
  if (vcpu_state_) {
    root.add_child(vcpu_state_->describe());
  }
}

Result<void> PvServices::for_each_component(const std::function<Result<void>(Component&)>& visit) {
  if (vcpu_state_) {
    const std::lock_guard lock(vcpu_state_mutex_);
    TANDEM_TRY(visit(*vcpu_state_));
  }
  if (time_) {
    TANDEM_TRY(visit(*time_));
  }
  return {};
}

Result<void> PvServices::pause() {
  return for_each_component([](Component& service) { return with_context(service.pause(), service.name()); });
}

Result<void> PvServices::resume() {
  return for_each_component([](Component& service) { return with_context(service.resume(), service.name()); });
}

Result<void> PvServices::reset() {
  return for_each_component([](Component& service) { return with_context(service.reset(), service.name()); });
}

Result<void> PvServices::save(MachineState& state) {
  return for_each_component([&state](Component& service) { return save_into(state, service); });
}

Result<void> PvServices::restore(SavedComponents& saved) {
  return for_each_component([&saved](Component& service) { return saved.restore(service); });
}

Result<void> PvServices::on_thread_start(unsigned vcpu) {
  return backend_ ? with_context(backend_->attach_thread(vcpu), "PV vCPU state") : Result<void>();
}

void PvServices::on_thread_end(unsigned vcpu) {
  if (backend_) {
    backend_->detach_thread(vcpu);
  }
}

}  // namespace tandem
