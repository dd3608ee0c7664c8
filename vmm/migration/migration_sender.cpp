// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/migration_sender.hpp"

#include <algorithm>
#include <thread>

#include "vmm/lib/bits/bits.hpp"
#include "vmm/lib/checksum/checksum.hpp"
#include "vmm/migration/saved_image.hpp"

namespace tandem::migration {
namespace {

using Clock = std::chrono::steady_clock;

/// Pauses between attempts to lock the disks again.
constexpr std::chrono::milliseconds kReclaimPause{20};

ChecksumField field_of(const Checksum& checksum) { return {checksum.high, checksum.low}; }

/// Adds the time since it was made to a duration.
class Stopwatch {
 public:
  explicit Stopwatch(std::chrono::nanoseconds& total) : total_(total), start_(Clock::now()) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() { total_ += Clock::now() - start_; }

 private:
  std::chrono::nanoseconds& total_;
  Clock::time_point start_;
};

}  // namespace

MigrationSender::MigrationSender(ByteChannel& channel, MigrationSource& source, MigrationObserver& observer,
                                 Cancellation& cancellation, MigrationWishes wishes, const MigrationLimits& limits)
    : stream_(channel, limits),
      source_(source),
      observer_(observer),
      cancellation_(cancellation),
      wishes_(wishes),
      pre_copy_deadline_(wishes.timeout ? Deadline(*wishes.timeout) : Deadline()),
      convergence_(wishes.downtime) {}

MigrationOutcome MigrationSender::run() {
  {
    const Stopwatch watch(outcome_.report.total);
    if (const auto done = migrate(); !done) {
      note_failure(done.error());
    }
  }
  outcome_.report.sent_bytes = stream_.sent_bytes();
  outcome_.report.rounds = ram_ ? ram_->rounds() : 0;
  outcome_.report.copied_bytes = ram_ ? ram_->copied_bytes() : 0;
  show(MigrationPhase::kOver);
  return outcome_;
}

Result<void> MigrationSender::migrate() {
  show(MigrationPhase::kHello);
  TANDEM_TRY(stream_.open());
  TANDEM_TRY(agree());
  if (wishes_.check_only) {
    outcome_.kind = MigrationOutcome::Kind::kChecked;
    return {};
  }
  show(MigrationPhase::kImages);
  TANDEM_TRY(send_images());
  show(MigrationPhase::kPreparing);
  receiver_sees_locks_ = TANDEM_TRY(stream_.expect<Prepared>(stream_.limits().work)).sees_locks;
  TANDEM_TRY(copy_ram());
  TANDEM_TRY(hand_over());
  outcome_.kind = MigrationOutcome::Kind::kMoved;
  return {};
}

Result<Offer> MigrationSender::offer() {
  Offer offer;
  offer.spec = TANDEM_TRY(source_.spec_document());
  if (offer.spec.size() > kMaxSpecBytes) {
    return fail(Errc::kOutOfRange, "the description of the machine has {} bytes; at most {} can be sent",
                offer.spec.size(), kMaxSpecBytes);
  }
  offer.ram_bytes = source_.ram().size();
  offer.check_only = wishes_.check_only;
  offer.verify_ram = wishes_.verify_ram;
  for (const auto& [role, image] : source_.images()) {
    const Checksum checksum = TANDEM_TRY(with_context(checksum_of_image(*image), role));
    offer.images.push_back({.role = role, .size_bytes = image->size(), .checksum = field_of(checksum)});
  }
  return offer;
}

Result<void> MigrationSender::agree() {
  TANDEM_TRY(stream_.send(TANDEM_TRY(offer())));
  const auto answer = TANDEM_TRY(stream_.expect<Answer>(stream_.limits().work));
  for (const Difference& difference : answer.differences) {
    outcome_.differences.push_back(printable_line(difference.text));
  }
  if (!outcome_.differences.empty() && !wishes_.check_only) {
    return fail(Errc::kUnsupported, "the receiver cannot have this machine: {}", fmt::join(outcome_.differences, "; "));
  }
  return {};
}

Result<void> MigrationSender::send_images() {
  const std::vector<LeavingImage> images = source_.images();
  for (uint32_t index = 0; index < images.size(); ++index) {
    TANDEM_TRY(with_context(send_image(index, *images[index].image), images[index].role));
  }
  return {};
}

Result<void> MigrationSender::send_image(uint32_t index, const SealedImage& image) {
  const MappedRegion mapping = image.size() == 0 ? MappedRegion() : TANDEM_TRY(image.map());
  for (std::span<const std::byte> rest = mapping.bytes(); !rest.empty();) {
    TANDEM_TRY(check_may_go_on());
    TANDEM_TRY(stream_.check_peer());
    const auto piece = rest.first(std::min<size_t>(kMaxImagePieceBytes, rest.size()));
    TANDEM_TRY(stream_.send(MessageType::kImage, std::as_bytes(std::span(&index, 1)), piece));
    rest = rest.subspan(piece.size());
  }
  return {};
}

// RAM while the guest runs

Result<void> MigrationSender::copy_ram() {
  ram_.emplace(stream_, source_.ram(), wishes_.compress);
  progress_.ram_bytes = source_.ram().size();
  DirtyBitmap pages = source_.new_bitmap();
  stage_ = Stage::kCopying;
  TANDEM_TRY(source_.start_write_log());
  pages.mark_all();
  while (true) {
    switch (TANDEM_TRY(copy_round(pages))) {
      case Convergence::Next::kStop:
        return stop_and_copy_rest(pages);
      case Convergence::Next::kAgain:
        throttle(convergence_.throttle_percent());
        break;
      case Convergence::Next::kGiveUp:
        return fail(Errc::kOutOfRange,
                    "the guest writes to its RAM faster than it can be copied; with --downtime {} it may end",
                    std::chrono::ceil<std::chrono::milliseconds>(convergence_.expected_downtime() * 2).count());
    }
  }
}

Result<Convergence::Next> MigrationSender::copy_round(DirtyBitmap& pages) {
  progress_.round = ram_->rounds() + 1;
  progress_.round_bytes = pages.count() * pages.page_bytes();
  const Clock::time_point start = Clock::now();
  TANDEM_TRY(ram_->send_round(pages, [this](uint64_t copied_bytes) {
    progress_.copied_bytes = copied_bytes;
    show(MigrationPhase::kRam);
    return check_may_go_on();
  }));
  const Clock::duration duration = Clock::now() - start;
  TANDEM_TRY(source_.collect(pages));
  const auto next = convergence_.after(
      {.copied_bytes = progress_.round_bytes, .duration = duration, .left_bytes = pages.count() * pages.page_bytes()});
  progress_.bandwidth = convergence_.bandwidth();
  progress_.dirty_rate = convergence_.dirty_rate();
  progress_.expected_downtime = convergence_.expected_downtime();
  return next;
}

void MigrationSender::throttle(unsigned percent) {
  if (percent != progress_.throttle_percent) {
    source_.throttle(percent);
    progress_.throttle_percent = percent;
    outcome_.report.throttle_percent = std::max(outcome_.report.throttle_percent, percent);
  }
}

Result<void> MigrationSender::check_may_go_on() const {
  TANDEM_TRY(cancellation_.check());
  if (pre_copy_deadline_.has_passed()) {
    return fail(Errc::kIo, "not done in the time of --timeout");
  }
  return {};
}

// The guest is stopped

Result<void> MigrationSender::stop_and_copy_rest(DirtyBitmap& pages) {
  MachineState state;
  show(MigrationPhase::kStopped);
  {
    const Stopwatch watch(outcome_.report.downtime.pause);
    stage_ = Stage::kStopped;
    state = TANDEM_TRY(source_.pause_and_save());
  }
  {
    const Stopwatch watch(outcome_.report.downtime.remainder);
    TANDEM_TRY(source_.collect(pages));  // saving writes to RAM too
    TANDEM_TRY(ram_->send_round(pages, [this](uint64_t /*copied_bytes*/) { return cancellation_.check(); }));
  }
  const Stopwatch watch(outcome_.report.downtime.state);
  return send_state(std::move(state));
}

Result<void> MigrationSender::send_state(MachineState state) {
  if (state.size() > kMaxRecords) {
    return fail(Errc::kOutOfRange, "the machine has {} components; at most {} can be sent", state.size(), kMaxRecords);
  }
  const auto count = static_cast<uint32_t>(state.size());
  for (auto& [component, record] : state) {
    if (record.payload.size() > kMaxRecordBytes) {
      return fail(Errc::kOutOfRange, "{}: its state has {} bytes; at most {} can be sent", component,
                  record.payload.size(), kMaxRecordBytes);
    }
    TANDEM_TRY(stream_.send(Record{.component = std::move(component),
                                   .kind = std::move(record.kind),
                                   .version = record.version,
                                   .payload = std::move(record.payload)}));
  }
  TANDEM_TRY(stream_.send(StateEnd{.record_count = count, .paused = source_.is_paused_by_user()}));
  // The receiver reads its RAM at the same time.
  const Checksum ours = wishes_.verify_ram ? checksum_of(source_.ram()) : Checksum{};
  const auto ready = TANDEM_TRY(stream_.expect<Ready>(stream_.limits().work));
  if (ready.ram_checksum != field_of(ours)) {
    return fail(Errc::kCorrupt, "RAM on the other side is not the same");
  }
  outcome_.report.ram_compared = wishes_.verify_ram;
  return {};
}

Result<void> MigrationSender::hand_over() {
  const Stopwatch watch(outcome_.report.downtime.hand_over);
  show(MigrationPhase::kHandOver);
  TANDEM_TRY(cancellation_.close());
  stage_ = Stage::kReleased;
  TANDEM_TRY(source_.release_disks());
  stage_ = Stage::kCommitted;  // even if sending fails: it may have arrived
  TANDEM_TRY(stream_.send(Commit{}));
  TANDEM_TRY(stream_.expect<Committed>(stream_.limits().work));
  return {};
}

// Failures

void MigrationSender::note_failure(const Error& error) {
  outcome_.kind = MigrationOutcome::Kind::kStays;
  outcome_.reason = error.message();
  if (stage_ < Stage::kReleased) {
    // From inside, a cancellation looks like an interrupted wait.
    if (const auto cancelled = cancellation_.check(); !cancelled) {
      outcome_.reason = cancelled.error().message();
    }
  }
  if (const auto undone = undo(); !undone) {
    outcome_.kind = MigrationOutcome::Kind::kUnknown;
    outcome_.reason += "; " + undone.error().message();
  }
}

Result<void> MigrationSender::undo() {
  if (stage_ == Stage::kCommitted && !stream_.peer_gave_up() &&
      !(receiver_sees_locks_ && source_.has_writable_disk())) {
    source_.leave_to_user();
    return fail(Errc::kBusy,
                "the machine stays paused, for it may run on the other side: if it does not, resume it, else stop it");
  }
  if (stage_ >= Stage::kReleased) {
    if (auto locked = reclaim_disks(); !locked) {
      source_.leave_to_user();
      return with_context(std::move(locked), "the machine stays paused");
    }
  }
  if (stage_ >= Stage::kCopying) {
    throttle(0);
    source_.stop_write_log();
  }
  if (stage_ >= Stage::kStopped) {
    TANDEM_TRY(with_context(source_.resume_after_failure(), "the machine cannot go on here"));
  }
  if (stage_ < Stage::kCommitted && !stream_.peer_gave_up()) {  // a word after `Commit` would change nothing
    stream_.give_up(outcome_.reason);
  }
  return {};
}

/// Tries for a while: a receiver that has failed is about to let go of them.
Result<void> MigrationSender::reclaim_disks() {
  const Deadline deadline(stream_.limits().reclaim);
  while (true) {
    auto locked = source_.reclaim_disks();
    if (locked || deadline.has_passed()) {
      return locked;
    }
    std::this_thread::sleep_for(kReclaimPause);
  }
}

void MigrationSender::show(MigrationPhase phase) {
  progress_.phase = phase;
  progress_.sent_bytes = stream_.sent_bytes();
  observer_.on_progress(progress_);
}

}  // namespace tandem::migration
