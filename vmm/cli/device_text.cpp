// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/device_text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "vmm/cli/error_line.hpp"

namespace tandem::cli {
namespace {

/// The parts between commas; two commas in a row are one that belongs to its part.
std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts(1);
  for (size_t index = 0; index < text.size(); ++index) {
    if (text[index] != ',') {
      parts.back() += text[index];
    } else if (index + 1 < text.size() && text[index + 1] == ',') {
      parts.back() += ',';
      ++index;
    } else {
      parts.emplace_back();
    }
  }
  return parts;
}

/// What follows `key` in `part`, if it starts with it.
std::optional<std::string_view> value_of(std::string_view part, std::string_view key) {
  return part.starts_with(key) ? std::optional(part.substr(key.size())) : std::nullopt;
}

bool is_id_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// Takes an `id=` part.
Result<void> take_id(std::string& id, std::string_view value) {
  if (!id.empty()) {
    return fail(Errc::kInvalidArgument, "more than one id");
  }
  if (value.empty() || value.size() > kMaxIdBytes || !std::ranges::all_of(value, is_id_character)) {
    return fail(Errc::kInvalidArgument, "id {} is not 1 to {} letters, digits, '-' and '_'", in_quotes(value),
                kMaxIdBytes);
  }
  id = value;
  return {};
}

/// Whether the kernel takes this as the name of one interface.
bool is_interface_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxInterfaceBytes && name != "." && name != ".." &&
         std::ranges::none_of(name, [](char c) {
           return static_cast<unsigned char>(c) <= ' ' || c == '/' || c == ':' || c == '%' || c == '\x7f';
         });
}

Result<void> check_socket_path(std::string_view path) {
  if (path.size() > kMaxSocketPathBytes) {
    return fail(Errc::kInvalidArgument, "the path of a socket has {} bytes; at most {} are possible", path.size(),
                kMaxSocketPathBytes);
  }
  return {};
}

Result<uint32_t> parse_cid(std::string_view text) {
  constexpr uint32_t kFirstGuestCid = 3;
  constexpr uint32_t kAnyCid = UINT32_MAX;
  uint32_t cid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cid);
  if (error != std::errc() || end != text.data() + text.size() || cid < kFirstGuestCid || cid == kAnyCid) {
    return fail(Errc::kInvalidArgument, "cid {} is not a number between {} and {}", in_quotes(text), kFirstGuestCid,
                kAnyCid - 1);
  }
  return cid;
}

Result<std::array<uint8_t, 6>> parse_mac(std::string_view text) {
  constexpr size_t kStride = 3;
  std::array<uint8_t, 6> mac{};
  bool well_formed = text.size() == mac.size() * kStride - 1;
  for (size_t index = 0; well_formed && index < mac.size(); ++index) {
    const char* const digits = text.data() + index * kStride;
    const auto [end, error] = std::from_chars(digits, digits + 2, mac[index], 16);
    well_formed = error == std::errc() && end == digits + 2 && (index + 1 == mac.size() || *end == ':');
  }
  if (!well_formed) {
    return fail(Errc::kInvalidArgument, "mac {} is not of the form 52:54:00:12:34:56", in_quotes(text));
  }
  if ((mac[0] & 1) != 0 || mac == std::array<uint8_t, 6>{}) {
    return fail(Errc::kInvalidArgument, "mac {} is not the address of one station", in_quotes(text));
  }
  return mac;
}

}  // namespace

Result<DiskSpec> parse_disk(std::string_view text) {
  const std::vector<std::string> parts = split_at_commas(text);
  DiskSpec disk{.path = parts.front(), .id = {}, .read_only = false};
  if (disk.path.empty()) {
    return fail(Errc::kInvalidArgument, "{} has no PATH", in_quotes(text));
  }
  for (size_t index = 1; index < parts.size(); ++index) {
    if (const auto id = value_of(parts[index], "id=")) {
      TANDEM_TRY(take_id(disk.id, *id));
    } else if (parts[index] == "ro") {
      disk.read_only = true;
    } else {
      return fail(Errc::kInvalidArgument, "{} is no part of PATH[,id=ID][,ro]; a comma in PATH is written twice",
                  in_quotes(parts[index]));
    }
  }
  return disk;
}

Result<NetSpec> parse_net(std::string_view text) {
  NetSpec net;
  for (const std::string& part : split_at_commas(text)) {
    if (const auto tap = value_of(part, "tap="); tap && net.tap.empty()) {
      if (!is_interface_name(*tap)) {
        return fail(Errc::kInvalidArgument, "tap {} is not the name of an interface (1 to {} bytes)", in_quotes(*tap),
                    kMaxInterfaceBytes);
      }
      net.tap = *tap;
    } else if (const auto id = value_of(part, "id=")) {
      TANDEM_TRY(take_id(net.id, *id));
    } else if (const auto mac = value_of(part, "mac="); mac && !net.mac) {
      net.mac = TANDEM_TRY(parse_mac(*mac));
    } else {
      return fail(Errc::kInvalidArgument, "{} is no part of tap=IF[,id=ID][,mac=M], or is there twice",
                  in_quotes(part));
    }
  }
  if (net.tap.empty()) {
    return fail(Errc::kInvalidArgument, "{} has no tap=IF", in_quotes(text));
  }
  return net;
}

Result<VsockSpec> parse_vsock(std::string_view text) {
  const std::vector<std::string> parts = split_at_commas(text);
  VsockSpec vsock{.path = parts.front()};
  if (vsock.path.empty()) {
    return fail(Errc::kInvalidArgument, "{} has no PATH", in_quotes(text));
  }
  TANDEM_TRY(check_socket_path(vsock.path));
  for (size_t index = 1; index < parts.size(); ++index) {
    const auto cid = value_of(parts[index], "cid=");
    if (!cid || index > 1) {
      return fail(Errc::kInvalidArgument,
                  "{} is no part of PATH[,cid=N], or is there twice; a comma in PATH is written twice",
                  in_quotes(parts[index]));
    }
    vsock.guest_cid = TANDEM_TRY(parse_cid(*cid));
  }
  return vsock;
}

Result<ConsoleSpec> parse_console(std::string_view text) {
  using Kind = ConsoleSpec::Kind;
  if (text == "stdio" || text == "pty" || text == "none") {
    const Kind kind = text == "stdio" ? Kind::kStdio : text == "pty" ? Kind::kPty : Kind::kNone;
    return ConsoleSpec{.kind = kind, .path = {}};
  }
  const auto file = value_of(text, "file=");
  const auto socket = value_of(text, "socket=");
  if (!file && !socket) {
    return fail(Errc::kInvalidArgument, "{} is none of stdio, pty, file=PATH, socket=PATH and none", in_quotes(text));
  }
  const std::string_view path = file ? *file : *socket;
  if (path.empty()) {
    return fail(Errc::kInvalidArgument, "{} has no PATH", in_quotes(text));
  }
  if (socket) {
    TANDEM_TRY(check_socket_path(path));
  }
  return ConsoleSpec{.kind = file ? Kind::kFile : Kind::kSocket, .path = std::string(path)};
}

}  // namespace tandem::cli
