// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/guest_vsock.hpp"

#include <cstring>
#include <vector>

namespace tandem::devices {

using namespace virtio_vsock;

void GuestVsock::activate(uint64_t features) {
  receive_buffers_.clear();
  transmit_buffers_.clear();
  event_buffers_.clear();
  rig_.activate(device_, features);
  const auto fill = [this](std::deque<GuestAddr>& free, uint64_t size_bytes) {
    while (free.size() < VirtioRig::kQueueSize) {
      free.push_back(rig_.ram().allocate(size_bytes));
    }
  };
  fill(free_receive_, kReceiveBufferBytes);
  fill(free_transmit_, kHeaderBytes + kMostDataBytes);
}

void GuestVsock::give_buffers(size_t count) {
  for (; count != 0 && !free_receive_.empty(); --count) {
    const GuestAddr addr = free_receive_.front();
    free_receive_.pop_front();
    const auto chain = rig_.driver(kReceiveQueue).chain().piece(addr.value(), kReceiveBufferBytes, kDescWrite).submit();
    receive_buffers_.emplace(chain.head, addr);
  }
  device_.notify(kReceiveQueue);
}

void GuestVsock::give_event_buffers(size_t count) {
  for (; count != 0; --count) {
    const auto chain = rig_.driver(kEventQueue).chain().writable(sizeof(Event)).submit();
    event_buffers_.emplace(chain.head, chain.writable.at(0).base());
  }
  device_.notify(kEventQueue);
}

Header GuestVsock::header(uint16_t op, uint32_t guest_port, uint32_t host_port) {
  return {.src_cid = kCid,
          .dst_cid = kHostCid,
          .src_port = guest_port,
          .dst_port = host_port,
          .len = 0,
          .type = kTypeStream,
          .op = op,
          .flags = 0,
          .buf_alloc = kBufferBytes,
          .fwd_cnt = 0};
}

void GuestVsock::send(const Header& header, std::string_view data) {
  std::vector<std::byte> bytes(kHeaderBytes + data.size());
  std::memcpy(bytes.data(), &header, kHeaderBytes);
  if (!data.empty()) {
    std::memcpy(bytes.data() + kHeaderBytes, data.data(), data.size());
  }
  send_bytes(bytes);
}

void GuestVsock::send_bytes(std::span<const std::byte> bytes) {
  take_back_transmitted();
  TANDEM_ASSERT(!free_transmit_.empty() && bytes.size() <= kHeaderBytes + kMostDataBytes,
                "the test sends what the driver can hold");
  const GuestAddr addr = free_transmit_.front();
  free_transmit_.pop_front();
  rig_.ram().write(addr, bytes);
  const auto chain =
      rig_.driver(kTransmitQueue).chain().piece(addr.value(), static_cast<uint32_t>(bytes.size()), 0).submit();
  transmit_buffers_.emplace(chain.head, addr);
  device_.notify(kTransmitQueue);
}

void GuestVsock::send(uint16_t op, uint32_t guest_port, uint32_t host_port, uint32_t flags) {
  Header packet = header(op, guest_port, host_port);
  packet.flags = flags;
  packet.fwd_cnt = fwd_cnt_[guest_port];
  send(packet);
}

void GuestVsock::send_data(uint32_t guest_port, uint32_t host_port, std::string_view data) {
  Header packet = header(kOpRw, guest_port, host_port);
  packet.len = static_cast<uint32_t>(data.size());
  packet.fwd_cnt = fwd_cnt_[guest_port];
  send(packet, data);
}

std::optional<VsockPacket> GuestVsock::next() {
  const auto used = rig_.driver(kReceiveQueue).take_used();
  if (!used) {
    return std::nullopt;
  }
  const auto buffer = receive_buffers_.extract(used->head);
  const auto bytes = rig_.ram().read(buffer.mapped(), used->len);
  VsockPacket packet;
  std::memcpy(&packet.header, bytes.data(), kHeaderBytes);
  packet.data.assign(reinterpret_cast<const char*>(bytes.data()) + kHeaderBytes, bytes.size() - kHeaderBytes);
  free_receive_.push_back(buffer.mapped());
  if (refilling_) {
    give_buffers(1);
  }
  return packet;
}

std::optional<uint32_t> GuestVsock::next_event() {
  const auto used = rig_.driver(kEventQueue).take_used();
  if (!used || used->len != sizeof(Event)) {
    return std::nullopt;
  }
  return rig_.ram().memory().read_value<uint32_t>(event_buffers_.extract(used->head).mapped()).value();
}

void GuestVsock::take_back_transmitted() {
  while (const auto used = rig_.driver(kTransmitQueue).take_used()) {
    free_transmit_.push_back(transmit_buffers_.extract(used->head).mapped());
  }
}

}  // namespace tandem::devices
