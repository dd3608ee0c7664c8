// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "vmm/vcpu/register_set.hpp"

namespace tandem {

/// A host's vCPU whose registers are a table. Those in `fixed` refuse any value but theirs, those in `refused` all; `writes`
/// has the order of writes that were taken.
class FakeRegisterFile final : public RegisterFile {
 public:
  void set(RegisterId id, uint64_t value) {
    std::vector<std::byte> bytes(size_bytes_of(id));
    std::memcpy(bytes.data(), &value, std::min(bytes.size(), sizeof value));
    values[id] = bytes;
  }
  [[nodiscard]] uint64_t get(RegisterId id) const {
    const std::vector<std::byte>& bytes = values.at(id);
    uint64_t value = 0;
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
    return value;
  }

  [[nodiscard]] Result<std::vector<RegisterId>> list() const override {
    std::vector<RegisterId> ids;
    for (const auto& [id, value] : values) {
      ids.push_back(id);
    }
    return ids;
  }
  [[nodiscard]] Result<void> read(RegisterId id, std::span<std::byte> out) const override {
    std::ranges::copy(values.at(id), out.begin());
    return {};
  }
  [[nodiscard]] Result<void> write(RegisterId id, std::span<const std::byte> value) override {
    const bool is_fixed = std::ranges::find(fixed, id) != fixed.end();
    const bool is_refused = std::ranges::find(refused, id) != refused.end();
    if (is_refused || (is_fixed && !std::ranges::equal(values.at(id), value))) {
      return fail(Errc::kInvalidArgument, "refused");
    }
    writes.push_back(id);
    on_write(id, value);
    return {};
  }

  std::map<RegisterId, std::vector<std::byte>> values;
  std::vector<RegisterId> fixed;
  std::vector<RegisterId> refused;
  std::vector<RegisterId> writes;

 private:
  /// The twins of the PMU are one register: of those written here, one adds bits and one takes them away.
  void on_write(RegisterId id, std::span<const std::byte> value) {
    for (auto& [set_id, bytes] : values) {
      if (clearing_twin(set_id) == id) {
        for (size_t index = 0; index < bytes.size(); ++index) {
          bytes[index] &= ~value[index];
        }
        values[id] = bytes;
        return;
      }
    }
    if (const auto twin = clearing_twin(id); twin && values.contains(*twin)) {
      for (size_t index = 0; index < value.size(); ++index) {
        values[id][index] |= value[index];
      }
      values[*twin] = values[id];
      return;
    }
    values[id] = {value.begin(), value.end()};
  }
};

}  // namespace tandem
