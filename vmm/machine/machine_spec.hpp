// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What the user asks for: the value that the command line and the configuration file are turned into.
namespace tandem {

/// Most vCPUs of one machine: the size of the redistributor region (see BoardLayout).
inline constexpr unsigned kMaxVcpus = 512;
/// Most vCPUs with a GICv2.
inline constexpr unsigned kMaxVcpusGicV2 = 8;
/// Linux on arm64 drops what is beyond this, the terminating NUL included (COMMAND_LINE_SIZE).
inline constexpr size_t kMaxCmdlineBytes = 2048;
/// Least RAM [bytes], and the unit of RAM sizes.
inline constexpr uint64_t kMinMemoryBytes = 32U << 20;
inline constexpr uint64_t kMemoryUnitBytes = 2U << 20;
/// Most RAM [bytes]: RAM is one memory slot, whose pages KVM counts in 31 bits, and pages may be as small as 4 KiB.
inline constexpr uint64_t kMaxMemoryBytes = uint64_t{4} << 40;
/// Most virtio devices of one machine: as many windows the board has for them (see BoardLayout).
inline constexpr size_t kMaxVirtioDevices = 128;

enum class GicChoice : uint8_t { kAuto, kV3, kV2 };

/// What keeps the guest's PV vCPU state.
enum class VcpuStateChoice : uint8_t {
  kAuto,     ///< What this host has; if it has nothing, all reads as 0.
  kKernel,   ///< KVM.
  kBpf,      ///< The BPF program.
  kOff,      ///< The guest has no PV vCPU state.
  kRequire,  ///< What this host has.
};

/// Where a console's characters go.
struct ConsoleSpec {
  enum class Kind : uint8_t { kNone, kStdio, kPty, kFile, kSocket };
  Kind kind = Kind::kNone;
  std::string path;  ///< For kFile and kSocket.
  bool operator==(const ConsoleSpec&) const = default;
};

/// One `--disk`.
struct DiskSpec {
  std::string path;
  std::string id;  ///< Unique; `disk0`, `disk1`, … unless given. At most 20 bytes: it is the guest's serial number.
  bool read_only = false;
  bool operator==(const DiskSpec&) const = default;
};

/// One `--net`.
struct NetSpec {
  std::string tap;                            ///< Name of an interface, at most 15 bytes.
  std::string id;                             ///< Unique; `net0`, `net1`, … unless given.
  std::optional<std::array<uint8_t, 6>> mac;  ///< Unicast; made up locally unless given.
  bool operator==(const NetSpec&) const = default;
};

/// `--vsock`.
struct VsockSpec {
  std::string path;        ///< Of the socket that leads to the guest's ports, at most 107 bytes.
  uint32_t guest_cid = 3;  ///< From 3 on; the last number is no guest's.
  bool operator==(const VsockSpec&) const = default;
};

/// What the boot loader gets.
struct BootSpec {
  std::string kernel;   ///< Path.
  std::string initrd;   ///< Path, or empty.
  std::string cmdline;  ///< Passed on verbatim.
  bool operator==(const BootSpec&) const = default;
};

/// Which optional CPU features the guest gets where the host has them.
struct CpuFeatureSpec {
  bool sve = true;
  std::vector<unsigned> sve_quadwords{};  ///< Vector lengths of SVE [128 bits], ascending; none: all that the host has.
  bool pauth = true;
  bool pmu = false;
  bool operator==(const CpuFeatureSpec&) const = default;
};

/// Description of one machine. Validated by the command line: every limit above holds, ids are unique.
struct MachineSpec {
  std::string name;
  BootSpec boot;
  unsigned vcpu_count = 1;
  uint64_t memory_bytes = 256U << 20;
  CpuFeatureSpec cpu;
  GicChoice gic = GicChoice::kAuto;
  bool its = true;
  VcpuStateChoice pv_vcpu_state = VcpuStateChoice::kAuto;
  bool pv_time = true;
  ConsoleSpec console{.kind = ConsoleSpec::Kind::kStdio, .path = {}};
  std::optional<ConsoleSpec> hvc;
  std::vector<DiskSpec> disks;
  std::vector<NetSpec> nets;
  std::optional<VsockSpec> vsock;
  bool balloon = false;
  bool rng = true;
  bool operator==(const MachineSpec&) const = default;
};

}  // namespace tandem
