// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "devices/virtio_queue/split_queue.hpp"
#include "devices/virtio_vsock/virtio_vsock_regs.hpp"
#include "devices/virtio_vsock/vsock_backlog.hpp"
#include "vmm/lib/event_loop/event_loop.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::devices {

/// What tells the streams of one guest apart.
struct VsockPorts {
  uint32_t host = 0;
  uint32_t guest = 0;
  auto operator<=>(const VsockPorts&) const = default;
};

/// One stream between a port of the guest and a stream socket of the host.
///
/// Bytes from the host stay in its socket until the guest has both room (credit) and a buffer, and go straight into that
/// buffer. Bytes from the guest go straight to the socket; what it does not take waits here, and is never more than the
/// guest was told that it may send, kBufferBytes.
/// @thread  as the device it belongs to.
/// @spec    virtio 1.2, "Socket Device", "Device Operation"
class VsockStream {
 public:
  using Header = virtio_vsock::Header;

  /// What the guest may send before the host's end has taken it.
  static constexpr uint32_t kBufferBytes = 64U << 10;
  /// Most data in one packet to the guest.
  static constexpr uint32_t kMaxPacketBytes = 64U << 10;

  enum class Origin : uint8_t { kHost, kGuest };
  enum class Stage : uint8_t {
    kConnecting,  ///< The host's end asked; the guest has not answered.
    kOpen,
    kResetting,  ///< Over, and the guest is still to be told.
    kLingering,  ///< Over for the guest; the host's end has not taken everything yet.
    kDone,       ///< Nothing is left to do.
  };

  /// @param socket  the host's end, with O_NONBLOCK.
  VsockStream(VsockPorts ports, Origin origin, UniqueFd socket);

  [[nodiscard]] const VsockPorts& ports() const { return ports_; }
  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] int socket() const { return socket_.get(); }
  /// What is to be waited for at the socket.
  [[nodiscard]] Events wanted() const;

  // What the guest does

  /// Takes note of the room that a packet of the guest tells of.
  void note_credit(const Header& packet);
  /// The guest accepts the host's connection.
  void accept();
  /// Passes on the data of a packet. @return false when the guest may not send it.
  [[nodiscard]] bool take_data(const DescriptorChain& packet, uint32_t size_bytes);
  /// The guest sends no more, receives no more, or both; flags of kOpShutdown.
  void shut_down(uint32_t flags);
  [[nodiscard]] bool is_shut_down_by_guest() const { return guest_shutdown_ == virtio_vsock::kShutdownBoth; }
  void ask_for_credit() { due_ |= 1U << virtio_vsock::kOpCreditUpdate; }

  // What the host's end does

  void host_ready(Events events);

  // What the guest is to get

  [[nodiscard]] bool has_packet() const;
  /// Makes the next packet; its data, if any, is in `buffer` behind where the header goes. The caller adds the CIDs.
  /// @pre `buffer` has room for more than a header.
  [[nodiscard]] std::optional<Header> next_packet(DescriptorChain& buffer);

  // How it ends

  /// Breaks the stream off, for both ends.
  void reset();
  /// The guest knows that it is over. The host's end still gets what is on its way.
  void leave_to_host();
  /// Ends everything, for the host's end too; the guest is not told.
  void abandon();

 private:
  [[nodiscard]] uint32_t peer_room() const;
  [[nodiscard]] bool can_receive() const;
  [[nodiscard]] bool wants_credit() const;
  [[nodiscard]] bool take_due(uint16_t op);
  [[nodiscard]] Header packet(uint16_t op, uint32_t size_bytes = 0);
  [[nodiscard]] uint32_t receive_into(DescriptorChain& buffer);
  void on_host_end();

  void flush();
  [[nodiscard]] size_t send_from(const DescriptorChain& packet, uint32_t size_bytes);
  [[nodiscard]] size_t sent(ssize_t result);
  void on_host_deaf();
  void tell_shutdown(uint32_t flags);
  void pass_on_end();

  // Fixed configuration
  const VsockPorts ports_;
  // Connections
  UniqueFd socket_;
  // State
  Stage stage_;
  unsigned due_ = 0;             // by op: packets without data that the guest is to get
  uint32_t guest_shutdown_ = 0;  // what the guest does no more
  uint32_t host_shutdown_ = 0;   // what the host's end does no more
  bool may_receive_ = false;     // the socket may have data, or its end
  bool is_waiting_ = false;      // connecting, and the host's end was seen to be there
  // Bytes from the guest
  VsockBacklog backlog_;
  uint32_t rx_cnt_ = 0;        // come
  uint32_t fwd_cnt_ = 0;       // taken by the host's end
  uint32_t told_fwd_cnt_ = 0;  // as the guest knows it
  // Bytes to the guest
  uint32_t tx_cnt_ = 0;
  uint32_t peer_fwd_cnt_ = 0;
  uint32_t peer_buf_alloc_ = 0;
  bool credit_asked_ = false;
};

}  // namespace tandem::devices
