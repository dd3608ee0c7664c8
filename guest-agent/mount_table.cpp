// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/mount_table.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::agent {
namespace {

/// The words of a line, separated by single spaces.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

/// mountinfo writes space, tab, newline and backslash as a backslash and three octal digits.
std::string unescaped(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
    if (text[0] == '\\' && text.size() >= 4 && std::ranges::all_of(text.substr(1, 3), is_octal)) {
      plain += static_cast<char>((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
      text.remove_prefix(4);
    } else {
      plain += text[0];
      text.remove_prefix(1);
    }
  }
  return plain;
}

/// Major number 0 is what file systems get that are on no block device, and those that may be on several.
bool is_on_block_device(std::string_view device, std::string_view type) {
  constexpr std::array<std::string_view, 2> kOnSeveral{"btrfs", "bcachefs"};
  return !device.starts_with("0:") || std::ranges::find(kOnSeveral, type) != kOnSeveral.end();
}

}  // namespace

std::vector<Mount> parse_block_mounts(std::string_view mountinfo) {
  constexpr size_t kDevice = 2;
  constexpr size_t kMountPoint = 4;
  std::vector<Mount> mounts;
  std::vector<std::string_view> devices;
  while (!mountinfo.empty()) {
    const size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    const std::vector<std::string_view> words = words_of(mountinfo.substr(0, end));
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    const auto separator = std::ranges::find(words, "-");
    const bool is_whole =
        separator - words.begin() > static_cast<std::ptrdiff_t>(kMountPoint) && words.end() - separator > 2;
    if (!is_whole || !is_on_block_device(words[kDevice], separator[1]) ||
        std::ranges::find(devices, words[kDevice]) != devices.end()) {
      continue;
    }
    devices.push_back(words[kDevice]);
    mounts.push_back({unescaped(words[kMountPoint]), std::string(separator[1]), unescaped(separator[2])});
  }
  return mounts;
}

Result<std::string> read_kernel_file(const std::string& path) {
  constexpr size_t kMost = 1U << 20;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return fail_errno("{}", path);
  }
  std::string text;
  std::array<char, 4096> piece{};
  while (text.size() <= kMost) {
    const ssize_t count = ::read(file.get(), piece.data(), piece.size());
    if (count < 0) {
      return fail_errno("{}", path);
    }
    if (count == 0) {
      return text;
    }
    text.append(piece.data(), static_cast<size_t>(count));
  }
  return fail(Errc::kOutOfRange, "{}: more than {} bytes", path, kMost);
}

}  // namespace tandem::agent
