// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_blk/virtio_blk.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>
#include <utility>

#include "devices/virtio_blk/virtio_blk_state.hpp"

namespace tandem::devices {

using namespace virtio_blk;

namespace {

constexpr std::array<uint16_t, 1> kQueueSizes{VirtioBlk::kQueueSize};

/// Storage works in pieces of this size nearly everywhere; a constant, so that guests see the same on every host.
constexpr uint8_t kPhysicalBlockExp = 3;
constexpr uint32_t kPhysicalBlockSectors = 1U << kPhysicalBlockExp;

Config config_of(const DiskFile& disk) {
  Config config;
  config.capacity = disk.size_bytes() / kSectorBytes;
  config.size_max = VirtioBlk::kMaxSegmentBytes;
  config.seg_max = VirtioBlk::kMaxSegments;
  config.blk_size = kSectorBytes;
  config.topology_physical_block_exp = kPhysicalBlockExp;
  config.topology_min_io_size = kPhysicalBlockSectors;
  config.num_queues = 1;
  if (!disk.is_read_only()) {
    config.max_discard_sectors = VirtioBlk::kMaxDiscardSectors;
    config.max_discard_seg = VirtioBlk::kMaxRanges;
    config.discard_sector_alignment = kPhysicalBlockSectors;
    config.max_write_zeroes_sectors = VirtioBlk::kMaxWriteZeroesSectors;
    config.max_write_zeroes_seg = VirtioBlk::kMaxRanges;
    config.write_zeroes_may_unmap = 1;
  }
  return config;
}

std::string_view text_of(BlockRequest::Kind kind) {
  switch (kind) {
    case BlockRequest::Kind::kRead:
      return "read";
    case BlockRequest::Kind::kWrite:
      return "write";
    case BlockRequest::Kind::kFlush:
      return "flush";
    case BlockRequest::Kind::kDiscard:
      return "discard";
    case BlockRequest::Kind::kWriteZeroes:
      return "write zeroes";
  }
  TANDEM_UNREACHABLE("every kind returns above");
}

/// The request's kind for a header's type; nothing for those that the engine has none for.
std::optional<BlockRequest::Kind> kind_of(uint32_t type) {
  switch (type) {
    case VIRTIO_BLK_T_IN:
      return BlockRequest::Kind::kRead;
    case VIRTIO_BLK_T_OUT:
      return BlockRequest::Kind::kWrite;
    case VIRTIO_BLK_T_FLUSH:
      return BlockRequest::Kind::kFlush;
    case VIRTIO_BLK_T_DISCARD:
      return BlockRequest::Kind::kDiscard;
    case VIRTIO_BLK_T_WRITE_ZEROES:
      return BlockRequest::Kind::kWriteZeroes;
    default:
      return std::nullopt;
  }
}

bool writes(BlockRequest::Kind kind) { return kind != BlockRequest::Kind::kRead && kind != BlockRequest::Kind::kFlush; }

/// Adds bytes `skip` to `skip + size_bytes` of `pieces` to `buffers`. @pre they are that long.
template <typename Piece>
void add_buffers(std::span<const Piece> pieces, uint64_t skip, uint64_t size_bytes, std::vector<iovec>& buffers) {
  for (const Piece& piece : pieces) {
    if (size_bytes == 0) {
      return;
    }
    if (skip >= piece.size()) {
      skip -= piece.size();
      continue;
    }
    const auto part = piece.subspan(skip, std::min<uint64_t>(piece.size() - skip, size_bytes));
    // iovec is for both directions; a write only reads from there.
    buffers.push_back({.iov_base = const_cast<std::byte*>(part.data()), .iov_len = part.size()});
    size_bytes -= part.size();
    skip = 0;
  }
}

}  // namespace

Result<std::unique_ptr<VirtioBlk>> VirtioBlk::create(std::string name, std::string serial,
                                                     std::unique_ptr<BlockEngine> engine, DeviceExecutor& executor) {
  std::unique_ptr<VirtioBlk> device(new VirtioBlk(std::move(name), std::move(serial), std::move(engine), executor));
  device->watch_ =
      TANDEM_TRY(executor.watch(device->engine_->completion_fd(), Events::kReadable, [raw = device.get()](Events) {
        raw->take_ended();
        raw->interrupt_if_wanted();
        raw->go_on();
      }));
  return device;
}

VirtioBlk::VirtioBlk(std::string name, std::string serial, std::unique_ptr<BlockEngine> engine,
                     DeviceExecutor& executor)
    : name_(std::move(name)),
      serial_(std::move(serial)),
      config_(config_of(engine->disk())),
      executor_(executor),
      engine_(std::move(engine)) {}

VirtioBlk::~VirtioBlk() {
  activation_.reset();
  drain();
}

// What the driver sees before it starts

uint64_t VirtioBlk::device_features() const {
  constexpr uint64_t kAlways =
      VIRTIO_BLK_F_SIZE_MAX | VIRTIO_BLK_F_SEG_MAX | VIRTIO_BLK_F_BLK_SIZE | VIRTIO_BLK_F_FLUSH | VIRTIO_BLK_F_TOPOLOGY;
  return kAlways |
         (engine_->disk().is_read_only() ? VIRTIO_BLK_F_RO : VIRTIO_BLK_F_DISCARD | VIRTIO_BLK_F_WRITE_ZEROES);
}

std::span<const uint16_t> VirtioBlk::queue_sizes() const { return kQueueSizes; }

void VirtioBlk::read_config(uint64_t offset, std::span<std::byte> out) {
  std::ranges::fill(out, std::byte{0});
  const auto bytes = std::as_bytes(std::span(&config_, 1));
  if (offset < bytes.size()) {
    const auto part = bytes.subspan(offset, std::min(out.size(), bytes.size() - offset));
    std::ranges::copy(part, out.begin());
  }
}

void VirtioBlk::write_config(uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) {
  // Only `writeback` can be written, and only with VIRTIO_BLK_F_CONFIG_WCE.
}

// Serving the queue

void VirtioBlk::activate(const VirtioActivation& activation) { activation_.emplace(activation); }

void VirtioBlk::notify(uint16_t /*queue*/) { serve_queue(); }

void VirtioBlk::serve_queue() {
  if (!is_running()) {
    return;
  }
  may_be_more_ = take_available();
  engine_->kick();
  take_ended();  // what the host had in its cache
  interrupt_if_wanted();
  go_on();
}

void VirtioBlk::go_on() {
  if (!may_be_more_ || !is_running() || !has_room() || serve_posted_) {
    return;
  }
  // Others on the event loop have their turn first.
  serve_posted_ = true;
  executor_.post([this] {
    serve_posted_ = false;
    serve_queue();
  });
}

bool VirtioBlk::take_available() {
  queue().disable_notifications();
  for (unsigned left = kQueueSize; left > 0 && has_room(); --left) {
    auto chain = queue().pop_or_rearm();
    if (!chain) {
      set_broken(devices::text_of(chain.error()));
      return false;
    }
    if (!*chain || !take(std::move(**chain))) {
      return false;
    }
  }
  return true;
}

bool VirtioBlk::take(DescriptorChain chain) {
  if (chain.writable_size() == 0) {
    set_broken("block request without room for its status");
    return false;
  }
  Request& request = take_idle();
  request.chain = std::move(chain);
  if (const auto answer = prepare(request)) {
    finish(request, *answer);
  } else {
    in_flight_bytes_ += request.size_bytes;
    engine_->submit(request);
  }
  return true;
}

std::optional<VirtioBlk::Answer> VirtioBlk::prepare(Request& request) const {
  RequestHeader header;
  if (request.chain->read(0, std::as_writable_bytes(std::span(&header, 1))) < sizeof header) {
    return Answer{Status::VIRTIO_BLK_S_IOERR};
  }
  if (header.type == VIRTIO_BLK_T_GET_ID) {
    std::array<std::byte, kIdBytes> id{};
    std::memcpy(id.data(), serial_.data(), std::min(serial_.size(), id.size()));
    const uint64_t room = request.chain->writable_size() - 1;
    const auto part = std::span(id).first(std::min<uint64_t>(room, id.size()));
    return Answer{Status::VIRTIO_BLK_S_OK, request.chain->write(0, part)};
  }
  const auto kind = kind_of(header.type);
  if (!kind) {
    return Answer{Status::VIRTIO_BLK_S_UNSUPP};
  }
  if (writes(*kind) && engine_->disk().is_read_only()) {
    return Answer{Status::VIRTIO_BLK_S_IOERR};
  }
  request.kind = *kind;
  request.durable = writes(*kind) && !has_feature(VIRTIO_BLK_F_FLUSH);
  switch (*kind) {
    case BlockRequest::Kind::kRead:
    case BlockRequest::Kind::kWrite:
      return prepare_transfer(request, header.sector);
    case BlockRequest::Kind::kFlush:
      return engine_->disk().is_read_only() ? std::optional(Answer{Status::VIRTIO_BLK_S_OK}) : std::nullopt;
    case BlockRequest::Kind::kDiscard:
    case BlockRequest::Kind::kWriteZeroes:
      return prepare_ranges(request);
  }
  TANDEM_UNREACHABLE("every kind returns above");
}

std::optional<VirtioBlk::Answer> VirtioBlk::prepare_transfer(Request& request, uint64_t sector) const {
  const DescriptorChain& chain = *request.chain;
  const bool is_read = request.kind == BlockRequest::Kind::kRead;
  const uint64_t size_bytes = is_read ? chain.writable_size() - 1 : chain.readable_size() - sizeof(RequestHeader);
  if (size_bytes % kSectorBytes != 0 || size_bytes > kMaxRequestBytes ||
      !is_on_disk(sector, size_bytes / kSectorBytes)) {
    return Answer{Status::VIRTIO_BLK_S_IOERR};
  }
  if (size_bytes == 0) {
    return Answer{Status::VIRTIO_BLK_S_OK};
  }
  request.offset = sector * kSectorBytes;
  request.size_bytes = size_bytes;
  if (is_read) {
    add_buffers(chain.writable(), 0, size_bytes, request.buffers);
  } else {
    add_buffers(chain.readable(), sizeof(RequestHeader), size_bytes, request.buffers);
  }
  return std::nullopt;
}

std::optional<VirtioBlk::Answer> VirtioBlk::prepare_ranges(Request& request) const {
  if (!has_feature(request.kind == BlockRequest::Kind::kDiscard ? VIRTIO_BLK_F_DISCARD : VIRTIO_BLK_F_WRITE_ZEROES)) {
    return Answer{Status::VIRTIO_BLK_S_UNSUPP};
  }
  std::array<DiscardWriteZeroes, kMaxRanges> ranges;
  const uint64_t size_bytes = request.chain->readable_size() - sizeof(RequestHeader);
  if (size_bytes == 0 || size_bytes > sizeof ranges || size_bytes % sizeof ranges[0] != 0) {
    return Answer{Status::VIRTIO_BLK_S_IOERR};
  }
  const size_t copied = request.chain->read(sizeof(RequestHeader), std::as_writable_bytes(std::span(ranges)));
  for (const DiscardWriteZeroes& range : std::span(ranges).first(copied / sizeof ranges[0])) {
    if (const auto ok = check_range(range, request.kind); !ok) {
      return Answer{ok.error()};
    }
    if (range.num_sectors > 0) {
      const bool may_unmap = (range.flags & kFlagUnmap) != 0;
      request.ranges.push_back({.offset = range.sector * kSectorBytes,
                                .size_bytes = range.num_sectors * kSectorBytes,
                                .unmap = may_unmap ? DiskFile::Unmap::kAllowed : DiskFile::Unmap::kNo});
      request.size_bytes += request.kind == BlockRequest::Kind::kWriteZeroes ? request.ranges.back().size_bytes : 0;
    }
  }
  return request.ranges.empty() ? std::optional(Answer{Status::VIRTIO_BLK_S_OK}) : std::nullopt;
}

std::expected<void, VirtioBlk::Status> VirtioBlk::check_range(const DiscardWriteZeroes& range,
                                                              BlockRequest::Kind kind) const {
  const bool is_discard = kind == BlockRequest::Kind::kDiscard;
  if ((range.flags & (is_discard ? ~0U : ~kFlagUnmap)) != 0) {
    return std::unexpected(Status::VIRTIO_BLK_S_UNSUPP);
  }
  if (range.num_sectors > (is_discard ? kMaxDiscardSectors : kMaxWriteZeroesSectors) ||
      !is_on_disk(range.sector, range.num_sectors)) {
    return std::unexpected(Status::VIRTIO_BLK_S_IOERR);
  }
  return {};
}

bool VirtioBlk::is_on_disk(uint64_t sector, uint64_t count) const {
  return sector <= config_.capacity && count <= config_.capacity - sector;
}

// Ending requests

void VirtioBlk::take_ended() {
  engine_->reap(ended_);
  for (BlockRequest* const ended : ended_) {
    auto& request = static_cast<Request&>(*ended);
    in_flight_bytes_ -= request.size_bytes;
    if (request.os_error != 0) {
      if (const uint64_t count = io_errors_.count(); count != 0) {
        log::warn("{}: {} failed: {} ({} failed so far)", engine_->disk().path(), text_of(request.kind),
                  std::generic_category().message(request.os_error), count);
      }
    }
    const bool is_read = request.kind == BlockRequest::Kind::kRead;
    finish(request, {.status = request.os_error == 0 ? Status::VIRTIO_BLK_S_OK : Status::VIRTIO_BLK_S_IOERR,
                     .data_bytes = is_read ? request.done_bytes : 0});
  }
  ended_.clear();
}

void VirtioBlk::finish(Request& request, Answer answer) {
  if (activation_ && !broken_) {
    DescriptorChain chain = std::move(*request.chain);
    const uint64_t status_offset = chain.writable_size() - 1;
    const auto status = static_cast<std::byte>(answer.status);
    chain.write(status_offset, std::span(&status, 1));
    // The driver may rely on that many bytes from the start; the status counts when nothing is missing before it.
    const uint64_t written = answer.data_bytes + (answer.data_bytes == status_offset ? 1 : 0);
    queue().push(std::move(chain), static_cast<uint32_t>(written));
  }
  request.chain.reset();
  request.size_bytes = 0;
  request.clear();
  idle_.push_back(&request);
}

void VirtioBlk::interrupt_if_wanted() {
  if (activation_ && !broken_ && queue().should_notify()) {
    activation_->transport.notify_used(0);
  }
}

void VirtioBlk::set_broken(std::string_view why) {
  broken_ = true;
  activation_->transport.set_needs_reset(why);
}

void VirtioBlk::drain() {
  while (idle_.size() < requests_.size()) {
    wait_for_completion(*engine_);
    take_ended();
  }
}

VirtioBlk::Request& VirtioBlk::take_idle() {
  if (idle_.empty()) {
    requests_.push_back(std::make_unique<Request>());
    return *requests_.back();
  }
  Request& request = *idle_.back();
  idle_.pop_back();
  return request;
}

// Life cycle

Result<void> VirtioBlk::reset() {
  activation_.reset();  // what is in flight ends without a trace in the rings
  broken_ = false;
  may_be_more_ = false;
  drain();
  return {};
}

Result<void> VirtioBlk::pause() {
  paused_ = true;
  drain();
  interrupt_if_wanted();
  return {};
}

Result<void> VirtioBlk::resume() {
  paused_ = false;
  return {};
}

Result<StateRecord> VirtioBlk::save() {
  return save_state(VirtioBlkStateV1{
      .capacity_sectors = config_.capacity, .read_only = engine_->disk().is_read_only(), .serial = serial_});
}

Result<void> VirtioBlk::restore(const StateRecord& record) {
  const auto saved = TANDEM_TRY(load_state<VirtioBlkStateV1>(record));
  const auto& [capacity_sectors, read_only, serial] = saved;
  if (capacity_sectors != config_.capacity) {
    return fail(Errc::kInvalidArgument, "{}: has {} sectors where the saved machine's disk has {}",
                engine_->disk().path(), config_.capacity, capacity_sectors);
  }
  if (read_only != engine_->disk().is_read_only()) {
    return fail(Errc::kInvalidArgument, "{}: is {} where the saved machine's disk is not", engine_->disk().path(),
                read_only ? "writable" : "read-only");
  }
  if (serial != serial_) {
    return fail(Errc::kInvalidArgument, "{}: has serial number '{}' where the saved machine's disk has '{}'",
                engine_->disk().path(), serial_, serial);
  }
  return {};
}

}  // namespace tandem::devices
