// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vmm/lib/result/result.hpp"

/// Sizes as people write and read them.
namespace tandem {

/// The number of bytes that `text` names: decimal digits, then nothing or one of K, M, G (either case; powers of 1024).
/// @errors  Errc::kInvalidArgument: the text has another form; Errc::kOutOfRange: more than 2^64 - 1 bytes.
Result<uint64_t> parse_size(std::string_view text);

/// "513 bytes", "64 KiB", "30.1 MiB", "2 GiB": the largest unit that leaves at least 1, one decimal, rounded down.
std::string format_size(uint64_t size_bytes);

}  // namespace tandem
