// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

/// Text that may hold anything, put on one line.
namespace tandem::cli {

/// `text` in single quotes, for an error; long text is cut.
std::string in_quotes(std::string_view text);

/// `text` with its control characters, which file names may hold, escaped as \xNN.
std::string escape_controls(std::string_view text);

/// "tandem: `message`" and a newline; control characters are escaped.
std::string error_line(std::string_view message);

/// Writes `error_line(message)` to stderr, in one piece.
void print_error_line(std::string_view message);

}  // namespace tandem::cli
