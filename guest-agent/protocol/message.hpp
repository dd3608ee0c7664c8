// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "vmm/lib/result/result.hpp"

/// Messages: a name and named fields. A message is a struct with `static constexpr std::string_view kName` and one list of
/// its fields, `template <class A> void fields(A& archive)`, which writes, reads and prints it.
///
/// On the wire: `u8 length, name`, then for each field `u8 length, name, u32 length, value`. A value is a number (8 bytes,
/// little-endian), bytes, or a list of `u32 length, item`. Unknown fields are ignored; a field is missing only if it is
/// a `std::optional` that has no value.
namespace tandem::agent {

class AnyArchive;
template <typename T>
concept Struct = requires(T& value, AnyArchive& archive) { value.fields(archive); };

/// Most items of one list that are read.
inline constexpr size_t kMaxListItems = 16384;

/// Writes fields.
class FieldWriter {
 public:
  template <std::integral T>
  void operator()(std::string_view name, const T& value) {
    const auto wide = static_cast<uint64_t>(value);
    append(name, std::as_bytes(std::span(&wide, 1)));
  }
  void operator()(std::string_view name, const std::string& text) { append(name, std::as_bytes(std::span(text))); }
  void operator()(std::string_view name, const std::vector<std::string>& texts) {
    std::vector<std::byte> list;
    for (const std::string& text : texts) {
      append_item(list, std::as_bytes(std::span(text)));
    }
    append(name, list);
  }
  template <Struct T>
  void operator()(std::string_view name, std::vector<T>& items) {
    std::vector<std::byte> list;
    for (T& item : items) {
      FieldWriter nested;
      item.fields(nested);
      append_item(list, nested.bytes_);
    }
    append(name, list);
  }
  template <typename T>
  void operator()(std::string_view name, std::optional<T>& value) {
    if (value) {
      (*this)(name, *value);
    }
  }

  [[nodiscard]] std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  friend std::vector<std::byte> begin_message(std::string_view name);
  void append(std::string_view name, std::span<const std::byte> value);
  static void append_item(std::vector<std::byte>& list, std::span<const std::byte> item);
  std::vector<std::byte> bytes_;
};

/// Reads fields. The first fault found is kept.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> fields);

  template <std::integral T>
  void operator()(std::string_view name, T& value) {
    if (const auto field = required(name)) {
      read(name, *field, value);
    }
  }
  void operator()(std::string_view name, std::string& text) {
    if (const auto field = required(name)) {
      read(name, *field, text);
    }
  }
  template <typename T>
  void operator()(std::string_view name, std::vector<T>& items) {
    items.clear();
    for (const Bytes item : split(name, required(name).value_or(Bytes()))) {
      read(name, item, items.emplace_back());
    }
  }
  template <typename T>
  void operator()(std::string_view name, std::optional<T>& value) {
    value.reset();
    if (const auto field = find(name)) {
      read(name, *field, value.emplace());
    }
  }

  /// @errors  Errc::kCorrupt: a field is missing, doubled, or not what it must be.
  Result<void> finish();

 private:
  using Bytes = std::span<const std::byte>;
  struct Field {
    std::string_view name;
    Bytes value;
  };

  template <std::integral T>
  void read(std::string_view name, Bytes field, T& value) {
    const uint64_t wide = number(name, field);
    value = static_cast<T>(wide);
    if (static_cast<uint64_t>(value) != wide) {
      note_fault(name, "out of range");
    }
  }
  void read(std::string_view /*name*/, Bytes field, std::string& text) {
    text.assign(reinterpret_cast<const char*>(field.data()), field.size());
  }
  template <Struct T>
  void read(std::string_view name, Bytes field, T& value) {
    FieldReader nested(field);
    value.fields(nested);
    if (const auto result = nested.finish(); !result) {
      note_fault(name, result.error().message());
    }
  }

  std::optional<Bytes> find(std::string_view name);
  std::optional<Bytes> required(std::string_view name);
  std::vector<Bytes> split(std::string_view name, Bytes list);
  uint64_t number(std::string_view name, Bytes field);
  void note_fault(std::string_view name, std::string_view what);

  std::vector<Field> fields_;
  std::string fault_;
};

/// A message as it came: its name, and fields that nobody has looked at yet.
class Message {
 public:
  /// @errors  Errc::kCorrupt: no message.
  static Result<Message> decode(std::vector<std::byte> payload);

  [[nodiscard]] const std::string& name() const { return name_; }

  template <typename T>
  [[nodiscard]] bool is() const {
    return name_ == T::kName;
  }

  /// The `T` that it is.
  /// @errors  Errc::kCorrupt: it is none, or a malformed one.
  template <typename T>
  [[nodiscard]] Result<T> as() const {
    if (!is<T>()) {
      return fail(Errc::kCorrupt, "a message '{}' where '{}' is due", name_, T::kName);
    }
    T value{};
    FieldReader reader{std::span(payload_).subspan(1 + name_.size())};
    value.fields(reader);
    TANDEM_TRY(with_context(reader.finish(), T::kName));
    return value;
  }

 private:
  Message(std::string name, std::vector<std::byte> payload) : name_(std::move(name)), payload_(std::move(payload)) {}
  std::string name_;
  std::vector<std::byte> payload_;
};

/// The payload that begins with a message's name.
std::vector<std::byte> begin_message(std::string_view name);

/// The payload of the frame that carries `message`.
template <typename T>
[[nodiscard]] std::vector<std::byte> encode_message(T message) {
  std::vector<std::byte> payload = begin_message(T::kName);
  FieldWriter writer;
  message.fields(writer);
  const std::vector<std::byte> fields = std::move(writer).take();
  payload.insert(payload.end(), fields.begin(), fields.end());
  return payload;
}

}  // namespace tandem::agent
