// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "devices/bus/irq_line.hpp"
#include "vmm/lib/checked_range/checked_range.hpp"

/// Addresses and interrupts of the machine. They are ABI: fixed, the same on every host.
namespace tandem::board {

using devices::Intid;

inline constexpr auto kGicd = GuestRange::fixed(0x0800'0000, 0x1'0000);
inline constexpr auto kGicc = GuestRange::fixed(0x0801'0000, 0x1'0000);  // GICv2 only
inline constexpr auto kGits = GuestRange::fixed(0x0808'0000, 0x2'0000);
inline constexpr auto kUart = GuestRange::fixed(0x0900'0000, 0x1000);
inline constexpr auto kRtc = GuestRange::fixed(0x0901'0000, 0x1000);
inline constexpr auto kGpio = GuestRange::fixed(0x0902'0000, 0x1000);
inline constexpr auto kPvpanic = GuestRange::fixed(0x0903'0000, 0x1000);

inline constexpr Intid kUartIrq = Intid::spi(1);
inline constexpr Intid kRtcIrq = Intid::spi(2);
inline constexpr Intid kGpioIrq = Intid::spi(3);
inline constexpr Intid kVmGenIdIrq = Intid::spi(4);

inline constexpr unsigned kVirtioSlots = 128;
inline constexpr uint64_t kVirtioBase = 0x0a00'0000;
inline constexpr uint64_t kVirtioWindowBytes = 0x200;
/// @pre slot < kVirtioSlots.
constexpr GuestRange virtio_window(unsigned slot) {
  return GuestRange::create(GuestAddr(kVirtioBase + kVirtioWindowBytes * slot), kVirtioWindowBytes).value();
}
constexpr Intid virtio_irq(unsigned slot) { return Intid::spi(16 + slot); }

inline constexpr auto kPvVcpuState = GuestRange::fixed(0x0b00'0000, 0x1'0000);
inline constexpr auto kPvTime = GuestRange::fixed(0x0b01'0000, 0x1'0000);
inline constexpr auto kVmGenId = GuestRange::fixed(0x0b02'0000, 0x1'0000);

inline constexpr uint64_t kGicrBase = 0x1000'0000;
inline constexpr uint64_t kGicrBytesPerVcpu = 0x2'0000;
/// @pre 0 < vcpu_count <= kMaxVcpus.
constexpr GuestRange gicr(unsigned vcpu_count) {
  return GuestRange::create(GuestAddr(kGicrBase), kGicrBytesPerVcpu * vcpu_count).value();
}

/// SGIs, PPIs and SPIs: the last is virtio_irq(127), INTID 175; KVM counts in multiples of 32.
inline constexpr uint32_t kInterruptCount = 192;
static_assert(virtio_irq(kVirtioSlots - 1).value() < kInterruptCount);

/// @spec Arm BSA, "PPI assignments"
inline constexpr Intid kSecureTimerIrq = Intid::ppi(13);
inline constexpr Intid kPhysicalTimerIrq = Intid::ppi(14);
inline constexpr Intid kVirtualTimerIrq = Intid::ppi(11);
inline constexpr Intid kHypervisorTimerIrq = Intid::ppi(10);
inline constexpr Intid kPmuIrq = Intid::ppi(7);

inline constexpr GuestAddr kRamBase{0x4000'0000};
/// The most RAM that fits under the architecture's largest guest-physical address space, 52 bits.
inline constexpr uint64_t kMaxRamBytes = (uint64_t{1} << 52) - kRamBase.value();

}  // namespace tandem::board
