// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/run_options.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

#include "vmm/cli/device_text.hpp"
#include "vmm/cli/error_line.hpp"
#include "vmm/control/vm_registry.hpp"
#include "vmm/lib/size_text/size_text.hpp"

namespace tandem::cli {
namespace {

using Kind = RunOption::Kind;

Result<void> apply_path(std::string& path, std::string_view text) {
  if (text.empty()) {
    return fail(Errc::kInvalidArgument, "the path is empty");
  }
  path = text;
  return {};
}

Result<void> apply_kernel(RunRequest& request, std::string_view text) {
  return apply_path(request.spec.boot.kernel, text);
}
Result<void> apply_initrd(RunRequest& request, std::string_view text) {
  return apply_path(request.spec.boot.initrd, text);
}
Result<void> apply_dump_dtb(RunRequest& request, std::string_view text) {
  return apply_path(request.dump_dtb_path, text);
}

Result<void> apply_cmdline(RunRequest& request, std::string_view text) {
  if (text.size() >= kMaxCmdlineBytes) {
    return fail(Errc::kOutOfRange, "has {} bytes; Linux on arm64 takes at most {}", text.size(), kMaxCmdlineBytes - 1);
  }
  request.spec.boot.cmdline = text;
  return {};
}

Result<void> apply_cpus(RunRequest& request, std::string_view text) {
  unsigned count = 0;
  const char* const text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), text_end, count);
  if (error != std::errc() || end != text_end || count < 1 || count > kMaxVcpus) {
    return fail(Errc::kInvalidArgument, "{} is not a number between 1 and {}", in_quotes(text), kMaxVcpus);
  }
  request.spec.vcpu_count = count;
  return {};
}

Result<void> apply_memory(RunRequest& request, std::string_view text) {
  const auto size_bytes = parse_size(text);
  if (!size_bytes) {
    return fail(size_bytes.error().code(), "{} is {}", in_quotes(text), size_bytes.error().message());
  }
  if (*size_bytes < kMinMemoryBytes) {
    return fail(Errc::kOutOfRange, "{} is too little: {}, and at least {} are needed", in_quotes(text),
                format_size(*size_bytes), format_size(kMinMemoryBytes));
  }
  if (*size_bytes > kMaxMemoryBytes) {
    return fail(Errc::kOutOfRange, "{} is too much: at most {} are possible", in_quotes(text),
                format_size(kMaxMemoryBytes));
  }
  if (*size_bytes % kMemoryUnitBytes != 0) {
    return fail(Errc::kInvalidArgument, "{} is no multiple of {}", in_quotes(text), format_size(kMemoryUnitBytes));
  }
  request.spec.memory_bytes = *size_bytes;
  return {};
}

Result<void> apply_name(RunRequest& request, std::string_view text) {
  if (const auto checked = control::check_vm_name(text); !checked) {
    return fail(checked.error().code(), "{} {}", in_quotes(text), checked.error().message());
  }
  request.spec.name = text;
  return {};
}

Result<void> apply_gic(RunRequest& request, std::string_view text) {
  constexpr std::array kNames{std::pair{std::string_view{"auto"}, GicChoice::kAuto},
                              std::pair{std::string_view{"v3"}, GicChoice::kV3},
                              std::pair{std::string_view{"v2"}, GicChoice::kV2}};
  const auto* const it = std::ranges::find(kNames, text, &decltype(kNames)::value_type::first);
  if (it == kNames.end()) {
    return fail(Errc::kInvalidArgument, "{} is none of auto, v3 and v2", in_quotes(text));
  }
  request.spec.gic = it->second;
  return {};
}

