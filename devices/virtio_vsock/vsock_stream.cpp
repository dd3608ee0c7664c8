// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_vsock/vsock_stream.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

namespace tandem::devices {

using namespace virtio_vsock;

namespace {

/// Most pieces of the driver's buffer in one system call; what lies beyond goes another way or another time.
constexpr size_t kMaxPieces = 64;

/// The guest is told of room when there is this much more of it.
constexpr uint32_t kCreditStepBytes = VsockStream::kBufferBytes / 4;

bool is_hung_up(int fd) {
  pollfd entry{.fd = fd, .events = 0, .revents = 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0;
}

bool would_block() { return errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM; }

/// `size_bytes` of `pieces` behind the header, as system calls take them. @return how many places are used.
template <typename Piece>
size_t places_behind_header(std::span<const Piece> pieces, size_t size_bytes, std::span<iovec, kMaxPieces> places) {
  size_t to_skip = kHeaderBytes;
  size_t count = 0;
  for (const Piece& piece : pieces) {
    const size_t skipped = std::min(to_skip, piece.size());
    to_skip -= skipped;
    const auto run = piece.subspan(skipped, std::min(piece.size() - skipped, size_bytes));
    if (run.empty()) {
      continue;
    }
    if (count == places.size()) {
      break;
    }
    size_bytes -= run.size();
    places[count++] = {.iov_base = const_cast<std::byte*>(run.data()), .iov_len = run.size()};  // sendmsg only reads
  }
  return count;
}

}  // namespace

VsockStream::VsockStream(VsockPorts ports, Origin origin, UniqueFd socket)
    : ports_(ports),
      socket_(std::move(socket)),
      stage_(origin == Origin::kHost ? Stage::kConnecting : Stage::kOpen),
      due_(1U << (origin == Origin::kHost ? kOpRequest : kOpResponse)) {}

Events VsockStream::wanted() const {
  const bool is_open = stage_ == Stage::kOpen;
  const bool hears =
      is_open && !may_receive_ && ((host_shutdown_ & kShutdownSend) | (guest_shutdown_ & kShutdownReceive)) == 0;
  const bool waits = stage_ == Stage::kConnecting && !is_waiting_;
  const bool writes = (is_open || stage_ == Stage::kLingering) && !backlog_.is_empty();
  static_assert(static_cast<unsigned>(Events::kReadable) == 1 && static_cast<unsigned>(Events::kWritable) == 2);
  return static_cast<Events>((hears || waits ? 1U : 0U) | (writes ? 2U : 0U));
}

// What the guest does

void VsockStream::note_credit(const Header& packet) {
  peer_buf_alloc_ = packet.buf_alloc;
  peer_fwd_cnt_ = packet.fwd_cnt;
  credit_asked_ = credit_asked_ && peer_room() == 0;
}

void VsockStream::accept() {
  const std::string line = "OK " + std::to_string(ports_.host) + "\n";
  // The first bytes of a socket: there is room, unless the client has gone.
  if (::send(socket_.get(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL) !=
      static_cast<ssize_t>(line.size())) {
    reset();
    return;
  }
  stage_ = Stage::kOpen;
}

bool VsockStream::take_data(const DescriptorChain& packet, uint32_t size_bytes) {
  const uint32_t room_bytes = kBufferBytes - (rx_cnt_ - fwd_cnt_);
  if (stage_ != Stage::kOpen || (guest_shutdown_ & kShutdownSend) != 0 || size_bytes > room_bytes) {
    return false;
  }
  rx_cnt_ += size_bytes;
  const size_t sent_bytes = backlog_.is_empty() ? send_from(packet, size_bytes) : 0;
  if ((host_shutdown_ & kShutdownReceive) != 0) {
    fwd_cnt_ = rx_cnt_;  // no one is there to take it
    return true;
  }
  fwd_cnt_ += static_cast<uint32_t>(sent_bytes);
  if (sent_bytes < size_bytes) {
    const size_t copied = packet.read(kHeaderBytes + sent_bytes, backlog_.extend(size_bytes - sent_bytes));
    TANDEM_ASSERT(copied == size_bytes - sent_bytes, "the caller has checked the packet's length");
  }
  return true;
}

void VsockStream::shut_down(uint32_t flags) {
  guest_shutdown_ |= flags & kShutdownBoth;
  if ((guest_shutdown_ & kShutdownReceive) != 0) {
    may_receive_ = false;
    ::shutdown(socket_.get(), SHUT_RD);
  }
  pass_on_end();
}

/// Tells the host's end that no more comes, when all has gone.
void VsockStream::pass_on_end() {
  if ((guest_shutdown_ & kShutdownSend) != 0 && backlog_.is_empty()) {
    ::shutdown(socket_.get(), SHUT_WR);
  }
}

// What the host's end does

void VsockStream::host_ready(Events events) {
  if (stage_ == Stage::kConnecting) {
    if (!is_hung_up(socket_.get())) {
      is_waiting_ = true;  // it has sent ahead, which is its right, or ended its input
    } else if (take_due(kOpRequest)) {
      stage_ = Stage::kDone;  // the guest has never heard of it
    } else {
      reset();
    }
    return;
  }
  if (stage_ == Stage::kOpen && has(events, Events::kReadable)) {
    may_receive_ = ((host_shutdown_ & kShutdownSend) | (guest_shutdown_ & kShutdownReceive)) == 0;
  }
  flush();
}

void VsockStream::flush() {
  if (backlog_.is_empty()) {
    return;
  }
  const std::span<const std::byte> bytes = backlog_.bytes();
  const size_t sent_bytes = sent(::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  fwd_cnt_ += static_cast<uint32_t>(sent_bytes);
  backlog_.drop_front(sent_bytes);
  pass_on_end();
  if (backlog_.is_empty() && stage_ == Stage::kLingering) {
    stage_ = Stage::kDone;
  }
}

size_t VsockStream::send_from(const DescriptorChain& packet, uint32_t size_bytes) {
  if (size_bytes == 0 || (host_shutdown_ & kShutdownReceive) != 0) {
    return 0;
  }
  std::array<iovec, kMaxPieces> places;
  msghdr message{};
  message.msg_iov = places.data();
  message.msg_iovlen = places_behind_header(packet.readable(), size_bytes, std::span(places));
  return sent(::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

/// How many bytes a system call has sent that returned `result`.
size_t VsockStream::sent(ssize_t result) {
  if (result < 0 && !would_block()) {
    on_host_deaf();
  }
  return static_cast<size_t>(std::max<ssize_t>(result, 0));
}

/// The host's end takes no more: what waits for it is lost.
void VsockStream::on_host_deaf() {
  backlog_.clear();
  fwd_cnt_ = rx_cnt_;
  tell_shutdown(kShutdownReceive);
}

/// The host's end has sent its last byte.
void VsockStream::on_host_end() {
  may_receive_ = false;
  const bool is_gone = is_hung_up(socket_.get());
  if (is_gone) {
    on_host_deaf();
  }
  tell_shutdown(is_gone ? kShutdownBoth : kShutdownSend);
}

void VsockStream::tell_shutdown(uint32_t flags) {
  if ((host_shutdown_ | flags) != host_shutdown_) {
    host_shutdown_ |= flags;
    due_ |= 1U << kOpShutdown;
  }
}

// What the guest is to get

uint32_t VsockStream::peer_room() const {
  const uint32_t unread_bytes = tx_cnt_ - peer_fwd_cnt_;
  return unread_bytes < peer_buf_alloc_ ? peer_buf_alloc_ - unread_bytes : 0;
}

bool VsockStream::can_receive() const { return stage_ == Stage::kOpen && may_receive_ && peer_room() != 0; }

bool VsockStream::wants_credit() const {
  return stage_ == Stage::kOpen && may_receive_ && peer_room() == 0 && !credit_asked_;
}

bool VsockStream::has_packet() const {
  const bool has_news = fwd_cnt_ - told_fwd_cnt_ >= kCreditStepBytes;
  switch (stage_) {
    case Stage::kConnecting:
      return due_ != 0;
    case Stage::kOpen:
      return due_ != 0 || can_receive() || wants_credit() || has_news;
    case Stage::kResetting:
      return true;
    case Stage::kLingering:
    case Stage::kDone:
      return false;
  }
  TANDEM_UNREACHABLE("every stage returns above");
}

bool VsockStream::take_due(uint16_t op) {
  const bool is_due = (due_ & (1U << op)) != 0;
  due_ &= ~(1U << op);
  return is_due;
}

std::optional<Header> VsockStream::next_packet(DescriptorChain& buffer) {
  for (const uint16_t op : {kOpRequest, kOpResponse}) {
    if (stage_ != Stage::kResetting && take_due(op)) {
      return packet(op);
    }
  }
  if (can_receive()) {
    if (const uint32_t size_bytes = receive_into(buffer); size_bytes != 0) {
      return packet(kOpRw, size_bytes);
    }
  }
  if (stage_ == Stage::kResetting) {
    stage_ = Stage::kDone;
    return packet(kOpRst);
  }
  if (take_due(kOpShutdown)) {
    return packet(kOpShutdown);
  }
  if (wants_credit()) {
    credit_asked_ = true;
    return packet(kOpCreditRequest);
  }
  if (has_packet()) {
    return packet(kOpCreditUpdate);
  }
  return std::nullopt;
}

VsockStream::Header VsockStream::packet(uint16_t op, uint32_t size_bytes) {
  told_fwd_cnt_ = fwd_cnt_;
  due_ &= ~(1U << kOpCreditUpdate);  // every packet tells of it
  return {.src_cid = kHostCid,
          .dst_cid = 0,
          .src_port = ports_.host,
          .dst_port = ports_.guest,
          .len = size_bytes,
          .type = kTypeStream,
          .op = op,
          .flags = op == kOpShutdown ? host_shutdown_ : 0,
          .buf_alloc = kBufferBytes,
          .fwd_cnt = fwd_cnt_};
}

/// Receives from the host's end. @return how many bytes; none if there are none, or its end or a failure was found.
uint32_t VsockStream::receive_into(DescriptorChain& buffer) {
  const size_t most_bytes =
      std::min<uint64_t>({buffer.writable_size() - kHeaderBytes, peer_room(), uint64_t{kMaxPacketBytes}});
  std::array<iovec, kMaxPieces> places;
  msghdr message{};
  message.msg_iov = places.data();
  message.msg_iovlen = places_behind_header(buffer.writable(), most_bytes, std::span(places));
  const ssize_t result = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  if (result > 0) {
    tx_cnt_ += static_cast<uint32_t>(result);
    return static_cast<uint32_t>(result);
  }
  if (result == 0) {
    on_host_end();
  } else if (would_block()) {
    may_receive_ = false;
  } else {
    reset();
  }
  return 0;
}

// How it ends

void VsockStream::reset() {
  backlog_.clear();
  ::shutdown(socket_.get(), SHUT_RDWR);
  stage_ = Stage::kResetting;
}

void VsockStream::abandon() {
  if (stage_ != Stage::kDone) {
    ::shutdown(socket_.get(), SHUT_RDWR);
  }
  backlog_.clear();
  stage_ = Stage::kDone;
}

void VsockStream::leave_to_host() { stage_ = backlog_.is_empty() ? Stage::kDone : Stage::kLingering; }

}  // namespace tandem::devices
