// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

/// How KVM numbers the registers of a vCPU, for code that is built without KVM's header.
/// @spec  Linux Documentation/virt/kvm/api.rst, "KVM_SET_ONE_REG"
namespace tandem {

/// KVM's number of a register: architecture, size and group in it.
using RegisterId = uint64_t;

namespace register_id {

inline constexpr RegisterId kArm64 = uint64_t{0x60} << 56;
inline constexpr unsigned kSizeShift = 52;
inline constexpr unsigned kGroupShift = 16;
inline constexpr RegisterId kSizeU32 = uint64_t{2} << kSizeShift;
inline constexpr RegisterId kSizeU64 = uint64_t{3} << kSizeShift;
inline constexpr RegisterId kSizeU512 = uint64_t{6} << kSizeShift;

enum Group : uint64_t {
  kCore = 0x10,
  kDemux = 0x11,
  kSystem = 0x13,
  kFirmware = 0x14,
  kSve = 0x15,
  kFirmwareFeatures = 0x16,
};

/// A system register by the fields of its encoding in MRS and MSR.
constexpr RegisterId system(unsigned op0, unsigned op1, unsigned crn, unsigned crm, unsigned op2) {
  return kArm64 | kSizeU64 | (uint64_t{kSystem} << kGroupShift) | (op0 << 14) | (op1 << 11) | (crn << 7) | (crm << 3) |
         op2;
}

/// KVM has the numbers of CNTV_CVAL_EL0 and CNTVCT_EL0 the wrong way round, and keeps them so.
/// (api.rst, "arm64 system registers have the following id bit patterns")
inline constexpr RegisterId kVirtualCounter = system(3, 3, 14, 3, 2);
inline constexpr RegisterId kVirtualCompare = system(3, 3, 14, 0, 2);
inline constexpr RegisterId kVirtualControl = system(3, 3, 14, 3, 1);
inline constexpr RegisterId kPhysicalCounter = system(3, 3, 14, 0, 1);
inline constexpr RegisterId kPhysicalCompare = system(3, 3, 14, 2, 2);
inline constexpr RegisterId kPhysicalControl = system(3, 3, 14, 2, 1);

inline constexpr RegisterId kPmcr = system(3, 3, 9, 12, 0);

/// The set of vector lengths that an SVE vCPU has: bit n is for 16 * (n + 1) bytes.
inline constexpr RegisterId kSveVectorLengths = kArm64 | kSizeU512 | (uint64_t{kSve} << kGroupShift) | 0xffff;

}  // namespace register_id

/// What a register means to saving and restoring, in the order in which they are restored.
enum class RegisterClass : uint8_t {
  kVectorLengths,  ///< Fixed when the vCPU is created.
  kFirmware,       ///< Pseudo-register of the firmware that KVM plays.
  kIdentity,       ///< Says what the CPU is; the host may refuse any other value than its own.
  kPmuControl,     ///< PMCR_EL0, which has the number of event counters.
  kPlain,
  kTimerCompare,  ///< Before the control of its timer, lest that fires.
  kTimerControl,
  kCounter,   ///< Not saved: one counter for the whole VM is.
  kPmuClear,  ///< Not saved: clears what its twin sets, and reads the same.
};

/// The size of the register's value.
[[nodiscard]] constexpr size_t size_bytes_of(RegisterId id) {
  return size_t{1} << (id >> register_id::kSizeShift & 0xf);
}

[[nodiscard]] RegisterClass class_of(RegisterId id);

/// Whether the register is part of a vCPU's saved state.
[[nodiscard]] inline bool is_saved(RegisterId id) {
  const RegisterClass kind = class_of(id);
  return kind != RegisterClass::kCounter && kind != RegisterClass::kPmuClear;
}

/// The register that clears what `id` sets, for the registers of the PMU that come in pairs.
[[nodiscard]] std::optional<RegisterId> clearing_twin(RegisterId id);

/// The manual's name ("ID_AA64PFR0_EL1"), or else the fields of the encoding.
[[nodiscard]] std::string name_of(RegisterId id);

}  // namespace tandem