Result<void> apply_pv_vcpu_state(RunRequest& request, std::string_view text) {
  constexpr std::array kNames{std::pair{std::string_view{"auto"}, VcpuStateChoice::kAuto},
                              std::pair{std::string_view{"kernel"}, VcpuStateChoice::kKernel},
                              std::pair{std::string_view{"bpf"}, VcpuStateChoice::kBpf},
                              std::pair{std::string_view{"off"}, VcpuStateChoice::kOff},
                              std::pair{std::string_view{"require"}, VcpuStateChoice::kRequire}};
  const auto* const it = std::ranges::find(kNames, text, &decltype(kNames)::value_type::first);
  if (it == kNames.end()) {
    return fail(Errc::kInvalidArgument, "{} is none of auto, kernel, bpf, off and require", in_quotes(text));
  }
  request.spec.pv_vcpu_state = it->second;
  return {};
}

Result<void> apply_disk(RunRequest& request, std::string_view text) {
  request.spec.disks.push_back(TANDEM_TRY(parse_disk(text)));
  return {};
}

Result<void> apply_net(RunRequest& request, std::string_view text) {
  request.spec.nets.push_back(TANDEM_TRY(parse_net(text)));
  return {};
}

Result<void> apply_vsock(RunRequest& request, std::string_view text) {
  request.spec.vsock = TANDEM_TRY(parse_vsock(text));
  return {};
}

Result<void> apply_console(RunRequest& request, std::string_view text) {
  request.spec.console = TANDEM_TRY(parse_console(text));
  return {};
}

Result<void> apply_hvc(RunRequest& request, std::string_view text) {
  const ConsoleSpec console = TANDEM_TRY(parse_console(text));
  // `none` takes back what a configuration file says.
  request.spec.hvc = console.kind == ConsoleSpec::Kind::kNone ? std::nullopt : std::optional(console);
  return {};
}

Result<void> apply_log_level(RunRequest& request, std::string_view text) {
  const auto level = log::parse_level(text);
  if (!level) {
    return fail(Errc::kInvalidArgument, "{} is none of debug, info, warn, error and off", in_quotes(text));
  }
  request.log_level = *level;
  return {};
}

Result<void> apply_balloon(RunRequest& request, std::string_view /*text*/) {
  request.spec.balloon = true;
  return {};
}
Result<void> apply_no_rng(RunRequest& request, std::string_view /*text*/) {
  request.spec.rng = false;
  return {};
}
Result<void> apply_no_its(RunRequest& request, std::string_view /*text*/) {
  request.spec.its = false;
  return {};
}
Result<void> apply_no_pv_time(RunRequest& request, std::string_view /*text*/) {
  request.spec.pv_time = false;
  return {};
}
Result<void> apply_pmu(RunRequest& request, std::string_view /*text*/) {
  request.spec.cpu.pmu = true;
  return {};
}
Result<void> apply_no_sve(RunRequest& request, std::string_view /*text*/) {
  request.spec.cpu.sve = false;
  return {};
}
Result<void> apply_no_pauth(RunRequest& request, std::string_view /*text*/) {
  request.spec.cpu.pauth = false;
  return {};
}
Result<void> apply_paused(RunRequest& request, std::string_view /*text*/) {
  request.paused = true;
  return {};
}
Result<void> apply_dry_run(RunRequest& request, std::string_view /*text*/) {
  request.dry_run = true;
  return {};
}

constexpr const char* kBoot = "Boot";
constexpr const char* kMachine = "Machine";
constexpr const char* kDevices = "Devices";
constexpr const char* kOther = "Other";

