// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_vsock/virtio_vsock.hpp"

#include <algorithm>
#include <utility>

#include "devices/virtio_queue/config_space.hpp"
#include "devices/virtio_vsock/virtio_vsock_state.hpp"
#include "vmm/lib/bits/bits.hpp"

namespace tandem::devices {

using namespace virtio_vsock;

using Origin = VsockStream::Origin;
using Stage = VsockStream::Stage;

namespace {

std::span<const std::byte> bytes_of(const Header& header) {
  return std::as_bytes(std::span(&header, 1)).first(kHeaderBytes);
}

}  // namespace

VirtioVsock::VirtioVsock(std::string name, uint64_t guest_cid, Connections connections)
    : name_(std::move(name)),
      executor_(connections.executor),
      host_(connections.host),
      event_timer_(std::move(connections.event_timer)),
      guest_cid_(guest_cid) {
  host_.set_client(this);
  event_timer_->set_callback([this] {
    event_pending_ = false;
    receive();
  });
}

VirtioVsock::~VirtioVsock() { host_.set_client(nullptr); }

bool VirtioVsock::is_guest_cid(uint64_t cid) { return cid >= kFirstGuestCid && cid < kAnyCid; }

// Life cycle

Result<void> VirtioVsock::reset() {
  active_.reset();
  bury_all();
  event_due_ = false;
  end_event_wait();
  return {};
}

Result<void> VirtioVsock::pause() {
  paused_ = true;
  event_timer_->disarm();  // the guest cannot do anything meanwhile
  host_.set_accepting(false);
  for (const auto& [ports, entry] : streams_) {
    update_watch(*entry);
  }
  for (const auto& entry : lingering_) {
    update_watch(*entry);
  }
  return {};
}

Result<void> VirtioVsock::resume() {
  paused_ = false;
  if (event_pending_) {
    event_timer_->arm_after_ns(kEventTimeoutNs);
  }
  host_.set_accepting(true);
  for (const auto& [ports, entry] : streams_) {
    update_watch(*entry);
  }
  for (const auto& entry : lingering_) {
    update_watch(*entry);
  }
  return {};
}

Result<StateRecord> VirtioVsock::save() { return save_state(VirtioVsockStateV1{.guest_cid = guest_cid_}); }

Result<void> VirtioVsock::restore(const StateRecord& record) {
  const auto [guest_cid] = TANDEM_TRY(load_state<VirtioVsockStateV1>(record));
  if (!is_guest_cid(guest_cid)) {
    return fail(Errc::kCorrupt, "{}: impossible CID {}", name_, guest_cid);
  }
  bury_all();
  guest_cid_ = guest_cid;
  event_due_ = true;
  end_event_wait();
  return {};
}

uint32_t VirtioVsock::device_id() const { return kDeviceId; }

uint64_t VirtioVsock::device_features() const { return kFStream; }

void VirtioVsock::read_config(uint64_t offset, std::span<std::byte> out) {
  std::array<std::byte, kConfigBytes> config{};
  store_le(std::span(config).subspan(kGuestCid), guest_cid_);
  copy_config(config, offset, out);
}

void VirtioVsock::write_config(uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) {}

void VirtioVsock::activate(const VirtioActivation& activation) { active_.emplace(activation); }

void VirtioVsock::notify(uint16_t queue) {
  switch (queue) {
    case kReceiveQueue:
      return receive();
    case kTransmitQueue:
      return transmit();
    case kEventQueue:
      return handle_event_queue();
    default:
      return;
  }
}

// From the guest

void VirtioVsock::transmit() {
  if (!is_running() || transmit_posted_) {
    return;
  }
  active_->queues[kTransmitQueue].disable_notifications();
  unsigned count = 0;
  while (count < kPacketsPerRun && resets_.size() < kMaxPendingResets && transmit_next()) {
    ++count;
  }
  if (!active_) {
    return;
  }
  signal(kTransmitQueue);
  if (count == kPacketsPerRun) {
    run_later(transmit_posted_, &VirtioVsock::transmit);
  }
  receive();
}

/// Takes one packet. @return false when there is none, or the device stopped.
bool VirtioVsock::transmit_next() {
  SplitQueue& queue = active_->queues[kTransmitQueue];
  auto packet = queue.pop_or_rearm();
  if (!packet) {
    stop(text_of(packet.error()));
    return false;
  }
  if (!*packet) {
    return false;
  }
  Header header{};
  if ((*packet)->read(0, std::as_writable_bytes(std::span(&header, 1)).first(kHeaderBytes)) == kHeaderBytes) {
    handle(header, **packet);
  } else {
    note_mistake("a packet without a header");
  }
  queue.push(*std::move(*packet), 0);
  return true;
}

void VirtioVsock::handle(const Header& header, const DescriptorChain& packet) {
  if (header.src_cid != guest_cid_) {
    return note_mistake("a packet from a CID that is not its own");
  }
  const auto found = streams_.find({.host = header.dst_port, .guest = header.src_port});
  const bool is_known = header.dst_cid == kHostCid && header.type == kTypeStream && found != streams_.end();
  if (is_known) {
    return handle_for_stream(*found->second, header, packet);
  }
  if (header.op == kOpRst) {
    return;  // an answer would be answered
  }
  if (header.op == kOpRequest && header.dst_cid == kHostCid && header.type == kTypeStream) {
    return connect_to_host(header);
  }
  answer_with_reset(header);
}

void VirtioVsock::handle_for_stream(Entry& entry, const Header& header, const DescriptorChain& packet) {
  VsockStream& stream = entry.stream;
  if (header.op == kOpRst) {
    return bury(entry);
  }
  if (stream.stage() == Stage::kResetting) {
    return;  // the answer is on its way
  }
  stream.note_credit(header);
  if (!apply(stream, header, packet)) {
    note_mistake("a packet that its stream does not allow");
    stream.reset();
  } else if (stream.is_shut_down_by_guest()) {
    return end_shut_down_stream(entry, header);
  }
  settle(entry);
}

/// @return false when the packet breaks the stream's rules.
bool VirtioVsock::apply(VsockStream& stream, const Header& header, const DescriptorChain& packet) {
  if (stream.stage() == Stage::kConnecting) {
    if (header.op == kOpResponse) {
      stream.accept();
    }
    return header.op == kOpResponse;
  }
  switch (header.op) {
    case kOpRw:
      return header.len <= packet.readable_size() - kHeaderBytes && stream.take_data(packet, header.len);
    case kOpShutdown:
      stream.shut_down(header.flags);
      return true;
    case kOpCreditUpdate:
      return true;
    case kOpCreditRequest:
      stream.ask_for_credit();
      return true;
    default:
      return false;
  }
}

/// The guest has closed its end: it gets the RST that it waits for, and the host's end what the guest has sent.
void VirtioVsock::end_shut_down_stream(Entry& entry, const Header& header) {
  answer_with_reset(header);
  entry.stream.leave_to_host();
  if (entry.stream.stage() == Stage::kDone) {
    return bury(entry);
  }
  if (std::exchange(entry.is_in_row, false)) {
    std::erase(row_, &entry);
  }
  auto node = streams_.extract(entry.stream.ports());
  lingering_.push_back(std::move(node.mapped()));
  update_watch(entry);
}

void VirtioVsock::connect_to_host(const Header& request) {
  auto socket = host_.connect(request.dst_port);
  if (!socket) {
    log::debug("{}: {}", name_, socket.error().message());
    return answer_with_reset(request);
  }
  Entry* const entry =
      add_stream({.host = request.dst_port, .guest = request.src_port}, Origin::kGuest, *std::move(socket));
  if (entry == nullptr) {
    return answer_with_reset(request);
  }
  entry->stream.note_credit(request);
  settle(*entry);
}

void VirtioVsock::answer_with_reset(const Header& header) {
  resets_.push_back({.src_cid = header.dst_cid,
                     .dst_cid = header.src_cid,
                     .src_port = header.dst_port,
                     .dst_port = header.src_port,
                     .len = 0,
                     .type = header.type,
                     .op = kOpRst,
                     .flags = 0,
                     .buf_alloc = 0,
                     .fwd_cnt = 0});
}

// To the guest

void VirtioVsock::receive() {
  if (!is_running() || receive_posted_ || !deliver_event() || event_pending_) {
    return;
  }
  const bool was_full = resets_.size() >= kMaxPendingResets;
  active_->queues[kReceiveQueue].disable_notifications();
  unsigned count = 0;
  while (count < kPacketsPerRun && receive_next()) {
    ++count;
  }
  if (!active_) {
    return;
  }
  signal(kReceiveQueue);
  if (count == kPacketsPerRun) {
    run_later(receive_posted_, &VirtioVsock::receive);
  }
  if (was_full && resets_.size() < kMaxPendingResets) {
    run_later(transmit_posted_, &VirtioVsock::transmit);
  }
}

/// Gives a turn to the next in the row. @return false when there is none, no buffer for it, or the device stopped.
bool VirtioVsock::receive_next() {
  if (resets_.empty() && row_.empty()) {
    return false;
  }
  SplitQueue& queue = active_->queues[kReceiveQueue];
  auto buffer = queue.pop_or_rearm();
  if (!buffer) {
    stop(text_of(buffer.error()));
    return false;
  }
  if (!*buffer) {
    return false;
  }
  if ((*buffer)->writable_size() <= kHeaderBytes) {
    queue.undo_pop(*std::move(*buffer));
    stop("receive buffer without room for data");
    return false;
  }
  const auto header = next_packet(**buffer);
  if (!header) {
    queue.undo_pop(*std::move(*buffer));
    return true;
  }
  (*buffer)->write(0, bytes_of(*header));
  queue.push(*std::move(*buffer), static_cast<uint32_t>(kHeaderBytes) + header->len);
  return true;
}

/// @pre there is one in the row, or an answer to be given.
std::optional<Header> VirtioVsock::next_packet(DescriptorChain& buffer) {
  if (!resets_.empty()) {
    const Header header = resets_.front();
    resets_.pop_front();
    return header;
  }
  Entry& entry = *row_.front();
  row_.pop_front();
  entry.is_in_row = false;
  auto header = entry.stream.next_packet(buffer);
  if (header) {
    header->dst_cid = guest_cid_;
  }
  settle(entry);
  return header;
}

// Events

/// Tells the guest that its streams are gone, if it is to be told. @return false when the device stopped.
bool VirtioVsock::deliver_event() {
  if (!event_due_) {
    return true;
  }
  SplitQueue& queue = active_->queues[kEventQueue];
  const auto buffers = count_event_buffers();
  auto buffer = buffers.value_or(0) != 0 ? queue.pop() : std::nullopt;
  if (!buffers || !buffer) {
    return false;
  }
  if (!*buffer) {
    return true;  // it has given none; it is told when it does
  }
  event_due_ = false;
  constexpr Event kEvent{.id = kEventTransportReset};
  const auto written = (*buffer)->write(0, std::as_bytes(std::span(&kEvent, 1)));
  queue.push(*std::move(*buffer), static_cast<uint32_t>(written));
  event_buffers_ = *buffers - 1;
  event_pending_ = true;
  event_timer_->arm_after_ns(kEventTimeoutNs);
  signal(kEventQueue);
  return true;
}

/// A driver gives the buffer of an event back when it has handled the event.
void VirtioVsock::handle_event_queue() {
  if (!is_running()) {
    return;
  }
  if (event_pending_) {
    const auto buffers = count_event_buffers();
    if (!buffers || *buffers <= event_buffers_) {
      return;
    }
    end_event_wait();
  }
  receive();
}

void VirtioVsock::end_event_wait() {
  event_pending_ = false;
  event_timer_->disarm();
}

/// How many buffers for events there are; the next doorbell rings for one more. @return nothing if the device stopped.
std::optional<unsigned> VirtioVsock::count_event_buffers() {
  SplitQueue& queue = active_->queues[kEventQueue];
  std::vector<DescriptorChain> buffers;
  auto buffer = queue.pop_or_rearm();
  while (buffer && *buffer) {
    buffers.push_back(*std::move(*buffer));
    buffer = queue.pop_or_rearm();
  }
  const auto count = static_cast<unsigned>(buffers.size());
  for (; !buffers.empty(); buffers.pop_back()) {
    queue.undo_pop(std::move(buffers.back()));
  }
  if (!buffer) {
    stop(text_of(buffer.error()));
    return std::nullopt;
  }
  return count;
}

// Streams

void VirtioVsock::vsock_connected(UniqueFd socket, uint32_t guest_port) {
  if (!is_running()) {
    return;  // there is no driver that could answer
  }
  while (streams_.contains({.host = next_host_port_, .guest = guest_port})) {
    next_host_port_ = std::max(next_host_port_ + 1, kFirstHostPort);
  }
  const uint32_t host_port = next_host_port_;
  next_host_port_ = std::max(next_host_port_ + 1, kFirstHostPort);
  if (Entry* const entry = add_stream({.host = host_port, .guest = guest_port}, Origin::kHost, std::move(socket))) {
    settle(*entry);
    receive();
  }
}

/// @return nothing when there are too many streams already.
VirtioVsock::Entry* VirtioVsock::add_stream(VsockPorts ports, Origin origin, UniqueFd socket) {
  auto entry = std::make_unique<Entry>(ports, origin, std::move(socket));
  Entry* const self = entry.get();
  std::string why = "there are too many";
  if (stream_count() < kMaxStreams) {
    auto watch = executor_.watch(self->stream.socket(), Events::kNone, [this, self](Events events) {
      if (is_running() && self->stream.stage() != Stage::kDone) {
        self->stream.host_ready(events);
        settle(*self);
        receive();
      }
    });
    if (watch) {
      self->watch = *std::move(watch);
      streams_.emplace(ports, std::move(entry));
      return self;
    }
    why = watch.error().message();
  }
  if (const uint64_t count = refusals_.count(); count != 0) {
    log::warn("{}: stream refused: {} (time {})", name_, why, count);
  }
  return nullptr;
}

/// Draws the conclusions of what has happened to a stream.
void VirtioVsock::settle(Entry& entry) {
  if (entry.stream.stage() == Stage::kDone) {
    return bury(entry);
  }
  update_watch(entry);
  if (!entry.is_in_row && entry.stream.has_packet()) {
    entry.is_in_row = true;
    row_.push_back(&entry);
  }
}

void VirtioVsock::update_watch(Entry& entry) {
  const Events events = paused_ ? Events::kNone : entry.stream.wanted();
  if (events != entry.watched) {
    entry.watched = events;
    entry.watch.set_events(events);
  }
}

/// Forgets a stream. Its socket is closed when the event loop is past all callbacks that it has begun.
void VirtioVsock::bury(Entry& entry) {
  if (entry.is_in_row) {
    std::erase(row_, &entry);
  }
  entry.stream.abandon();
  entry.watch.set_events(Events::kNone);
  const auto found = streams_.find(entry.stream.ports());
  if (found != streams_.end() && found->second.get() == &entry) {
    buried_.push_back(std::move(found->second));
    streams_.erase(found);
  } else {
    const auto place = std::ranges::find(lingering_, &entry, &std::unique_ptr<Entry>::get);
    TANDEM_ASSERT(place != lingering_.end(), "a stream is known to the guest, or lingers");
    buried_.push_back(std::move(*place));
    lingering_.erase(place);
  }
  purge_later();
}

void VirtioVsock::bury_all() {
  while (!streams_.empty()) {
    bury(*streams_.begin()->second);
  }
  while (!lingering_.empty()) {
    bury(*lingering_.back());
  }
  resets_.clear();
}

void VirtioVsock::purge_later() {
  if (!std::exchange(purge_posted_, true)) {
    executor_.post([this] {
      purge_posted_ = false;
      buried_.clear();
    });
  }
}

// Everywhere

void VirtioVsock::run_later(bool& posted, void (VirtioVsock::*run)()) {
  if (!std::exchange(posted, true)) {
    executor_.post([this, &posted, run] {
      posted = false;
      (this->*run)();
    });
  }
}

void VirtioVsock::signal(uint16_t queue) {
  if (active_->queues[queue].should_notify()) {
    active_->transport.notify_used(queue);
  }
}

/// The device does no more until it is reset.
void VirtioVsock::stop(std::string_view why) {
  active_->transport.set_needs_reset(why);
  active_.reset();
  bury_all();
}

void VirtioVsock::note_mistake(std::string_view what) {
  if (const uint64_t count = mistakes_.count(); count != 0) {
    log::warn("{}: the guest sent {} (time {})", name_, what, count);
  }
}

}  // namespace tandem::devices
