// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/backend/loop_timer.hpp"
#include "devices/backend/vsock_host.hpp"
#include "devices/bus/device_executor.hpp"
#include "devices/virtio_queue/virtio_device.hpp"
#include "devices/virtio_vsock/vsock_stream.hpp"
#include "vmm/lib/log/log.hpp"

namespace tandem::devices {

/// Socket device: byte streams between ports of the guest and sockets of the host.
///
/// Streams with something for the guest wait in a row and get one packet each in turn, so that one that is slow, or
/// whose reader has stopped, holds up none but itself. What it holds is bounded: kMaxStreams streams of at most
/// VsockStream::kBufferBytes each, and kMaxPendingResets answers to packets that belong to no stream; with more
/// of those to come, the transmit queue waits until the guest takes them.
///
/// A restored device has no streams. The guest hears of that by an event, and nothing else is delivered to it before it
/// has handled the event, so that it does not take a new stream for an old one.
/// Not modelled: SOCK_SEQPACKET, which is not offered, and datagrams; packets of both are answered by RST.
/// @spec  virtio 1.2, "Socket Device"
class VirtioVsock final : public VirtioDevice, private VsockClient {
 public:
  static constexpr uint64_t kFirstGuestCid = virtio_vsock::kFirstGuestCid;
  static constexpr size_t kMaxStreams = 2048;
  static constexpr size_t kMaxPendingResets = 256;
  /// Most packets in one direction before other devices have their turn.
  static constexpr unsigned kPacketsPerRun = 64;
  /// Where the ports of connections that come from the host start.
  static constexpr uint32_t kFirstHostPort = 1U << 30;
  /// How long delivery waits for the guest to handle the event after a restore.
  static constexpr uint64_t kEventTimeoutNs = 1'000'000'000;

  /// What a device touches; all but `event_timer` outlive it.
  struct Connections {
    DeviceExecutor& executor;
    VsockHost& host;
    std::unique_ptr<Timer> event_timer;
  };

  /// @pre `guest_cid` is that of a guest (`is_guest_cid`); the device outlives the event loop's last callback.
  VirtioVsock(std::string name, uint64_t guest_cid, Connections connections);
  ~VirtioVsock() override;

  [[nodiscard]] static bool is_guest_cid(uint64_t cid);
  /// How many streams there are, those included whose last bytes the host has not taken yet.
  [[nodiscard]] size_t stream_count() const { return streams_.size() + lingering_.size(); }

  [[nodiscard]] std::string_view name() const override { return name_; }
  Result<void> reset() override;
  Result<void> pause() override;
  Result<void> resume() override;
  Result<StateRecord> save() override;
  Result<void> restore(const StateRecord& record) override;

  [[nodiscard]] uint32_t device_id() const override;
  [[nodiscard]] uint64_t device_features() const override;
  [[nodiscard]] std::span<const uint16_t> queue_sizes() const override { return kQueueSizes; }
  void read_config(uint64_t offset, std::span<std::byte> out) override;
  void write_config(uint64_t offset, std::span<const std::byte> bytes) override;
  void activate(const VirtioActivation& activation) override;
  void notify(uint16_t queue) override;

 private:
  using Header = virtio_vsock::Header;
  static constexpr std::array<uint16_t, 3> kQueueSizes{128, 128, 16};

  /// A stream and its place in the event loop and in the row.
  struct Entry {
    Entry(VsockPorts ports, VsockStream::Origin origin, UniqueFd socket) : stream(ports, origin, std::move(socket)) {}
    VsockStream stream;
    EventLoop::Watch watch;  // after stream: ends before its socket is closed
    Events watched = Events::kNone;
    bool is_in_row = false;
  };

  // VsockClient
  void vsock_connected(UniqueFd socket, uint32_t guest_port) override;

  void transmit();
  bool transmit_next();
  void handle(const Header& header, const DescriptorChain& packet);
  void handle_for_stream(Entry& entry, const Header& header, const DescriptorChain& packet);
  bool apply(VsockStream& stream, const Header& header, const DescriptorChain& packet);
  void connect_to_host(const Header& request);
  void answer_with_reset(const Header& header);

  void receive();
  bool receive_next();
  std::optional<Header> next_packet(DescriptorChain& buffer);

  bool deliver_event();
  void handle_event_queue();
  void end_event_wait();
  [[nodiscard]] std::optional<unsigned> count_event_buffers();

  Entry* add_stream(VsockPorts ports, VsockStream::Origin origin, UniqueFd socket);
  void settle(Entry& entry);
  void update_watch(Entry& entry);
  void end_shut_down_stream(Entry& entry, const Header& header);
  void bury(Entry& entry);
  void bury_all();
  void purge_later();

  void run_later(bool& posted, void (VirtioVsock::*run)());
  void signal(uint16_t queue);
  void stop(std::string_view why);
  void note_mistake(std::string_view what);
  [[nodiscard]] bool is_running() const { return active_ && !paused_; }

  // Fixed configuration
  const std::string name_;
  // Connections
  DeviceExecutor& executor_;
  VsockHost& host_;
  std::unique_ptr<Timer> event_timer_;
  std::optional<VirtioActivation> active_;
  // Guest-visible state
  uint64_t guest_cid_;
  // Streams
  std::map<VsockPorts, std::unique_ptr<Entry>> streams_;
  std::vector<std::unique_ptr<Entry>> lingering_;  // known to the host's end only
  std::vector<std::unique_ptr<Entry>> buried_;     // until the event loop cannot be in one of their callbacks
  std::deque<Entry*> row_;                         // of streams with something for the guest
  std::deque<Header> resets_;                      // answers to packets of no stream
  uint32_t next_host_port_ = kFirstHostPort;
  // Book-keeping
  bool paused_ = false;
  bool event_due_ = false;      // the guest is to hear that its streams are gone
  bool event_pending_ = false;  // it was told, and has not handled it
  unsigned event_buffers_ = 0;  // that it had given when it was told
  bool receive_posted_ = false;
  bool transmit_posted_ = false;
  bool purge_posted_ = false;
  log::RateLimit mistakes_;
  log::RateLimit refusals_;
};

}  // namespace tandem::devices
