// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_net/virtio_net.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "devices/virtio_net/tx_header.hpp"
#include "devices/virtio_net/virtio_net_regs.hpp"
#include "devices/virtio_net/virtio_net_state.hpp"
#include "devices/virtio_queue/config_space.hpp"
#include "vmm/lib/bits/bits.hpp"
#include "vmm/lib/log/log.hpp"

namespace tandem::devices {

using namespace virtio_net;

namespace {

constexpr size_t kMaxPacketBytes = sizeof(Header) + kMaxFrameBytes;

/// Most pieces of the driver's buffer in one system call, beside one of our own.
constexpr size_t kMaxPieces = IOV_MAX - 1;

/// Shortest frame of Ethernet, without its checksum.
constexpr size_t kMinFrameBytes = 60;

/// The specification's least MTU.
constexpr uint16_t kMinMtu = 68;

iovec piece_of(std::span<const std::byte> bytes) {
  return {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};  // writev does not write
}
iovec piece_of(std::span<std::byte> bytes) { return {.iov_base = bytes.data(), .iov_len = bytes.size()}; }

uint64_t features_of(NetOffloads offloads) {
  if (!offloads.checksum) {
    return 0;
  }
  return kFCsum | kFGuestCsum | (offloads.tso4 ? kFHostTso4 | kFGuestTso4 : 0) |
         (offloads.tso6 ? kFHostTso6 | kFGuestTso6 : 0) | (offloads.ecn ? kFHostEcn | kFGuestEcn : 0) |
         (offloads.uso ? kFHostUso | kFGuestUso4 | kFGuestUso6 : 0);
}

/// A broadcast request for the protocol address of `mac`, padded to the shortest frame that Ethernet has.
std::array<std::byte, sizeof(Header) + kMinFrameBytes> rarp_request(const MacAddress& mac) {
  constexpr std::array<uint8_t, 8> kRequestForEthernet{0, 1, 8, 0, 6, 4, 0, 3};  // htype, ptype, hlen, plen, op
  std::array<std::byte, sizeof(Header) + kMinFrameBytes> packet{};
  size_t next = sizeof(Header);
  const auto append = [&](std::span<const uint8_t> bytes) {
    std::memcpy(&packet[next], bytes.data(), bytes.size());
    next += bytes.size();
  };
  append(std::array<uint8_t, 6>{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF});
  append(mac);
  append(std::array<uint8_t, 2>{0x80, 0x35});  // EtherType
  append(kRequestForEthernet);
  append(mac);  // sender
  append(std::array<uint8_t, 4>{});
  append(mac);  // target
  return packet;
}

/// What the driver takes over from the host.
NetOffloads receive_offloads(uint64_t features) {
  const auto has = [features](uint64_t feature) { return (features & feature) == feature; };
  if (!has(kFGuestCsum)) {
    return {};
  }
  const bool tso4 = has(kFGuestTso4);
  const bool tso6 = has(kFGuestTso6);
  return {.checksum = true,
          .tso4 = tso4,
          .tso6 = tso6,
          .ecn = has(kFGuestEcn) && (tso4 || tso6),
          .uso = has(kFGuestUso4 | kFGuestUso6)};
}

}  // namespace

VirtioNet::VirtioNet(std::string name, const MacAddress& mac, DeviceExecutor& executor, NetBackend& backend)
    : name_(std::move(name)),
      executor_(executor),
      backend_(backend),
      state_{.mac = mac, .status = kStatusLinkUp, .mtu = backend.mtu()},
      store_(std::make_unique_for_overwrite<std::byte[]>(kMaxPacketBytes)) {
  backend_.set_client(this);
}

VirtioNet::~VirtioNet() {
  backend_.wait_for(Events::kNone);
  backend_.set_client(nullptr);
}

// Life cycle

Result<void> VirtioNet::reset() {
  active_.reset();
  held_bytes_ = 0;
  is_starved_ = false;
  is_blocked_ = false;
  state_.status = is_gone_ ? 0 : kStatusLinkUp;
  update_wait();
  return {};
}

Result<void> VirtioNet::pause() {
  paused_ = true;
  update_wait();
  return {};
}

Result<void> VirtioNet::resume() {
  paused_ = false;
  set_link(!is_gone_);  // after a restore, what the link was elsewhere
  update_wait();
  return {};
}

Result<StateRecord> VirtioNet::save() {
  const auto& [mac, status, mtu] = state_;
  return save_state(VirtioNetStateV1{.mac = mac, .status = status, .mtu = mtu});
}

Result<void> VirtioNet::restore(const StateRecord& record) {
  const auto [mac, status, mtu] = TANDEM_TRY(load_state<VirtioNetStateV1>(record));
  if ((mac[0] & 1) != 0 || (status & ~kStatusLinkUp) != 0) {
    return fail(Errc::kCorrupt, "{}: impossible MAC address or status", name_);
  }
  state_ = {.mac = mac, .status = status, .mtu = mtu};
  return {};
}

uint32_t VirtioNet::device_id() const { return kDeviceId; }

uint64_t VirtioNet::device_features() const {
  return kFMac | kFStatus | kFMrgRxbuf | (state_.mtu >= kMinMtu ? kFMtu : 0) | features_of(backend_.offloads());
}

void VirtioNet::read_config(uint64_t offset, std::span<std::byte> out) {
  std::array<std::byte, kConfigBytes> config{};
  std::memcpy(&config[kMac], state_.mac.data(), state_.mac.size());
  store_le(std::span(config).subspan(kStatus), state_.status);
  store_le(std::span(config).subspan(kMaxVirtqueuePairs), uint16_t{1});
  store_le(std::span(config).subspan(kMtu), state_.mtu);
  copy_config(config, offset, out);
}

void VirtioNet::write_config(uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) {}

void VirtioNet::activate(const VirtioActivation& activation) {
  active_.emplace(activation);
  if (const auto done = backend_.start(receive_offloads(activation.features)); !done) {
    if (const uint64_t count = start_failures_.count(); count != 0) {
      log::warn("{}: {} (time {})", name_, done.error().message(), count);
    }
  }
}

void VirtioNet::notify(uint16_t queue) {
  if (queue == kReceiveQueue) {
    receive();
  } else if (queue == kTransmitQueue) {
    transmit();
  }
}

void VirtioNet::net_ready(Events events) {
  if (has(events, Events::kWritable)) {
    is_blocked_ = false;
    transmit();
  }
  if (has(events, Events::kReadable)) {
    receive();
  }
  update_wait();
}

// Receiving

void VirtioNet::receive() {
  if (!is_running() || is_gone_) {
    return;
  }
  active_->queues[kReceiveQueue].disable_notifications();
  for (unsigned count = 0; count < kPacketsPerRun && receive_packet(); ++count) {
  }
  if (active_) {
    signal(kReceiveQueue);
  }
  update_wait();
}

/// Passes one packet to the driver. @return false when that has to wait.
bool VirtioNet::receive_packet() {
  if (!take_receive_buffer()) {
    return false;
  }
  if (held_bytes_ != 0) {
    return deliver({.bytes = std::exchange(held_bytes_, 0), .direct_bytes = 0});
  }
  const auto arrival = receive_into(buffers_.front().chain);
  if (arrival) {
    return deliver(*arrival);
  }
  put_back_buffers();
  if (arrival.error() == NetStall::kDropped) {
    ++counters_.receive_drops;
    return true;
  }
  if (arrival.error() == NetStall::kGone) {
    is_gone_ = true;
    set_link(false);
  }
  return false;
}

/// Adds a buffer to those of the packet. @return false when there is none, or the device stopped.
bool VirtioNet::take_receive_buffer() {
  auto chain = active_->queues[kReceiveQueue].pop_or_rearm();
  if (!chain) {
    stop(text_of(chain.error()));
    return false;
  }
  is_starved_ = !*chain;
  if (is_starved_) {
    return false;
  }
  buffers_.push_back({.chain = *std::move(*chain), .written_bytes = 0});
  if (buffers_.back().chain.writable_size() < sizeof(Header)) {
    stop("receive buffer that holds no header");
    return false;
  }
  return true;
}

/// Receives a packet into the driver's first buffer, and the rest of it into `store_` where it belongs.
std::expected<VirtioNet::Arrival, NetStall> VirtioNet::receive_into(DescriptorChain& first) {
  pieces_.clear();
  size_t direct_bytes = 0;
  for (const std::span<std::byte> piece : first.writable().first(std::min(first.writable().size(), kMaxPieces))) {
    const auto used = piece.first(std::min(piece.size(), kMaxPacketBytes - direct_bytes));
    direct_bytes += used.size();
    pieces_.push_back(piece_of(used));
  }
  const std::span<std::byte> store(store_.get(), kMaxPacketBytes);
  pieces_.push_back(piece_of(store.subspan(direct_bytes)));
  const NetTransfer received = backend_.receive(pieces_);
  if (!received) {
    return std::unexpected(received.error());
  }
  if (*received < sizeof(Header)) {
    return std::unexpected(NetStall::kDropped);
  }
  return Arrival{.bytes = *received, .direct_bytes = std::min(direct_bytes, *received)};
}

/// Gathers buffers for the packet, and returns them filled. @return false when the packet has to wait for buffers.
bool VirtioNet::deliver(Arrival arrival) {
  SplitQueue& queue = active_->queues[kReceiveQueue];
  uint64_t room_bytes = buffers_.front().chain.writable_size();
  while (room_bytes < arrival.bytes && has_feature(kFMrgRxbuf) && take_receive_buffer()) {
    room_bytes += buffers_.back().chain.writable_size();
  }
  if (!active_) {
    return false;
  }
  if (room_bytes >= arrival.bytes) {
    fill_buffers(arrival);
    queue.push_together(buffers_);
    buffers_.clear();
    return true;
  }
  // A driver whose whole ring is too small would wait forever.
  if (is_starved_ && buffers_.size() < queue.state().size) {
    hold(arrival);
    put_back_buffers();
    return false;
  }
  ++counters_.receive_drops;
  put_back_buffers();
  return true;
}

void VirtioNet::fill_buffers(Arrival arrival) {
  const std::span<const std::byte> packet(store_.get(), arrival.bytes);
  SplitQueue::Filled& first = buffers_.front();
  size_t done = arrival.direct_bytes;
  done += first.chain.write(done, packet.subspan(done));
  first.written_bytes = static_cast<uint32_t>(done);
  for (SplitQueue::Filled& next : std::span(buffers_).subspan(1)) {
    next.written_bytes = static_cast<uint32_t>(next.chain.write(0, packet.subspan(done)));
    done += next.written_bytes;
  }
  const auto buffer_count = static_cast<uint16_t>(buffers_.size());
  first.chain.write(kNumBuffers, std::as_bytes(std::span(&buffer_count, 1)));
  if (!has_feature(kFGuestCsum)) {
    constexpr uint8_t kNoFlags = 0;  // a tap says of checksums that it has checked them, whether it was asked or not
    first.chain.write(kFlags, std::as_bytes(std::span(&kNoFlags, 1)));
  }
  ++counters_.received_packets;
  counters_.received_bytes += arrival.bytes - sizeof(Header);
}

/// Keeps the packet, all of it in `store_`, for when the driver has given more buffers.
void VirtioNet::hold(Arrival arrival) {
  size_t done = 0;
  for (const std::span<std::byte> piece : buffers_.front().chain.writable()) {
    const size_t size_bytes = std::min(piece.size(), arrival.direct_bytes - done);
    std::memcpy(store_.get() + done, piece.data(), size_bytes);
    done += size_bytes;
  }
  held_bytes_ = arrival.bytes;
}

void VirtioNet::put_back_buffers() {
  while (!buffers_.empty()) {
    active_->queues[kReceiveQueue].undo_pop(std::move(buffers_.back().chain));
    buffers_.pop_back();
  }
}

// Sending

void VirtioNet::transmit() {
  if (!is_running() || is_blocked_ || posted_) {
    return;
  }
  active_->queues[kTransmitQueue].disable_notifications();
  Step step = Step::kDone;
  for (unsigned count = 0; step == Step::kDone && count < kPacketsPerRun; ++count) {
    step = transmit_next();
  }
  if (!active_) {
    return;
  }
  signal(kTransmitQueue);
  is_blocked_ = step == Step::kBlocked;
  if (step == Step::kDone) {
    transmit_later();
  }
  update_wait();
}

VirtioNet::Step VirtioNet::transmit_next() {
  SplitQueue& queue = active_->queues[kTransmitQueue];
  auto packet = queue.pop_or_rearm();
  if (!packet) {
    stop(text_of(packet.error()));
    return Step::kIdle;
  }
  if (!*packet) {
    return Step::kIdle;
  }
  const NetTransfer sent = send(**packet);
  if (sent) {
    ++counters_.sent_packets;
    counters_.sent_bytes += *sent - sizeof(Header);
  } else if (sent.error() == NetStall::kWouldBlock) {
    queue.undo_pop(*std::move(*packet));
    return Step::kBlocked;
  } else {
    ++counters_.send_drops;
  }
  queue.push(*std::move(*packet), 0);
  return Step::kDone;
}

NetTransfer VirtioNet::send(const DescriptorChain& packet) {
  auto header = checked_tx_header(packet, active_->features);
  if (!header || is_gone_ || packet.readable().size() > kMaxPieces) {
    return std::unexpected(NetStall::kDropped);
  }
  pieces_.clear();
  pieces_.push_back(piece_of(std::as_writable_bytes(std::span(&*header, 1))));
  size_t to_skip = sizeof(Header);
  for (const std::span<const std::byte> piece : packet.readable()) {
    const size_t skipped = std::min(to_skip, piece.size());
    to_skip -= skipped;
    if (skipped < piece.size()) {
      pieces_.push_back(piece_of(piece.subspan(skipped)));
    }
  }
  const NetTransfer sent = backend_.send(pieces_);
  if (!sent && sent.error() == NetStall::kGone) {
    is_gone_ = true;
    set_link(false);
  }
  return sent;
}

void VirtioNet::announce() {
  auto packet = rarp_request(state_.mac);
  const iovec piece = piece_of(std::span<std::byte>(packet));
  if (!is_gone_ && !backend_.send(std::span(&piece, 1))) {
    log::debug("{}: its address could not be announced", name_);
  }
}

void VirtioNet::transmit_later() {
  posted_ = true;
  executor_.post([this] {
    posted_ = false;
    transmit();
  });
}

// Both

/// The only caller of `wait_for`: what is waited for follows from the state.
void VirtioNet::update_wait() {
  const bool is_waiting = is_running() && !is_gone_;
  const unsigned readable = is_waiting && !is_starved_ ? 1 : 0;
  const unsigned writable = is_waiting && is_blocked_ ? 2 : 0;
  static_assert(static_cast<unsigned>(Events::kReadable) == 1 && static_cast<unsigned>(Events::kWritable) == 2);
  backend_.wait_for(static_cast<Events>(readable | writable));
}

void VirtioNet::set_link(bool up) {
  const uint16_t status = up ? kStatusLinkUp : 0;
  if (status == state_.status) {
    return;
  }
  state_.status = status;
  if (!up) {
    log::warn("{}: the host's interface is gone", name_);
  }
  if (active_ && has_feature(kFStatus)) {
    active_->transport.notify_config();
  }
}

void VirtioNet::signal(uint16_t queue) {
  if (active_->queues[queue].should_notify()) {
    active_->transport.notify_used(queue);
  }
}

/// The device does no more until it is reset.
void VirtioNet::stop(std::string_view why) {
  put_back_buffers();
  active_->transport.set_needs_reset(why);
  active_.reset();
  held_bytes_ = 0;
  update_wait();
}

}  // namespace tandem::devices
