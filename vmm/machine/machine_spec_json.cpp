// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/machine_spec_json.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

namespace tandem {
namespace {

using nlohmann::json;

constexpr unsigned kDocumentVersion = 1;
constexpr size_t kMaxNameBytes = 64;
constexpr size_t kMaxIdBytes = 20;
constexpr size_t kMaxInterfaceBytes = 15;
constexpr size_t kMaxPathBytes = 4095;  // PATH_MAX without the NUL
constexpr unsigned kMaxSveQuadwords = 16;
constexpr uint32_t kFirstGuestCid = 3;
constexpr const char* kHexKey = "hex";

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(json(text).dump());
    return true;
  } catch (const json::exception&) {
    return false;
  }
}

/// Paths and command lines may hold any bytes, JSON strings only UTF-8: other texts become {"hex": …}.
json text_to_json(const std::string& text) {
  if (is_utf8(text)) {
    return text;
  }
  std::string hex;
  for (const char c : text) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return json{{kHexKey, hex}};
}

std::string mac_text(const std::array<uint8_t, 6>& mac) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

constexpr std::array kConsoleKinds{std::pair{std::string_view("none"), ConsoleSpec::Kind::kNone},
                                   std::pair{std::string_view("stdio"), ConsoleSpec::Kind::kStdio},
                                   std::pair{std::string_view("pty"), ConsoleSpec::Kind::kPty},
                                   std::pair{std::string_view("file"), ConsoleSpec::Kind::kFile},
                                   std::pair{std::string_view("socket"), ConsoleSpec::Kind::kSocket}};

json console_to_json(const ConsoleSpec& console) {
  const auto* const kind =
      std::ranges::find(kConsoleKinds, console.kind, &std::pair<std::string_view, ConsoleSpec::Kind>::second);
  TANDEM_ASSERT(kind != kConsoleKinds.end(), "the table has every kind");
  return json{{"kind", kind->first}, {"path", text_to_json(console.path)}};
}

json guest_view(const MachineSpec& spec) {
  TANDEM_ASSERT(spec.gic != GicChoice::kAuto, "a document is made of what is in use");
  json disks = json::array();
  for (const DiskSpec& disk : spec.disks) {
    disks.push_back({{"id", disk.id}, {"read-only", disk.read_only}});
  }
  json nets = json::array();
  for (const NetSpec& net : spec.nets) {
    TANDEM_ASSERT(net.mac.has_value(), "a document is made of what is in use");
    nets.push_back({{"id", net.id}, {"mac", mac_text(*net.mac)}});
  }
  return {{"version", kDocumentVersion},
          {"vcpus", spec.vcpu_count},
          {"memory", spec.memory_bytes},
          {"cpu",
           {{"sve", spec.cpu.sve},
            {"sve-quadwords", spec.cpu.sve_quadwords},
            {"pauth", spec.cpu.pauth},
            {"pmu", spec.cpu.pmu}}},
          {"gic", spec.gic == GicChoice::kV3 ? 3 : 2},
          {"its", spec.its},
          {"pv-vcpu-state", spec.pv_vcpu_state != VcpuStateChoice::kOff},
          {"pv-time", spec.pv_time},
          {"cmdline", text_to_json(spec.boot.cmdline)},
          {"disks", std::move(disks)},
          {"nets", std::move(nets)},
          {"hvc", spec.hvc.has_value()},
          {"vsock-cid", spec.vsock ? json(spec.vsock->guest_cid) : json()},
          {"balloon", spec.balloon},
          {"rng", spec.rng}};
}

json host_names(const MachineSpec& spec) {
  json disks = json::array();
  std::ranges::transform(spec.disks, std::back_inserter(disks), text_to_json, &DiskSpec::path);
  json taps = json::array();
  std::ranges::transform(spec.nets, std::back_inserter(taps), text_to_json, &NetSpec::tap);
  return {{"name", spec.name},
          {"kernel", text_to_json(spec.boot.kernel)},
          {"initrd", text_to_json(spec.boot.initrd)},
          {"console", console_to_json(spec.console)},
          {"hvc", spec.hvc ? console_to_json(*spec.hvc) : json()},
          {"disks", std::move(disks)},
          {"taps", std::move(taps)},
          {"vsock", spec.vsock ? text_to_json(spec.vsock->path) : json()}};
}

