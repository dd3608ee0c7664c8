// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/protocol/message.hpp"

#include <algorithm>
#include <cstring>

namespace tandem::agent {
namespace {

constexpr size_t kMaxNameBytes = 255;

using Bytes = std::span<const std::byte>;

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

template <typename Length>
void append_sized(std::vector<std::byte>& out, Bytes bytes) {
  const auto length = static_cast<Length>(bytes.size());
  const auto length_bytes = std::as_bytes(std::span(&length, 1));
  out.insert(out.end(), length_bytes.begin(), length_bytes.end());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

/// Takes `Length length, bytes` off the front of `rest`; nothing if they are not all there.
template <typename Length>
std::optional<Bytes> take_sized(Bytes& rest) {
  Length length = 0;
  if (rest.size() < sizeof length) {
    return std::nullopt;
  }
  std::memcpy(&length, rest.data(), sizeof length);
  if (rest.size() - sizeof length < length) {
    return std::nullopt;
  }
  const Bytes taken = rest.subspan(sizeof length, length);
  rest = rest.subspan(sizeof length + length);
  return taken;
}

}  // namespace

void FieldWriter::append(std::string_view name, Bytes value) {
  TANDEM_ASSERT(name.size() <= kMaxNameBytes, "names of fields are ours");
  append_sized<uint8_t>(bytes_, std::as_bytes(std::span(name)));
  append_sized<uint32_t>(bytes_, value);
}

void FieldWriter::append_item(std::vector<std::byte>& list, Bytes item) { append_sized<uint32_t>(list, item); }

FieldReader::FieldReader(Bytes fields) {
  while (!fields.empty()) {
    const auto name = take_sized<uint8_t>(fields);
    const auto value = name ? take_sized<uint32_t>(fields) : std::nullopt;
    if (!value) {
      note_fault("fields", "truncated");
      return;
    }
    if (fields_.size() == kMaxListItems) {
      note_fault("fields", "too many");
      return;
    }
    fields_.push_back({text_of(*name), *value});
  }
}

std::optional<FieldReader::Bytes> FieldReader::find(std::string_view name) {
  const auto has_name = [&](const Field& field) { return field.name == name; };
  const auto found = std::ranges::find_if(fields_, has_name);
  if (found == fields_.end()) {
    return std::nullopt;
  }
  if (std::find_if(found + 1, fields_.end(), has_name) != fields_.end()) {
    note_fault(name, "given twice");
  }
  return found->value;
}

std::optional<FieldReader::Bytes> FieldReader::required(std::string_view name) {
  const auto found = find(name);
  if (!found) {
    note_fault(name, "missing");
  }
  return found;
}

std::vector<FieldReader::Bytes> FieldReader::split(std::string_view name, Bytes list) {
  std::vector<Bytes> items;
  while (!list.empty()) {
    const auto item = take_sized<uint32_t>(list);
    if (!item || items.size() == kMaxListItems) {
      note_fault(name, item ? "too many items" : "truncated");
      return {};
    }
    items.push_back(*item);
  }
  return items;
}

uint64_t FieldReader::number(std::string_view name, Bytes field) {
  uint64_t value = 0;
  if (field.size() != sizeof value) {
    note_fault(name, "not a number");
    return 0;
  }
  std::memcpy(&value, field.data(), sizeof value);
  return value;
}

void FieldReader::note_fault(std::string_view name, std::string_view what) {
  if (fault_.empty()) {
    fault_ = fmt::format("{}: {}", name, what);
  }
}

Result<void> FieldReader::finish() {
  if (!fault_.empty()) {
    return fail(Errc::kCorrupt, "{}", fault_);
  }
  return {};
}

Result<Message> Message::decode(std::vector<std::byte> payload) {
  Bytes rest = payload;
  const auto name = take_sized<uint8_t>(rest);
  if (!name || name->empty()) {
    return fail(Errc::kCorrupt, "a message without a name");
  }
  return Message(std::string(text_of(*name)), std::move(payload));
}

std::vector<std::byte> begin_message(std::string_view name) {
  std::vector<std::byte> payload;
  append_sized<uint8_t>(payload, std::as_bytes(std::span(name)));
  return payload;
}

}  // namespace tandem::agent
