// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/size_text/size_text.hpp"

#include <charconv>

namespace tandem {
namespace {

/// How far a suffix shifts its number, or -1 for no suffix of ours.
int suffix_shift(std::string_view suffix) {
  if (suffix.empty()) {
    return 0;
  }
  if (suffix.size() > 1) {
    return -1;
  }
  switch (suffix.front()) {
    case 'K':
    case 'k':
      return 10;
    case 'M':
    case 'm':
      return 20;
    case 'G':
    case 'g':
      return 30;
    default:
      return -1;
  }
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::invalid_argument) {
    return fail(Errc::kInvalidArgument, "not a size: digits, then K, M, G or nothing");
  }
  const int shift = suffix_shift({rest, static_cast<size_t>(text.data() + text.size() - rest)});
  if (shift < 0) {
    return fail(Errc::kInvalidArgument, "not a size: digits, then K, M, G or nothing");
  }
  if (error == std::errc::result_out_of_range || number > (UINT64_MAX >> shift)) {
    return fail(Errc::kOutOfRange, "more than 2^64 - 1 bytes");
  }
  return number << shift;
}

std::string format_size(uint64_t size_bytes) {
  struct Unit {
    unsigned shift;
    const char* name;
  };
  for (const Unit unit : {Unit{30, "GiB"}, Unit{20, "MiB"}, Unit{10, "KiB"}}) {
    const uint64_t whole = size_bytes >> unit.shift;
    if (whole == 0) {
      continue;
    }
    const uint64_t rest = size_bytes & ((uint64_t{1} << unit.shift) - 1);
    const uint64_t tenths = (rest * 10) >> unit.shift;
    return tenths == 0 ? fmt::format("{} {}", whole, unit.name) : fmt::format("{}.{} {}", whole, tenths, unit.name);
  }
  return fmt::format("{} bytes", size_bytes);
}

}  // namespace tandem