/// The members of one object. The first fault found is kept, and all reads after it give nothing.
class Members {
 public:
  Members(const json& object, std::string place, std::string& fault)
      : object_(object), place_(std::move(place)), fault_(fault) {
    if (!object.is_object()) {
      note(place_, "is no object");
    }
  }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  /// The member; null if it is missing, which is a fault.
  const json& take(const char* key) {
    static const json kNull;
    if (!object_.is_object()) {
      return kNull;
    }
    const auto it = object_.find(key);
    if (it == object_.end()) {
      note(path_of(key), "is missing");
      return kNull;
    }
    ++taken_;
    return *it;
  }

  bool boolean(const char* key) {
    const json& value = take(key);
    return expect(value.is_boolean(), key, "is neither true nor false") && value.get<bool>();
  }
  uint64_t number(const char* key, uint64_t least, uint64_t most) {
    const json& value = take(key);
    const bool fits = value.is_number_unsigned() && value.get<uint64_t>() >= least && value.get<uint64_t>() <= most;
    return expect(fits, key, fmt::format("is not a number from {} to {}", least, most)) ? value.get<uint64_t>() : least;
  }
  std::string text(const char* key, size_t max_bytes) { return text_of(take(key), path_of(key), max_bytes); }
  const json& array(const char* key, size_t max_count) {
    static const json kEmpty = json::array();
    const json& value = take(key);
    return expect(value.is_array() && value.size() <= max_count, key,
                  fmt::format("is no array of at most {}", max_count))
               ? value
               : kEmpty;
  }

  /// A text, in either of its forms.
  std::string text_of(const json& value, const std::string& where, size_t max_bytes) {
    const std::optional<std::string> text = decode(value);
    if (!text || text->size() > max_bytes || text->find('\0') != std::string::npos) {
      note(where, fmt::format("is no text of at most {} bytes", max_bytes));
      return {};
    }
    return *text;
  }

  /// To be called last: nothing may be left.
  void finish() {
    if (object_.is_object() && object_.size() != taken_) {
      note(place_, "has members that nobody knows");
    }
  }

  void note(std::string_view where, std::string_view what) {
    if (fault_.empty()) {
      fault_ = fmt::format("{}: {}", where, what);
    }
  }
  [[nodiscard]] std::string path_of(const char* key) const { return fmt::format("{}.{}", place_, key); }
  [[nodiscard]] std::string& fault() const { return fault_; }

 private:
  static std::optional<std::string> decode(const json& value) {
    if (value.is_string()) {
      return value.get<std::string>();
    }
    if (!value.is_object() || value.size() != 1 || !value.contains(kHexKey) || !value[kHexKey].is_string()) {
      return std::nullopt;
    }
    const auto& hex = value[kHexKey].get_ref<const std::string&>();
    std::string text(hex.size() / 2, '\0');
    for (size_t index = 0; index < text.size(); ++index) {
      unsigned byte = 0;
      const char* const digits = hex.data() + 2 * index;
      if (const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
          error != std::errc() || end != digits + 2) {
        return std::nullopt;
      }
      text[index] = static_cast<char>(byte);
    }
    return hex.size() % 2 == 0 ? std::optional(text) : std::nullopt;
  }
  bool expect(bool holds, const char* key, std::string_view what) {
    if (!holds) {
      note(path_of(key), what);
    }
    return holds;
  }

  const json& object_;
  std::string place_;
  std::string& fault_;
  size_t taken_ = 0;
};

bool is_word(std::string_view text, std::string_view also) {
  return !text.empty() && std::ranges::all_of(text, [also](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           also.find(c) != std::string_view::npos;
  });
}

/// The id of a device.
std::string take_id(Members& members) {
  std::string id = members.text("id", kMaxIdBytes);
  if (!is_word(id, "-_")) {
    members.note(members.path_of("id"), "is no id of a device");
  }
  return id;
}

std::optional<std::array<uint8_t, 6>> parse_mac(std::string_view text) {
  std::array<uint8_t, 6> mac{};
  for (size_t index = 0; index < mac.size() && text.size() == 3 * mac.size() - 1; ++index) {
    const char* const digits = text.data() + 3 * index;
    std::from_chars(digits, digits + 2, mac.at(index), 16);
  }
  const bool is_station = (mac[0] & 1) == 0 && mac != std::array<uint8_t, 6>{};
  return is_station && mac_text(mac) == text ? std::optional(mac) : std::nullopt;
}

