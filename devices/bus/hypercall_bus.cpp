// SPDX-License-Identifier: Apache-2.0
#include "devices/bus/hypercall_bus.hpp"

#include <algorithm>

namespace tandem::devices {

Result<void> HypercallBus::map(FunctionRange functions, std::string name, HypercallHandler& handler,
                               std::mutex& mutex) {
  for (const Service& other : services_) {
    if (other.functions.contains(functions.first) || functions.contains(other.functions.first)) {
      return fail(Errc::kExists, "functions of {} at {:#x} overlap those of {}", name, functions.first, other.name);
    }
  }
  services_.push_back({functions, std::move(name), &handler, &mutex});
  return {};
}

uint64_t HypercallBus::call(const Hypercall& hypercall) {
  const auto service =
      std::ranges::find_if(services_, [&](const Service& s) { return s.functions.contains(hypercall.function); });
  const bool is_hvc = hypercall.conduit == Hypercall::Conduit::kHvc;
  if (service != services_.end() && is_hvc) {
    const std::lock_guard lock(*service->mutex);
    return service->handler->call(hypercall);
  }
  if (const uint64_t count = bad_calls_.count(); count != 0) {
    log::debug("guest call {:#x} by {} on vCPU {}: not supported ({} such calls so far)", hypercall.function,
               is_hvc ? "HVC" : "SMC", hypercall.vcpu, count);
  }
  return kHypercallNotSupported;
}

}  // namespace tandem::devices
