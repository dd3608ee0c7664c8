// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/backend/disk_file.hpp"
#include "devices/bus/device_executor.hpp"
#include "devices/bus/doorbell_host.hpp"
#include "devices/bus/fdt_node.hpp"
#include "devices/bus/irq_line.hpp"
#include "devices/bus/mmio_bus.hpp"
#include "vmm/lib/guest_memory/guest_memory.hpp"
#include "vmm/lib/guest_memory/guest_ram.hpp"
#include "vmm/lib/state/component.hpp"
#include "vmm/lib/state/saved_components.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"
#include "vmm/machine/machine_spec.hpp"
#include "vmm/machine/machine_status.hpp"
#include "vmm/vcpu/exit_dispatcher.hpp"

namespace tandem::devices {
class GpioPl061;
class RtcPl031;
class TappedBackend;
class VirtioBalloon;
class VirtioNet;
}  // namespace tandem::devices

namespace tandem {

/// The devices of one machine: which there are, at which address, on which interrupt.
class DeviceSet {
 public:
  /// What devices touch of the machine; all outlive the set.
  struct Host {
    EventLoop& loop;
    devices::IrqSink& irqs;
    devices::DoorbellHost& doorbells;
    const GuestMemory& memory;
    GuestRam& ram;
    MachineEvents& events;
    /// `kLater`: the disks belong to the machine that arrives here, whose source has them until `take_disks`.
    devices::DiskFile::Locking disk_locking = devices::DiskFile::Locking::kNow;
  };

  /// Opens what the spec names, builds and places the devices.
  /// @pre     the loop is not running.
  /// @errors  as the host's files, interfaces and terminals are; nothing is left behind.
  static Result<std::unique_ptr<DeviceSet>> create(const MachineSpec& spec, const Host& host);
  DeviceSet(const DeviceSet&) = delete;
  DeviceSet& operator=(const DeviceSet&) = delete;
  /// @pre the loop is not running.
  ~DeviceSet();

  [[nodiscard]] devices::MmioBus& bus() { return bus_; }
  /// Interrupts that `IrqSink::pulse` will be called with.
  [[nodiscard]] std::vector<devices::Intid> edge_interrupts() const;

  /// Memory of a device's own that the guest may only read.
  struct ReadOnlyMemory {
    GuestRange range;
    std::span<std::byte> host;  ///< As long as `range`; stays where it is for the set's life.
  };
  [[nodiscard]] std::vector<ReadOnlyMemory> read_only_memory() const;
  /// Adds the node of every device to `root`.
  void describe(devices::FdtNode& root) const;

  /// Component's calls, for every device. @pre every vCPU is parked.
  Result<void> pause();
  Result<void> resume();
  Result<void> reset();

  /// Adds the state of every device to `state`. @pre paused.
  Result<void> save(MachineState& state);
  /// Gives every device its state. @pre paused.
  Result<void> restore(SavedComponents& saved);

  /// Locks all disks, or none. What is locked already stays so.
  /// @errors  Errc::kBusy: somebody else has one.
  Result<void> take_disks();
  /// Unlocks all disks. @pre paused.
  void release_disks();
  [[nodiscard]] bool has_writable_disk() const;
  /// Whether there is a disk to be written to, and somebody else has locked all of those.
  [[nodiscard]] bool are_disks_locked_elsewhere() const;
  /// Tells the networks that the guest is here now.
  void announce();

  /// Has the guest's clock chip go on from the time at which it was paused, or saved. @pre paused.
  void go_on_from_pause();

  /// Tells the guest that it is a copy: others may go on from the same state.
  /// @pre every vCPU is parked, and the interrupt controller restored.
  Result<void> renew_generation();

  // What the host does to devices, and sees of them. @thread any.

  /// Presses the power key, and lets it go a little later.
  void press_power_key();
  /// Asks the guest to give up `bytes` of its memory in all.
  /// @errors  Errc::kUnsupported: there is no balloon. Errc::kOutOfRange: more than the guest has.
  Result<void> set_balloon_target(uint64_t bytes);
  /// Nothing without a balloon.
  [[nodiscard]] std::optional<BalloonStatus> balloon() const;
  [[nodiscard]] const std::vector<BackEndStatus>& back_ends() const { return back_ends_; }
  /// Whether a client could be attached to a console.
  /// @param device  "uart0" or "hvc0".
  /// @errors  Errc::kNotFound: there is no such console. Errc::kBusy: another client has it.
  Result<void> check_console(std::string_view device) const;
  /// Attaches a client, soon; one that came too late is disconnected. @pre check_console(device).
  /// @param client  a stream socket with O_NONBLOCK.
  void attach_console(std::string_view device, UniqueFd client);

 private:
  /// A device and what it owns on the host's side, under one mutex.
  struct Parts;
  /// Parts of a device behind a virtio transport.
  struct VirtioParts;
  struct VmGenIdParts;

  /// Adds a device's nodes to the root.
  using Describe = std::function<void(devices::FdtNode& root)>;

  /// How the machine reaches a device, whatever its type.
  struct Attached {
    devices::DeviceExecutor* executor;
    Component* component;
    Describe describe;
  };

  explicit DeviceSet(const Host& host);
  Result<void> add_platform_devices(const MachineSpec& spec);
  Result<void> add_uart(const ConsoleSpec& console);
  Result<void> add_rtc();
  Result<void> add_power_key();
  Result<void> add_pvpanic();
  Result<void> add_vmgenid();
  Result<void> add_virtio_devices(const MachineSpec& spec);
  Result<void> add_disk(const DiskSpec& disk);
  Result<void> add_net(const NetSpec& net);
  Result<void> add_vsock(const VsockSpec& vsock);
  Result<void> add_console(const ConsoleSpec& console);
  /// Opens the host's end of the console `device`.
  Result<std::unique_ptr<devices::TappedBackend>> open_console(const ConsoleSpec& console, const std::string& device,
                                                               devices::DeviceExecutor& executor);
  Result<void> add_rng();
  Result<void> add_balloon();

  /// Puts `device` on the bus, and into the list. @pre `parts` own `device`.
  template <typename Device>
  Result<void> attach(std::unique_ptr<Parts> parts, Device& device, GuestRange window, Describe describe);
  /// Puts the device in `parts` behind a transport in the next free slot.
  Result<void> attach_virtio(std::unique_ptr<VirtioParts> parts);
  /// Calls `visit` with each device, its mutex held.
  Result<void> for_each_component(const std::function<Result<void>(Component&)>& visit);

  Host host_;
  devices::MmioBus bus_;
  std::vector<std::unique_ptr<Parts>> parts_;
  std::vector<Attached> attached_;
  VmGenIdParts* vmgenid_ = nullptr;                                             // of parts_
  std::vector<const devices::DiskFile*> disks_;                                 // of parts_
  std::vector<std::pair<devices::DeviceExecutor*, devices::VirtioNet*>> nets_;  // of parts_
  unsigned virtio_slots_used_ = 0;
  std::vector<BackEndStatus> back_ends_;

  /// A device that the host does something to.
  template <typename Device>
  struct Reached {
    devices::DeviceExecutor* executor;
    Device* device;
  };
  std::optional<Reached<devices::RtcPl031>> clock_;
  std::optional<Reached<devices::GpioPl061>> power_key_;
  std::optional<Reached<devices::VirtioBalloon>> balloon_;
  std::map<std::string, Reached<devices::TappedBackend>, std::less<>> consoles_;  // by device
};

}  // namespace tandem
