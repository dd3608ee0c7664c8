// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/mount_table.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>

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

std::optional<uint64_t> number_in(std::string_view word) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(number) : std::nullopt;
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
  while (!mountinfo.empty()) {
    const size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    const std::vector<std::string_view> words = words_of(mountinfo.substr(0, end));
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    const auto separator = std::ranges::find(words, "-");
    const bool is_whole =
        separator - words.begin() > static_cast<std::ptrdiff_t>(kMountPoint) && words.end() - separator > 2;
    const auto id = is_whole ? number_in(words[0]) : std::nullopt;
    if (id && is_on_block_device(words[kDevice], separator[1])) {
      mounts.push_back({.mount_point = unescaped(words[kMountPoint]),
                        .type = std::string(separator[1]),
                        .source = unescaped(separator[2]),
                        .device = std::string(words[kDevice]),
                        .id = *id});
    }
  }
  return mounts;
}

std::vector<Mount> each_once(const std::vector<Mount>& mounts, const std::function<bool(const Mount&)>& is_on_top) {
  std::vector<Mount> found;
  std::set<std::string_view> seen;
  for (const Mount& first : mounts) {
    if (!seen.insert(first.device).second) {
      continue;
    }
    const auto reachable = std::ranges::find_if(
        mounts, [&](const Mount& mount) { return mount.device == first.device && is_on_top(mount); });
    if (reachable != mounts.end()) {
      found.push_back(*reachable);
    }
  }
  return found;
}

bool is_on_top(const Mount& mount) {
  constexpr std::string_view kField = "mnt_id:";
  const UniqueFd place(::open(mount.mount_point.c_str(), O_PATH | O_CLOEXEC));
  if (!place) {
    return false;
  }
  const auto text = read_kernel_file(fmt::format("/proc/self/fdinfo/{}", place.get()));
  const size_t field = text ? text->find(kField) : std::string::npos;
  if (field == std::string::npos) {
    return false;
  }
  const size_t number = std::min(text->find_first_not_of(" \t", field + kField.size()), text->size());
  return number_in(std::string_view(*text).substr(number, text->find('\n', number) - number)) == mount.id;
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
