// SPDX-License-Identifier: Apache-2.0
#include "vmm/kvm/kvm_vm.hpp"

#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <bit>

#include "vmm/kvm/kvm_uapi.hpp"
#include "vmm/lib/log/log.hpp"

namespace tandem {
namespace {

struct NeededCapability {
  long number;
  const char* name;
};
constexpr std::array kNeeded{
    NeededCapability{KVM_CAP_ONE_REG, "KVM_CAP_ONE_REG"},
    NeededCapability{KVM_CAP_IOEVENTFD, "KVM_CAP_IOEVENTFD"},
    NeededCapability{KVM_CAP_IRQFD, "KVM_CAP_IRQFD"},
    NeededCapability{KVM_CAP_IMMEDIATE_EXIT, "KVM_CAP_IMMEDIATE_EXIT"},
    NeededCapability{KVM_CAP_ARM_PSCI_0_2, "KVM_CAP_ARM_PSCI_0_2"},
    NeededCapability{KVM_CAP_ARM_INJECT_EXT_DABT, "KVM_CAP_ARM_INJECT_EXT_DABT"},
    NeededCapability{KVM_CAP_ARM_NISV_TO_USER, "KVM_CAP_ARM_NISV_TO_USER"},
    NeededCapability{KVM_CAP_READONLY_MEM, "KVM_CAP_READONLY_MEM"},
};

/// KVM takes no address space smaller than this.
constexpr unsigned kMinIpaBits = 32;

/// KVM_CREATE_VM, again when a signal interrupts it: loaded hosts are known to answer EINTR.
Result<UniqueFd> create_vm(const Kvm& kvm, unsigned long type) {
  while (true) {
    auto fd = kvm_ioctl(kvm.fd(), KVM_CREATE_VM, "KVM_CREATE_VM", type);
    if (fd) {
      return UniqueFd(*fd);
    }
    if (fd.error().os_error() != EINTR) {
      return std::unexpected(std::move(fd).error());
    }
  }
}

}  // namespace

Result<std::unique_ptr<KvmVm>> KvmVm::create(const Kvm& kvm, GuestAddr last_addr) {
  for (const NeededCapability& needed : kNeeded) {
    if (kvm.capability(needed.number) == 0) {
      return fail(Errc::kUnsupported, "this host's KVM lacks {}", needed.name);
    }
  }
  const unsigned ipa_bits = std::max(kMinIpaBits, static_cast<unsigned>(std::bit_width(last_addr.value())));
  if (ipa_bits > kvm.max_ipa_bits()) {
    return fail(Errc::kUnsupported, "the guest's memory needs {} address bits; this host's KVM has {}", ipa_bits,
                kvm.max_ipa_bits());
  }
  const unsigned long type = kvm.capability(KVM_CAP_ARM_VM_IPA_SIZE) == 0 ? 0 : KVM_VM_TYPE_ARM_IPA_SIZE(ipa_bits);
  UniqueFd fd = TANDEM_TRY(create_vm(kvm, type));
  kvm_enable_cap decode{};
  decode.cap = KVM_CAP_ARM_NISV_TO_USER;
  TANDEM_TRY(kvm_ioctl(fd.get(), KVM_ENABLE_CAP, "KVM_ENABLE_CAP(KVM_CAP_ARM_NISV_TO_USER)", &decode));
  return std::unique_ptr<KvmVm>(new KvmVm(kvm, std::move(fd), ipa_bits));
}

Result<void> KvmVm::add_memory(GuestRange range, std::span<std::byte> host, MemoryAccess access) {
  slots_.push_back({range, host, access});
  return set_memory_region(static_cast<uint32_t>(slots_.size() - 1), WriteLogging::kOff);
}

uint32_t KvmVm::slot_of(GuestRange range) const {
  const auto slot = std::ranges::find(slots_, range, &Slot::range);
  TANDEM_ASSERT(slot != slots_.end(), "the caller has added the range");
  return static_cast<uint32_t>(slot - slots_.begin());
}

Result<void> KvmVm::set_write_logging(uint32_t slot, WriteLogging logging) { return set_memory_region(slot, logging); }

Result<void> KvmVm::set_memory_region(uint32_t slot, WriteLogging logging) {
  const Slot& memory = slots_.at(slot);
  kvm_userspace_memory_region region{};
  region.flags = (memory.access == MemoryAccess::kReadOnly ? KVM_MEM_READONLY : 0U) |
                 (logging == WriteLogging::kOn ? KVM_MEM_LOG_DIRTY_PAGES : 0U);
  region.slot = slot;
  region.guest_phys_addr = memory.range.base().value();
  region.memory_size = memory.range.size();
  region.userspace_addr = reinterpret_cast<uint64_t>(memory.host.data());
  TANDEM_TRY(kvm_ioctl(fd_.get(), KVM_SET_USER_MEMORY_REGION, "KVM_SET_USER_MEMORY_REGION", &region));
  return {};
}

bool KvmVm::can_forward_hypercalls() const {
  return has_device_attr(fd_.get(), kKvmArmVmSmcccCtrl, kKvmArmVmSmcccFilter);
}

Result<void> KvmVm::forward_hypercalls(devices::FunctionRange functions) {
  KvmSmcccFilter filter{};
  filter.base = functions.first;
  filter.nr_functions = functions.count;
  filter.action = kKvmSmcccFilterFwdToUser;
  return set_device_attr(fd_.get(), kKvmArmVmSmcccCtrl, kKvmArmVmSmcccFilter, &filter, "(SMCCC filter)");
}

Result<void> KvmVm::disable_halt_polling() {
  kvm_enable_cap request{};
  request.cap = KVM_CAP_HALT_POLL;  // args[0] = 0: longest poll [ns]
  TANDEM_TRY(kvm_ioctl(fd_.get(), KVM_ENABLE_CAP, "KVM_ENABLE_CAP(KVM_CAP_HALT_POLL)", &request));
  return {};
}

Result<UniqueFd> KvmVm::create_device(uint32_t type, std::string_view name) const {
  kvm_create_device request{};
  request.type = type;
  TANDEM_TRY(with_context(kvm_ioctl(fd_.get(), KVM_CREATE_DEVICE, "KVM_CREATE_DEVICE", &request), name));
  return UniqueFd(static_cast<int>(request.fd));
}

bool KvmVm::has_device(uint32_t type) const {
  kvm_create_device request{};
  request.type = type;
  request.flags = KVM_CREATE_DEVICE_TEST;
  return ::ioctl(fd_.get(), KVM_CREATE_DEVICE, &request) == 0;
}

Result<void> KvmVm::add_doorbell(GuestAddr addr, uint32_t value, int event_fd) {
  kvm_ioeventfd request{};
  request.addr = addr.value();
  request.len = sizeof value;
  request.datamatch = value;
  request.fd = event_fd;
  request.flags = KVM_IOEVENTFD_FLAG_DATAMATCH;
  TANDEM_TRY(kvm_ioctl(fd_.get(), KVM_IOEVENTFD, "KVM_IOEVENTFD", &request));
  return {};
}

Result<void> KvmVm::connect_edge(devices::Intid intid) {
  UniqueFd event = TANDEM_TRY(create_eventfd());
  kvm_irqfd request{};
  request.fd = static_cast<uint32_t>(event.get());
  request.gsi = intid.value() - devices::Intid::kFirstSpi;  // KVM's default routing: GSI n is SPI n
  TANDEM_TRY(kvm_ioctl(fd_.get(), KVM_IRQFD, "KVM_IRQFD", &request));
  edges_.emplace(intid, std::move(event));
  return {};
}

void KvmVm::set_level(devices::Intid intid, bool high) {
  kvm_irq_level request{};
  request.irq = (uint32_t{KVM_ARM_IRQ_TYPE_SPI} << KVM_ARM_IRQ_TYPE_SHIFT) | intid.value();
  request.level = high ? 1 : 0;
  if (const auto done = kvm_ioctl(fd_.get(), KVM_IRQ_LINE, "KVM_IRQ_LINE", &request); !done) {
    log::error("interrupt {}: {}", intid.value(), done.error().message());
  }
}

void KvmVm::pulse(devices::Intid intid) {
  const auto edge = edges_.find(intid);
  TANDEM_ASSERT(edge != edges_.end(), "the machine connects every edge-triggered line");
  signal_eventfd(edge->second.get());
}

}  // namespace tandem