CpuFeatureSpec read_cpu(const json& value, std::string& fault) {
  Members members(value, "cpu", fault);
  CpuFeatureSpec cpu{.sve = members.boolean("sve"),
                     .sve_quadwords = {},
                     .pauth = members.boolean("pauth"),
                     .pmu = members.boolean("pmu")};
  unsigned last = 0;
  for (const json& length : members.array("sve-quadwords", kMaxSveQuadwords)) {
    if (!length.is_number_unsigned() || length.get<uint64_t>() <= last || length.get<uint64_t>() > kMaxSveQuadwords) {
      members.note("cpu.sve-quadwords", "are no ascending lengths");
      break;
    }
    last = length.get<unsigned>();
    cpu.sve_quadwords.push_back(last);
  }
  if (cpu.sve == cpu.sve_quadwords.empty()) {
    members.note("cpu.sve-quadwords", "do not go with cpu.sve");
  }
  members.finish();
  return cpu;
}

ConsoleSpec read_console(const json& value, const char* place, std::string& fault) {
  Members members(value, place, fault);
  const std::string kind = members.text("kind", kMaxNameBytes);
  ConsoleSpec console{.kind = ConsoleSpec::Kind::kNone, .path = members.text("path", kMaxPathBytes)};
  const auto* const known =
      std::ranges::find(kConsoleKinds, kind, &std::pair<std::string_view, ConsoleSpec::Kind>::first);
  if (known == kConsoleKinds.end()) {
    members.note(members.path_of("kind"), "is no kind of console");
  } else {
    console.kind = known->second;
  }
  const bool needs_path = console.kind == ConsoleSpec::Kind::kFile || console.kind == ConsoleSpec::Kind::kSocket;
  if (console.path.empty() == needs_path) {
    members.note(members.path_of("path"), "does not go with the kind");
  }
  members.finish();
  return console;
}

void read_devices(Members& top, MachineSpec& spec) {
  for (const json& value : top.array("disks", kMaxVirtioDevices)) {
    Members members(value, fmt::format("disks.{}", spec.disks.size()), top.fault());
    std::string id = take_id(members);
    spec.disks.push_back({.path = {}, .id = std::move(id), .read_only = members.boolean("read-only")});
    members.finish();
  }
  for (const json& value : top.array("nets", kMaxVirtioDevices)) {
    Members members(value, fmt::format("nets.{}", spec.nets.size()), top.fault());
    std::string id = take_id(members);
    const auto mac = parse_mac(members.text("mac", kMaxNameBytes));
    if (!mac) {
      members.note(members.path_of("mac"), "is not the address of one station");
    }
    spec.nets.push_back({.tap = {}, .id = std::move(id), .mac = mac});
    members.finish();
  }
  if (top.boolean("hvc")) {
    spec.hvc.emplace();
  }
  if (const json& cid = top.take("vsock-cid"); !cid.is_null()) {
    const bool fits =
        cid.is_number_unsigned() && cid.get<uint64_t>() >= kFirstGuestCid && cid.get<uint64_t>() < UINT32_MAX;
    if (!fits) {
      top.note("machine.vsock-cid", "is no guest's");
    }
    spec.vsock = VsockSpec{.path = {}, .guest_cid = fits ? cid.get<uint32_t>() : kFirstGuestCid};
  }
  spec.balloon = top.boolean("balloon");
  spec.rng = top.boolean("rng");
}

void read_host_names(const json& value, MachineSpec& spec, std::string& fault) {
  Members members(value, "defaults", fault);
  spec.name = members.text("name", kMaxNameBytes);
  if (!is_word(spec.name, "._-") || std::string_view("._-").find(spec.name.front()) != std::string_view::npos) {
    members.note("defaults.name", "is no name of a machine");
  }
  spec.boot.kernel = members.text("kernel", kMaxPathBytes);
  spec.boot.initrd = members.text("initrd", kMaxPathBytes);
  spec.console = read_console(members.take("console"), "defaults.console", fault);
  if (const json& hvc = members.take("hvc"); spec.hvc) {
    spec.hvc = read_console(hvc, "defaults.hvc", fault);
  } else if (!hvc.is_null()) {
    members.note("defaults.hvc", "does not go with hvc");
  }
  const json& disks = members.array("disks", spec.disks.size());
  const json& taps = members.array("taps", spec.nets.size());
  if (disks.size() != spec.disks.size() || taps.size() != spec.nets.size()) {
    members.note("defaults", "are not those of the devices");
    return;
  }
  for (size_t index = 0; index < disks.size(); ++index) {
    spec.disks[index].path = members.text_of(disks[index], "defaults.disks", kMaxPathBytes);
  }
  for (size_t index = 0; index < taps.size(); ++index) {
    spec.nets[index].tap = members.text_of(taps[index], "defaults.taps", kMaxInterfaceBytes);
  }
  if (const json& vsock = members.take("vsock"); spec.vsock) {
    spec.vsock->path = members.text_of(vsock, "defaults.vsock", kMaxPathBytes);
  } else if (!vsock.is_null()) {
    members.note("defaults.vsock", "does not go with vsock-cid");
  }
  members.finish();
}

