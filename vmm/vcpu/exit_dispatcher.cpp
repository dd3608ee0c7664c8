// SPDX-License-Identifier: Apache-2.0
#include "vmm/vcpu/exit_dispatcher.hpp"

namespace tandem {

AfterExit ExitDispatcher::handle(Vcpu& vcpu, const VmExit& exit) {
  return std::visit([&](const auto& kind) { return on(vcpu, kind); }, exit);
}

AfterExit ExitDispatcher::on(Vcpu& vcpu, const MmioReadExit& exit) {
  vcpu.complete_mmio_read(bus_.read(exit.addr, exit.width_bytes));
  return AfterExit::kContinue;
}

AfterExit ExitDispatcher::on(Vcpu& /*vcpu*/, const MmioWriteExit& exit) {
  bus_.write(exit.addr, exit.width_bytes, exit.value);
  return AfterExit::kContinue;
}

AfterExit ExitDispatcher::on(Vcpu& vcpu, const UndecodedAccessExit& exit) {
  if (const uint64_t count = undecoded_.count(); count != 0) {
    log::debug("guest access without syndrome at {:#x}: external abort ({} so far)", exit.addr.value(), count);
  }
  if (const auto injected = vcpu.inject_external_abort(); !injected) {
    events_.on_crash(injected.error().message());
    return AfterExit::kPark;
  }
  return AfterExit::kContinue;
}

AfterExit ExitDispatcher::on(Vcpu& vcpu, const HypercallExit& exit) {
  const uint64_t x0 = hypercalls_.call(
      {.conduit = exit.conduit, .function = exit.function, .arguments = exit.arguments, .vcpu = vcpu.index()});
  if (const auto done = vcpu.complete_hypercall(x0); !done) {
    events_.on_crash(done.error().message());
    return AfterExit::kPark;
  }
  return AfterExit::kContinue;
}

AfterExit ExitDispatcher::on(Vcpu& /*vcpu*/, const SystemOffExit& /*exit*/) {
  events_.on_system_off();
  return AfterExit::kPark;
}

AfterExit ExitDispatcher::on(Vcpu& /*vcpu*/, const SystemResetExit& exit) {
  events_.on_system_reset(exit);
  return AfterExit::kPark;
}

AfterExit ExitDispatcher::on(Vcpu& /*vcpu*/, const InterruptedExit& /*exit*/) { return AfterExit::kContinue; }

AfterExit ExitDispatcher::on(Vcpu& vcpu, const FailureExit& exit) {
  events_.on_crash(fmt::format("vCPU {}: {}", vcpu.index(), exit.reason));
  return AfterExit::kPark;
}

}  // namespace tandem
