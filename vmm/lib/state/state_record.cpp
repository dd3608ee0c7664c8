// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/state/state_record.hpp"

#include <cstring>

#include <utility>

namespace tandem {
namespace {

struct FieldHeader {
  uint16_t tag;
  uint16_t reserved;
  uint32_t length;
};
static_assert(sizeof(FieldHeader) == 8);

/// Most fields of one payload, or items of one list, that are read back. Each costs ten times the memory of its header, and
/// headers are cheap: without this bound the longest payload would cost half a gigabyte.
constexpr size_t kMaxStateFields = 1U << 16;

}  // namespace

void StateWriter::append(uint16_t tag, std::span<const std::byte> field) {
  TANDEM_ASSERT(field.size() <= kMaxStatePayload, "components bound the state they save");
  const FieldHeader header{.tag = tag, .reserved = 0, .length = static_cast<uint32_t>(field.size())};
  const auto header_bytes = std::as_bytes(std::span(&header, 1));
  bytes_.insert(bytes_.end(), header_bytes.begin(), header_bytes.end());
  bytes_.insert(bytes_.end(), field.begin(), field.end());
}

StateReader::StateReader(std::span<const std::byte> payload) { parse(payload); }

void StateReader::parse(std::span<const std::byte> payload) {
  if (payload.size() > kMaxStatePayload) {
    return note_fault(fmt::format("payload of {} bytes; at most {} are read", payload.size(), kMaxStatePayload));
  }
  while (!payload.empty()) {
    FieldHeader header{};
    if (payload.size() < sizeof header) {
      return note_fault("truncated field header");
    }
    std::memcpy(&header, payload.data(), sizeof header);
    payload = payload.subspan(sizeof header);
    if (header.reserved != 0) {
      return note_fault(fmt::format("field {}: reserved bits set", header.tag));
    }
    if (header.length > payload.size()) {
      return note_fault(fmt::format("field {}: truncated", header.tag));
    }
    if (fields_.size() == kMaxStateFields) {
      return note_fault(fmt::format("more than {} fields", kMaxStateFields));
    }
    fields_.emplace(header.tag, payload.first(header.length));
    payload = payload.subspan(header.length);
  }
}

std::vector<StateReader::Field> StateReader::take_all(uint16_t tag) {
  std::vector<Field> taken;
  const auto [first, last] = fields_.equal_range(tag);
  for (auto it = first; it != last; ++it) {
    taken.push_back(it->second);
  }
  fields_.erase(first, last);
  return taken;
}

std::optional<StateReader::Field> StateReader::take_one(uint16_t tag, size_t size_bytes) {
  const auto field = take_list(tag, 1);
  if (field && field->size() != size_bytes) {
    note_fault(fmt::format("field {}: {} bytes where {} are due", tag, field->size(), size_bytes));
    return std::nullopt;
  }
  return field;
}

std::optional<StateReader::Field> StateReader::take_list(uint16_t tag, size_t element_bytes) {
  const std::vector<Field> taken = take_all(tag);
  if (taken.size() != 1) {
    note_fault(fmt::format("field {}: {}", tag, taken.empty() ? "missing" : "given twice"));
    return std::nullopt;
  }
  if (taken[0].size() % element_bytes != 0) {
    note_fault(fmt::format("field {}: {} bytes are no whole number of elements", tag, taken[0].size()));
    return std::nullopt;
  }
  return taken[0];
}

bool StateReader::take_bool(uint16_t tag, std::byte value) {
  if (std::to_integer<unsigned>(value) > 1) {
    note_fault(fmt::format("field {}: neither true nor false", tag));
  }
  return value != std::byte{0};
}

void StateReader::merge(StateReader& nested) {
  if (const auto result = nested.finish(); !result) {
    note_fault(result.error().message());
  }
}

void StateReader::note_fault(std::string text) {
  if (fault_.empty()) {
    fault_ = std::move(text);
  }
}

void StateReader::copy(Field from, std::span<std::byte> to) {
  if (!from.empty()) {
    std::memcpy(to.data(), from.data(), from.size());
  }
}

Result<void> StateReader::finish() {
  if (fault_.empty() && !fields_.empty()) {
    note_fault(fmt::format("field {}: unknown", fields_.begin()->first));
  }
  if (!fault_.empty()) {
    return fail(Errc::kCorrupt, "{}", fault_);
  }
  return {};
}

Result<void> expect_kind(const StateRecord& record, StateKind kind) {
  if (record.kind != kind.kind) {
    return fail(Errc::kCorrupt, "record of kind '{}' where '{}' is due", record.kind, kind.kind);
  }
  if (record.version != kind.version) {
    return fail(Errc::kCorrupt, "{}: version {} where {} is due", kind.kind, record.version, kind.version);
  }
  return {};
}

}  // namespace tandem
