// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/snapshot_state.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "vmm/lib/bits/bits.hpp"
#include "vmm/migration/snapshot_format.hpp"

namespace tandem::migration {
namespace {

/// Letters, digits and what joins them: so names can be shown as they are.
bool is_name(std::string_view text) {
  const auto is_name_character = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !text.empty() && text.size() <= kMaxStateNameBytes && std::ranges::all_of(text, is_name_character);
}

void append_bytes(std::vector<std::byte>& content, std::span<const std::byte> bytes) {
  content.insert(content.end(), bytes.begin(), bytes.end());
}

template <typename T>
void append(std::vector<std::byte>& content, T value) {
  append_bytes(content, std::as_bytes(std::span(&value, 1)));
}

void append_text(std::vector<std::byte>& content, std::string_view text) {
  append(content, static_cast<uint32_t>(text.size()));
  append_bytes(content, std::as_bytes(std::span(text)));
}

/// Takes values off the front of the file; the first that is not there ends it.
class ContentReader {
 public:
  explicit ContentReader(std::span<const std::byte> content) : rest_(content) {}

  template <typename T>
  Result<T> number() {
    return load_le<T>(TANDEM_TRY(bytes(sizeof(T))));
  }
  Result<std::span<const std::byte>> bytes(uint64_t count) {
    if (count > rest_.size()) {
      return fail(Errc::kCorrupt, "ends in the middle of a record");
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  Result<std::string> name() {
    const auto text = TANDEM_TRY(bytes(TANDEM_TRY(number<uint32_t>())));
    std::string name(reinterpret_cast<const char*>(text.data()), text.size());
    if (!is_name(name)) {
      return fail(Errc::kCorrupt, "a name of {} bytes that is none", name.size());
    }
    return name;
  }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

Result<ComponentState> read_component(ContentReader& reader) {
  ComponentState component;
  component.component = TANDEM_TRY(reader.name());
  component.record.kind = TANDEM_TRY(reader.name());
  component.record.version = TANDEM_TRY(reader.number<uint32_t>());
  const uint64_t length = TANDEM_TRY(reader.number<uint64_t>());
  if (length > kMaxStatePayload) {
    return fail(Errc::kCorrupt, "{}: record of {} bytes; at most {} are read", component.component, length,
                kMaxStatePayload);
  }
  const auto payload = TANDEM_TRY(reader.bytes(length));
  component.record.payload.assign(payload.begin(), payload.end());
  return component;
}

}  // namespace

Result<std::vector<std::byte>> encode_machine_state(const MachineState& state) {
  std::vector<std::byte> content;
  if (state.size() > kMaxStateComponents) {
    return fail(Errc::kOutOfRange, "state of {} components; at most {} are read back", state.size(),
                kMaxStateComponents);
  }
  append(content, static_cast<uint32_t>(state.size()));
  for (const auto& [component, record] : state) {
    TANDEM_ASSERT(is_name(component) && is_name(record.kind), "components and kinds are named in this program");
    if (record.payload.size() > kMaxStatePayload) {
      return fail(Errc::kOutOfRange, "{}: record of {} bytes; at most {} are read back", component,
                  record.payload.size(), kMaxStatePayload);
    }
    append_text(content, component);
    append_text(content, record.kind);
    append(content, record.version);
    append(content, static_cast<uint64_t>(record.payload.size()));
    append_bytes(content, record.payload);
  }
  if (content.size() > kMaxStateFileBytes) {
    return fail(Errc::kOutOfRange, "state of {} bytes; at most {} are read back", content.size(), kMaxStateFileBytes);
  }
  return content;
}

Result<MachineState> decode_machine_state(std::span<const std::byte> content) {
  ContentReader reader(content);
  const auto count = TANDEM_TRY(reader.number<uint32_t>());
  if (count > kMaxStateComponents) {
    return fail(Errc::kCorrupt, "{} components; at most {} are read", count, kMaxStateComponents);
  }
  MachineState state;
  std::set<std::string> seen;
  for (uint32_t index = 0; index < count; ++index) {
    state.push_back(TANDEM_TRY(read_component(reader)));
    if (!seen.insert(state.back().component).second) {
      return fail(Errc::kCorrupt, "{}: saved twice", state.back().component);
    }
  }
  if (!reader.at_end()) {
    return fail(Errc::kCorrupt, "goes on behind its last record");
  }
  return state;
}

}  // namespace tandem::migration
