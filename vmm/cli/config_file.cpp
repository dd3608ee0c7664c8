// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/config_file.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "vmm/cli/error_line.hpp"
#include "vmm/lib/regular_file/regular_file.hpp"

namespace tandem::cli {
namespace {

using Kind = RunOption::Kind;
using nlohmann::json;

const char* expected_type(Kind kind) {
  switch (kind) {
    case Kind::kText:
      return "a string";
    case Kind::kNumber:
      return "a whole number or a string";
    case Kind::kList:
      return "an array of strings";
    case Kind::kFlag:
      return "true or false";
  }
  TANDEM_UNREACHABLE("every kind is listed");
}

/// Takes what the parser meets, one call each, and stops it at the first thing that has no place: so neither depth nor
/// length of what the file holds is ever built up in memory.
class ConfigReader final : public nlohmann::json_sax<json> {
 public:
  explicit ConfigReader(std::string_view label) : label_(label) {
    for (const RunOption& option : run_options()) {
      given_.push_back({fmt::format("{}: {}", label, option.name), {}});
    }
    seen_.resize(given_.size());
  }

  bool null() override { return wrong_type(); }
  bool boolean(bool value) override { return is_value_of(Kind::kFlag) ? (!value || take("")) : wrong_type(); }
  bool number_integer(number_integer_t value) override {
    return is_value_of(Kind::kNumber) ? take(std::to_string(value)) : wrong_type();
  }
  bool number_unsigned(number_unsigned_t value) override {
    return is_value_of(Kind::kNumber) ? take(std::to_string(value)) : wrong_type();
  }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return wrong_type(); }
  bool string(string_t& text) override {
    const bool fits = place_ == Place::kList || is_value_of(Kind::kText) || is_value_of(Kind::kNumber);
    if (!fits) {
      return wrong_type();
    }
    // Paths and the command line end at a NUL for everybody behind us.
    return text.find('\0') == string_t::npos ? take(text) : refuse("a string holds a NUL");
  }
  bool binary(binary_t& /*value*/) override { return wrong_type(); }

  bool start_object(size_t /*size*/) override {
    if (place_ != Place::kTop) {
      return wrong_type();
    }
    place_ = Place::kObject;
    return true;
  }
  bool key(string_t& name) override {
    option_ = find_run_option(name);
    if (option_ == given_.size()) {
      return refuse_file(fmt::format("{} is not an option", in_quotes(name)));
    }
    if (seen_[option_]) {
      return refuse("is there twice");
    }
    seen_[option_] = true;
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(size_t /*size*/) override {
    if (!is_value_of(Kind::kList)) {
      return wrong_type();
    }
    place_ = Place::kList;
    return true;
  }
  bool end_array() override {
    place_ = Place::kObject;
    return true;
  }

  bool parse_error(size_t /*position*/, const std::string& /*token*/, const json::exception& error) override {
    constexpr int kNumberOutOfRange = 406;
    if (error.id == kNumberOutOfRange) {
      return wrong_type();
    }
    // The library's own prefix goes, and so does a token of any length behind the reason.
    const std::string_view text = error.what();
    const size_t start = text.find("] ");
    std::string_view reason = start == std::string_view::npos ? text : text.substr(start + 2);
    reason = reason.substr(0, reason.find("; last read"));
    return refuse_file(std::string(reason));
  }

  Result<GivenOptions> finish(bool complete) && {
    if (!complete) {
      return std::unexpected(std::move(error_.value()));
    }
    return std::move(given_);
  }

 private:
  enum class Place : uint8_t { kTop, kObject, kList };

  [[nodiscard]] bool is_value_of(Kind kind) const {
    return place_ == Place::kObject && run_options()[option_].kind == kind;
  }
  bool take(std::string_view text) {
    given_[option_].texts.emplace_back(text);
    return true;
  }
  bool wrong_type() {
    return place_ == Place::kTop ? refuse_file("is not a JSON object")
                                 : refuse(fmt::format("has to be {}", expected_type(run_options()[option_].kind)));
  }
  bool refuse(std::string_view reason) {
    return refuse_file(fmt::format("{}: {}", run_options()[option_].name, reason));
  }
  bool refuse_file(std::string_view reason) {
    error_ = Error(Errc::kInvalidArgument, fmt::format("{}: {}", label_, reason));
    return false;
  }

  std::string_view label_;
  GivenOptions given_;
  std::vector<bool> seen_;
  size_t option_ = 0;  ///< The one that the last key named.
  Place place_ = Place::kTop;
  std::optional<Error> error_;
};

}  // namespace

Result<GivenOptions> parse_config(std::string_view text, std::string_view label) {
  ConfigReader reader(label);
  const bool complete = json::sax_parse(text.begin(), text.end(), &reader);
  return std::move(reader).finish(complete);
}

Result<GivenOptions> read_config_file(const std::string& path) {
  const RegularFile file = TANDEM_TRY(RegularFile::open("--config", path));
  if (file.size() > kMaxConfigBytes) {
    return fail(Errc::kOutOfRange, "{}: has {} bytes; at most {} are possible", file.label(), file.size(),
                kMaxConfigBytes);
  }
  std::string text(file.size(), '\0');
  text.resize(TANDEM_TRY(file.read_at(0, std::as_writable_bytes(std::span(text)))));
  return parse_config(text, file.label());
}

}  // namespace tandem::cli
