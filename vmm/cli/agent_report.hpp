// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/cli/error_line.hpp"

/// How what an agent tells is shown.
namespace tandem::cli {

/// Makes a JSON object of a message's fields, in their order; the visitor of `fields()`. Fields without a value are left out.
class JsonFields {
 public:
  template <typename T>
  void operator()(std::string_view name, T& value) {
    object_[std::string(name)] = of(value);
  }
  template <typename T>
  void operator()(std::string_view name, std::optional<T>& value) {
    if (value) {
      (*this)(name, *value);
    }
  }
  [[nodiscard]] nlohmann::ordered_json take() && { return std::move(object_); }

 private:
  template <typename T>
    requires std::integral<T> || std::same_as<T, std::string>
  static nlohmann::ordered_json of(T& value) {
    return value;
  }
  template <typename T>
    requires requires(T& value, JsonFields& fields) { value.fields(fields); }
  static nlohmann::ordered_json of(T& value) {
    JsonFields nested;
    value.fields(nested);
    return std::move(nested).take();
  }
  template <typename T>
  static nlohmann::ordered_json of(std::vector<T>& items) {
    auto list = nlohmann::ordered_json::array();
    for (T& item : items) {
      list.push_back(of(item));
    }
    return list;
  }
  nlohmann::ordered_json object_ = nlohmann::ordered_json::object();
};

/// `report` in one line of JSON; bytes that are no UTF-8 become U+FFFD.
std::string as_json(const nlohmann::ordered_json& report);

/// `report` for people: a line `name: value` for each field, items of a list below their name. Control characters are escaped.
std::string as_text(const nlohmann::ordered_json& report);

/// The report that a message, or a struct like one, makes.
template <typename T>
nlohmann::ordered_json report_of(T message) {
  JsonFields fields;
  message.fields(fields);
  return std::move(fields).take();
}

}  // namespace tandem::cli
