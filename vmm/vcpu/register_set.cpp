// SPDX-License-Identifier: Apache-2.0
#include "vmm/vcpu/register_set.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <set>
#include <string>

#include "vmm/lib/bits/bits.hpp"

namespace tandem {
namespace {

using Register = RegisterSet::Register;

Result<std::vector<std::byte>> value_of(const RegisterFile& vcpu, RegisterId id) {
  std::vector<std::byte> value(size_bytes_of(id));
  TANDEM_TRY(with_context(vcpu.read(id, value), name_of(id)));
  return value;
}

/// As one number, most significant digit first.
std::string text_of(std::span<const std::byte> value) {
  std::string digits;
  for (const std::byte byte : value | std::views::reverse) {
    if (byte != std::byte{0} || !digits.empty()) {
      digits += fmt::format("{:0{}x}", static_cast<unsigned>(byte), digits.empty() ? 1 : 2);
    }
  }
  return digits.empty() ? "0x0" : "0x" + digits;
}

/// Number of event counters: PMCR_EL0.N. (DDI 0487, "PMCR_EL0, Performance Monitors Control Register")
uint64_t counters_in(std::span<const std::byte> pmcr) { return bit_field(load_le<uint64_t>(pmcr), 15, 11); }

/// Writes registers to a vCPU, and collects what its host has against them.
class Restorer {
 public:
  Restorer(RegisterFile& vcpu, std::vector<RegisterId> host) : vcpu_(vcpu), host_(host.begin(), host.end()) {}

  void restore(RegisterId id, const Register& saved) {
    if (!host_.contains(id)) {
      if (!saved.is_reset_value) {
        refusals_.push_back(fmt::format("{} (saved {}, not there)", name_of(id), text_of(saved.value)));
      }
      return;
    }
    if (!write(id, saved.value)) {
      refusals_.push_back(fmt::format("{} (saved {}, here {})", name_of(id), text_of(saved.value), text_here(id)));
    }
  }

  [[nodiscard]] Result<void> outcome() const {
    if (refusals_.empty()) {
      return {};
    }
    return fail(Errc::kUnsupported, "this host's CPU differs in {}", fmt::join(refusals_, ", "));
  }

 private:
  /// @return whether the register holds `value` now.
  bool write(RegisterId id, std::span<const std::byte> value) {
    const RegisterClass kind = class_of(id);
    if (kind == RegisterClass::kVectorLengths) {
      return holds(id, value);  // fixed by now
    }
    if (const auto twin = clearing_twin(id); twin && host_.contains(*twin)) {
      // KVM adds bits to those there. It did: some versions set the register, whichever of the twins is written.
      constexpr std::array kAllBits{std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                    std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
      if (!vcpu_.write(*twin, kAllBits)) {
        return false;
      }
    }
    if (!vcpu_.write(id, value)) {
      return holds(id, value);
    }
    if (kind == RegisterClass::kPmuControl) {  // KVM takes any number of counters, and keeps what it has
      const auto here = value_of(vcpu_, id);
      return here && counters_in(*here) == counters_in(value);
    }
    return true;
  }

  bool holds(RegisterId id, std::span<const std::byte> value) const {
    const auto here = value_of(vcpu_, id);
    return here && std::ranges::equal(*here, value);
  }

  std::string text_here(RegisterId id) const {
    const auto here = value_of(vcpu_, id);
    return here ? text_of(*here) : "unreadable";
  }

  RegisterFile& vcpu_;
  std::set<RegisterId> host_;
  std::vector<std::string> refusals_;
};

}  // namespace

Result<RegisterSet> RegisterSet::read_from(const RegisterFile& vcpu) {
  RegisterSet set;
  for (const RegisterId id : TANDEM_TRY(vcpu.list())) {
    if (is_saved(id)) {
      set.add(id, {.value = TANDEM_TRY(value_of(vcpu, id)), .is_reset_value = false});
    }
  }
  return set;
}

void RegisterSet::add(RegisterId id, Register reg) {
  TANDEM_ASSERT(reg.value.size() == size_bytes_of(id), "whoever adds a register knows its size");
  const bool is_new = registers_.emplace(id, std::move(reg)).second;
  TANDEM_ASSERT(is_new, "a register is listed once");
}

void RegisterSet::note_reset_values(const RegisterSet& reset) {
  for (auto& [id, reg] : registers_) {
    const auto at_reset = reset.registers_.find(id);
    reg.is_reset_value = at_reset != reset.registers_.end() && at_reset->second.value == reg.value;
  }
}

Result<void> RegisterSet::write_to(RegisterFile& vcpu) const {
  Restorer restorer(vcpu, TANDEM_TRY(vcpu.list()));
  using Class = RegisterClass;
  for (const Class kind : {Class::kVectorLengths, Class::kFirmware, Class::kIdentity, Class::kPmuControl, Class::kPlain,
                           Class::kTimerCompare, Class::kTimerControl}) {
    for (const auto& [id, saved] : registers_) {
      if (class_of(id) == kind) {
        restorer.restore(id, saved);
      }
    }
  }
  return restorer.outcome();
}

}  // namespace tandem
