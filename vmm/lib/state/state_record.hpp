// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "vmm/lib/result/result.hpp"

/// Saved state: what a component writes, and how it is read back. A record's payload is a sequence of tagged fields,
/// each `u16 tag, u16 reserved (0), u32 length, bytes`, all little-endian.
namespace tandem {

/// Name and version of a saved-state format. A shipped (kind, version) never changes its meaning.
struct StateKind {
  std::string_view kind;
  uint32_t version;
  constexpr bool operator==(const StateKind&) const = default;
};

/// The unit of saved state: one component's fields under a kind and a version.
struct StateRecord {
  std::string kind;
  uint32_t version = 0;
  std::vector<std::byte> payload;

  /// Says that the component has no state, rather than leaving it out.
  static StateRecord none(std::string_view kind) { return {.kind = std::string(kind), .version = 0, .payload = {}}; }
  bool operator==(const StateRecord&) const = default;
};

/// Longest payload that is read back; more is refused as corrupt.
inline constexpr size_t kMaxStatePayload = 64U << 20;

/// Tag of each item inside a field that is a list of structs.
inline constexpr uint16_t kListItem = 0;

template <typename T>
concept StateScalar = std::integral<T> || std::is_enum_v<T>;

/// Writes the fields of a state struct; the visitor of `fields()` when saving.
class StateWriter {
 public:
  template <StateScalar T>
  void operator()(uint16_t tag, const T& value) {
    append(tag, std::as_bytes(std::span(&value, 1)));
  }
  template <StateScalar T, size_t N>
  void operator()(uint16_t tag, const std::array<T, N>& values) {
    append(tag, std::as_bytes(std::span(values)));
  }
  template <StateScalar T>
  void operator()(uint16_t tag, const std::vector<T>& values) {
    append(tag, std::as_bytes(std::span(values)));
  }
  void operator()(uint16_t tag, const std::string& text) { append(tag, std::as_bytes(std::span(text))); }
  /// A list of nested structs, each with a `fields()` of its own.
  template <typename T>
    requires requires(T& nested, StateWriter& writer) { nested.fields(writer); }
  void operator()(uint16_t tag, std::vector<T>& items) {
    StateWriter list;
    for (T& item : items) {
      StateWriter nested;
      item.fields(nested);
      list.append(kListItem, nested.bytes_);
    }
    append(tag, list.bytes_);
  }

  [[nodiscard]] std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  void append(uint16_t tag, std::span<const std::byte> field);
  std::vector<std::byte> bytes_;
};

/// Reads the fields of a state struct; the visitor of `fields()` when restoring. The first fault found is kept.
class StateReader {
 public:
  explicit StateReader(std::span<const std::byte> payload);

  template <StateScalar T>
  void operator()(uint16_t tag, T& value) {
    const auto field = take_one(tag, sizeof value);
    if (!field) {
      return;
    }
    if constexpr (std::is_same_v<T, bool>) {
      value = take_bool(tag, (*field)[0]);  // a byte other than 0 and 1 must not become a bool
    } else {
      copy(*field, std::as_writable_bytes(std::span(&value, 1)));
    }
  }
  template <StateScalar T, size_t N>
  void operator()(uint16_t tag, std::array<T, N>& values) {
    if (const auto field = take_one(tag, sizeof values)) {
      copy(*field, std::as_writable_bytes(std::span(values)));
    }
  }
  template <StateScalar T>
  void operator()(uint16_t tag, std::vector<T>& values) {
    if (const auto field = take_list(tag, sizeof(T))) {
      values.resize(field->size() / sizeof(T));
      copy(*field, std::as_writable_bytes(std::span(values)));
    }
  }
  void operator()(uint16_t tag, std::string& text) {
    if (const auto field = take_list(tag, 1)) {
      text.assign(reinterpret_cast<const char*>(field->data()), field->size());
    }
  }
  template <typename T>
    requires requires(T& nested, StateReader& reader) { nested.fields(reader); }
  void operator()(uint16_t tag, std::vector<T>& items) {
    items.clear();
    StateReader list(take_list(tag, 1).value_or(Field()));
    for (const Field item : list.take_all(kListItem)) {
      StateReader nested(item);
      items.emplace_back().fields(nested);
      merge(nested);
    }
    merge(list);
  }

  /// @errors  Errc::kCorrupt: a field is missing, doubled, of the wrong length, or was asked for by nobody.
  Result<void> finish();

 private:
  using Field = std::span<const std::byte>;
  void parse(std::span<const std::byte> payload);
  std::optional<Field> take_one(uint16_t tag, size_t size_bytes);
  std::optional<Field> take_list(uint16_t tag, size_t element_bytes);
  std::vector<Field> take_all(uint16_t tag);
  bool take_bool(uint16_t tag, std::byte value);
  void merge(StateReader& nested);
  void note_fault(std::string text);
  static void copy(Field from, std::span<std::byte> to);

  std::multimap<uint16_t, Field> fields_;
  std::string fault_;
};

/// Saves `state`, which declares `static constexpr StateKind kKind` and `template <class A> void fields(A&)`.
template <typename State>
[[nodiscard]] StateRecord save_state(State state) {
  StateWriter writer;
  state.fields(writer);
  return {.kind = std::string(State::kKind.kind), .version = State::kKind.version, .payload = std::move(writer).take()};
}

/// Checks that `record` is of `kind`.
/// @errors  Errc::kCorrupt: another kind or version.
Result<void> expect_kind(const StateRecord& record, StateKind kind);

/// The `State` in `record`.
/// @errors  Errc::kCorrupt: another kind or version, or malformed fields.
template <typename State>
[[nodiscard]] Result<State> load_state(const StateRecord& record) {
  TANDEM_TRY(expect_kind(record, State::kKind));
  State state{};
  StateReader reader(record.payload);
  state.fields(reader);
  TANDEM_TRY(with_context(reader.finish(), State::kKind.kind));
  return state;
}

}  // namespace tandem