/// What holds between the parts.
void check_whole(const MachineSpec& spec, Members& top) {
  if (spec.memory_bytes % kMemoryUnitBytes != 0) {
    top.note("machine.memory", fmt::format("is no multiple of {}", kMemoryUnitBytes));
  }
  if (spec.gic == GicChoice::kV2 && (spec.vcpu_count > kMaxVcpusGicV2 || spec.its)) {
    top.note("machine.gic", "version 2 has no ITS and at most 8 vCPUs");
  }
  std::set<std::string_view> ids;
  std::ranges::transform(spec.disks, std::inserter(ids, ids.end()), &DiskSpec::id);
  std::ranges::transform(spec.nets, std::inserter(ids, ids.end()), &NetSpec::id);
  if (ids.size() != spec.disks.size() + spec.nets.size()) {
    top.note("machine", "two devices have the same id");
  }
  const size_t virtio_count =
      ids.size() + (spec.hvc ? 1U : 0U) + (spec.vsock ? 1U : 0U) + (spec.balloon ? 1U : 0U) + (spec.rng ? 1U : 0U);
  if (virtio_count > kMaxVirtioDevices) {
    top.note("machine", fmt::format("has more than {} virtio devices", kMaxVirtioDevices));
  }
}

MachineSpec read_machine(const json& document, std::string& fault) {
  Members top(document, "machine", fault);
  MachineSpec spec;
  top.number("version", kDocumentVersion, kDocumentVersion);
  spec.vcpu_count = static_cast<unsigned>(top.number("vcpus", 1, kMaxVcpus));
  spec.memory_bytes = top.number("memory", kMinMemoryBytes, kMaxMemoryBytes);
  spec.cpu = read_cpu(top.take("cpu"), fault);
  spec.gic = top.number("gic", 2, 3) == 3 ? GicChoice::kV3 : GicChoice::kV2;
  spec.its = top.boolean("its");
  spec.pv_vcpu_state = top.boolean("pv-vcpu-state") ? VcpuStateChoice::kAuto : VcpuStateChoice::kOff;
  spec.pv_time = top.boolean("pv-time");
  spec.boot.cmdline = top.text("cmdline", kMaxCmdlineBytes - 1);
  read_devices(top, spec);
  read_host_names(top.take("defaults"), spec, fault);
  top.finish();
  check_whole(spec, top);
  return spec;
}

/// Parses, and refuses a key that an object has twice: what comes first must not be hidden by what comes later.
std::optional<json> parse_strictly(std::string_view document) {
  std::vector<std::set<std::string>> keys;
  bool is_good = true;
  const auto callback = [&](int /*depth*/, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      is_good = keys.back().insert(parsed.get<std::string>()).second && is_good;
    }
    return true;
  };
  json parsed = json::parse(document, callback, false);
  return is_good && !parsed.is_discarded() ? std::optional(std::move(parsed)) : std::nullopt;
}

}  // namespace

std::string to_json(const MachineSpec& spec) {
  json document = guest_view(spec);
  document["defaults"] = host_names(spec);
  return document.dump();
}

Result<MachineSpec> machine_spec_from_json(std::string_view document) {
  if (document.size() > kMaxSpecDocumentBytes) {
    return fail(Errc::kCorrupt, "machine: the description has more than {} bytes", kMaxSpecDocumentBytes);
  }
  const auto parsed = parse_strictly(document);
  if (!parsed) {
    return fail(Errc::kCorrupt, "machine: the description is no JSON, or an object has a key twice");
  }
  std::string fault;
  MachineSpec spec = read_machine(*parsed, fault);
  if (!fault.empty()) {
    return fail(Errc::kCorrupt, "{}", fault);
  }
  return spec;
}

std::vector<std::string> differences(const MachineSpec& saved, const MachineSpec& here) {
  const json one = guest_view(saved).flatten();
  const json other = guest_view(here).flatten();
  std::set<std::string> parts;
  for (const json& side : {one, other}) {
    for (const auto& item : side.items()) {
      parts.insert(item.key());
    }
  }
  std::vector<std::string> lines;
  for (const std::string& part : parts) {
    const auto text_in = [&part](const json& side) { return side.contains(part) ? side[part].dump() : "nothing"; };
    if (const std::string was = text_in(one), is = text_in(other); was != is) {
      lines.push_back(fmt::format("{}: the machine has {}, this host {}", part.substr(1), was, is));
    }
  }
  return lines;
}

}  // namespace tandem