constexpr std::array kRunOptions{
    RunOption{"kernel", Kind::kText, "FILE", kBoot, "arm64 Image, gzip'd Image or EFI zboot Image; needed",
              &apply_kernel},
    RunOption{"initrd", Kind::kText, "FILE", kBoot, "initial RAM disk", &apply_initrd},
    RunOption{"cmdline", Kind::kText, "TEXT", kBoot, "kernel command line, passed on as it is; up to 2047 bytes",
              &apply_cmdline},
    RunOption{"cpus", Kind::kNumber, "N", kMachine, "vCPUs, 1 to 512 [1]", &apply_cpus},
    RunOption{"memory", Kind::kNumber, "SIZE", kMachine,
              "RAM: bytes, or with suffix K, M or G; a multiple of 2M, at least 32M [256M]", &apply_memory},
    RunOption{"name", Kind::kText, "NAME", kMachine, "name of the VM on this host [vm-PID]", &apply_name},
    RunOption{"gic", Kind::kText, "auto|v3|v2", kMachine, "interrupt controller; v2 has at most 8 vCPUs [auto]",
              &apply_gic},
    RunOption{"no-its", Kind::kFlag, "", kMachine, "no ITS beside a GICv3", &apply_no_its},
    RunOption{"pv-vcpu-state", Kind::kText, "MODE", kMachine,
              "tell the guest which of its vCPUs are preempted: auto (by what the host has; if nothing, none ever is), "
              "kernel (by KVM), bpf (by the BPF program), require (by what the host has, or fail) or off [auto]",
              &apply_pv_vcpu_state},
    RunOption{"no-pv-time", Kind::kFlag, "", kMachine, "hide stolen time from the guest", &apply_no_pv_time},
    RunOption{"pmu", Kind::kFlag, "", kMachine, "give the guest performance counters", &apply_pmu},
    RunOption{"no-sve", Kind::kFlag, "", kMachine, "hide SVE from the guest", &apply_no_sve},
    RunOption{"no-pauth", Kind::kFlag, "", kMachine, "hide pointer authentication from the guest", &apply_no_pauth},
    RunOption{"disk", Kind::kList, "PATH[,id=ID][,ro]", kDevices,
              "virtio-blk on a raw file or block device; a comma in PATH is written twice; may be repeated",
              &apply_disk},
    RunOption{"net", Kind::kList, "tap=IF[,id=ID][,mac=M]", kDevices, "virtio-net on a tap interface; may be repeated",
              &apply_net},
    RunOption{
        "vsock", Kind::kText, "PATH[,cid=N]", kDevices,
        "virtio-vsock: the socket PATH leads to the guest's ports, PATH_P serves the host's port P; the guest's CID "
        "is N [3]",
        &apply_vsock},
    RunOption{"console", Kind::kText, "BACKEND", kDevices,
              "first serial port (ttyAMA0): stdio, pty, file=PATH, socket=PATH or none [stdio]", &apply_console},
    RunOption{"hvc", Kind::kText, "BACKEND", kDevices, "virtio console (hvc0) on a BACKEND as above", &apply_hvc},
    RunOption{"balloon", Kind::kFlag, "", kDevices, "virtio-balloon", &apply_balloon},
    RunOption{"no-rng", Kind::kFlag, "", kDevices, "no virtio-rng", &apply_no_rng},
    RunOption{"dump-dtb", Kind::kText, "FILE", kOther, "also write the device tree to FILE", &apply_dump_dtb},
    RunOption{"paused", Kind::kFlag, "", kOther, "wait for `tandem resume` before the first instruction",
              &apply_paused},
    RunOption{"dry-run", Kind::kFlag, "", kOther, "set everything up, then end without running the guest",
              &apply_dry_run},
    RunOption{"log-level", Kind::kText, "LEVEL", kOther, "debug, info, warn, error or off [info]", &apply_log_level},
};

/// Names devices that the user did not name, and refuses a name that occurs twice.
Result<void> complete_ids(MachineSpec& spec) {
  for (size_t index = 0; index < spec.disks.size(); ++index) {
    if (spec.disks[index].id.empty()) {
      spec.disks[index].id = fmt::format("disk{}", index);
    }
  }
  for (size_t index = 0; index < spec.nets.size(); ++index) {
    if (spec.nets[index].id.empty()) {
      spec.nets[index].id = fmt::format("net{}", index);
    }
  }
  std::vector<std::string_view> ids;
  std::ranges::transform(spec.disks, std::back_inserter(ids), &DiskSpec::id);
  std::ranges::transform(spec.nets, std::back_inserter(ids), &NetSpec::id);
  std::ranges::sort(ids);
  if (const auto twice = std::ranges::adjacent_find(ids); twice != ids.end()) {
    return fail(Errc::kInvalidArgument, "two devices have the id {}", in_quotes(*twice));
  }
  return {};
}

