// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The one register of pvpanic. Spec: QEMU documentation, "PVPANIC DEVICE".
namespace tandem::devices::pvpanic {

inline constexpr uint64_t kEvent = 0;  // 8 bits, RW: read, the events there are; written, those that happen

inline constexpr uint8_t kPanicked = 1U << 0;     // the guest has panicked
inline constexpr uint8_t kCrashLoaded = 1U << 1;  // the guest has panicked, and now its crash kernel runs
inline constexpr uint8_t kEvents = kPanicked | kCrashLoaded;

}  // namespace tandem::devices::pvpanic
