// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/host_names.hpp"

#include <algorithm>

#include "vmm/cli/device_text.hpp"
#include "vmm/cli/error_line.hpp"

namespace tandem::cli {
namespace {

struct Assignment {
  std::string id;
  std::string_view value;
};

Result<Assignment> split(std::string_view text, std::string_view form) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    return fail(Errc::kInvalidArgument, "{} is not of the form {}", in_quotes(text), form);
  }
  return Assignment{.id = std::string(text.substr(0, equals)), .value = text.substr(equals + 1)};
}

Result<void> add(std::map<std::string, std::string>& names, std::string id, std::string value) {
  if (!names.try_emplace(id, std::move(value)).second) {
    return fail(Errc::kInvalidArgument, "{} is there twice", in_quotes(id));
  }
  return {};
}

/// Gives each device its name on this host.
template <typename Device>
Result<void> assign(std::vector<Device>& devices, std::string Device::* place, const char* option,
                    std::map<std::string, std::string> names, SourceNames source) {
  for (Device& device : devices) {
    if (auto named = names.extract(device.id)) {
      device.*place = std::move(named.mapped());
    } else if (source == SourceNames::kNotUsed) {
      return fail(Errc::kInvalidArgument, "{} {}=… is needed: the machine has that device", option, device.id);
    }
  }
  if (names.empty()) {
    return {};
  }
  std::string known;
  for (const Device& device : devices) {
    known += (known.empty() ? "" : ", ") + device.id;
  }
  return fail(Errc::kInvalidArgument, "{}: the machine has no {}; it has {}", option, in_quotes(names.begin()->first),
              known.empty() ? "none" : known);
}

Result<void> assign_vsock(MachineSpec& spec, const HostNames& names, SourceNames source) {
  if (names.vsock && !spec.vsock) {
    return fail(Errc::kInvalidArgument, "--vsock: the machine has no socket device");
  }
  if (names.vsock) {
    spec.vsock->path = *names.vsock;
  } else if (spec.vsock && source == SourceNames::kNotUsed) {
    return fail(Errc::kInvalidArgument, "--vsock PATH is needed: the machine has a socket device");
  }
  return {};
}

Result<void> assign_console(ConsoleSpec& console, const std::optional<ConsoleSpec>& named, const char* option,
                            SourceNames source) {
  if (named) {
    console = *named;
  } else if (source == SourceNames::kNotUsed) {
    console = {};
  } else if (console.kind == ConsoleSpec::Kind::kFile) {
    return fail(Errc::kInvalidArgument, "{} is needed: at the source, that console went to the file {}", option,
                in_quotes(console.path));
  }
  return {};
}

}  // namespace

Result<void> take_disk(HostNames& names, std::string_view text) {
  auto [id, path] = TANDEM_TRY(split(text, "ID=PATH"));
  return add(names.disks, std::move(id), std::string(path));
}

Result<void> take_net(HostNames& names, std::string_view text) {
  auto [id, tap] = TANDEM_TRY(split(text, "ID=tap=IF"));
  const NetSpec net = TANDEM_TRY(parse_net(tap));
  if (!net.id.empty() || net.mac) {
    return fail(Errc::kInvalidArgument, "{} is not of the form ID=tap=IF", in_quotes(text));
  }
  return add(names.taps, std::move(id), net.tap);
}

Result<MachineSpec> with_host_names(MachineSpec spec, const HostNames& names, SourceNames source) {
  if (names.name) {
    spec.name = *names.name;
  }
  TANDEM_TRY(assign(spec.disks, &DiskSpec::path, "--disk", names.disks, source));
  TANDEM_TRY(assign(spec.nets, &NetSpec::tap, "--net", names.taps, source));
  TANDEM_TRY(assign_vsock(spec, names, source));
  TANDEM_TRY(assign_console(spec.console, names.console, "--console", source));
  if (names.hvc && !spec.hvc) {
    return fail(Errc::kInvalidArgument, "--hvc: the machine has no virtio console");
  }
  if (spec.hvc) {
    TANDEM_TRY(assign_console(*spec.hvc, names.hvc, "--hvc", source));
  }
  return spec;
}

}  // namespace tandem::cli