Result<void> check_taps(const MachineSpec& spec) {
  std::vector<std::string_view> taps;
  std::ranges::transform(spec.nets, std::back_inserter(taps), &NetSpec::tap);
  std::ranges::sort(taps);
  if (const auto twice = std::ranges::adjacent_find(taps); twice != taps.end()) {
    return fail(Errc::kInvalidArgument, "--net: two devices use the tap {}", in_quotes(*twice));
  }
  return {};
}

Result<void> check_consoles(const MachineSpec& spec) {
  if (!spec.hvc || spec.hvc->kind == ConsoleSpec::Kind::kPty || spec.console != *spec.hvc) {
    return {};
  }
  if (spec.hvc->kind == ConsoleSpec::Kind::kStdio) {
    return fail(Errc::kInvalidArgument, "--hvc: the terminal belongs to --console, unless that is given as none, say");
  }
  return fail(Errc::kInvalidArgument, "--hvc: {} belongs to --console", in_quotes(spec.hvc->path));
}

/// A socket that two options name would be found busy only when the first has it.
Result<void> check_vsock(const MachineSpec& spec) {
  const auto is_taken = [&](const ConsoleSpec& console) {
    return console.kind == ConsoleSpec::Kind::kSocket && console.path == spec.vsock->path;
  };
  if (spec.vsock && (is_taken(spec.console) || (spec.hvc && is_taken(*spec.hvc)))) {
    return fail(Errc::kInvalidArgument, "--vsock: {} belongs to a console", in_quotes(spec.vsock->path));
  }
  return {};
}

Result<void> check_limits(const MachineSpec& spec) {
  if (spec.gic == GicChoice::kV2 && spec.vcpu_count > kMaxVcpusGicV2) {
    return fail(Errc::kInvalidArgument, "--cpus: {}, but a GICv2 has at most {}", spec.vcpu_count, kMaxVcpusGicV2);
  }
  const size_t virtio_count = spec.disks.size() + spec.nets.size() + (spec.hvc ? 1U : 0U) + (spec.vsock ? 1U : 0U) +
                              (spec.balloon ? 1U : 0U) + (spec.rng ? 1U : 0U);
  if (virtio_count > kMaxVirtioDevices) {
    return fail(Errc::kInvalidArgument, "{} virtio devices; a machine has at most {}", virtio_count, kMaxVirtioDevices);
  }
  return {};
}

}  // namespace

std::span<const RunOption> run_options() { return kRunOptions; }

size_t find_run_option(std::string_view name) {
  const auto* const it = std::ranges::find(kRunOptions, name, &RunOption::name);
  return static_cast<size_t>(it - kRunOptions.begin());
}

Result<RunRequest> apply_options(const GivenOptions& given) {
  TANDEM_ASSERT(given.size() == kRunOptions.size(), "there is one for each option");
  RunRequest request;
  for (size_t index = 0; index < given.size(); ++index) {
    for (const std::string& text : given[index].texts) {
      TANDEM_TRY(with_context(kRunOptions[index].apply(request, text), given[index].label));
    }
  }
  return request;
}

Result<RunRequest> make_run_request(const GivenOptions& given) {
  RunRequest request = TANDEM_TRY(apply_options(given));
  MachineSpec& spec = request.spec;
  if (spec.boot.kernel.empty()) {
    return fail(Errc::kInvalidArgument, "--kernel is needed");
  }
  if (spec.name.empty()) {
    spec.name = fmt::format("vm-{}", ::getpid());
  }
  TANDEM_TRY(complete_ids(spec));
  TANDEM_TRY(check_taps(spec));
  TANDEM_TRY(check_consoles(spec));
  TANDEM_TRY(check_vsock(spec));
  TANDEM_TRY(check_limits(spec));
  return request;
}

}  // namespace tandem::cli
