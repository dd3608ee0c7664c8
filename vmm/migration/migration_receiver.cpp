// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/migration_receiver.hpp"

#include <algorithm>

#include "vmm/lib/bits/bits.hpp"
#include "vmm/lib/checksum/checksum.hpp"

namespace tandem::migration {
namespace {

/// Most differences that are told, and how much of each.
constexpr size_t kMostDifferences = 256;
constexpr size_t kMostDifferenceBytes = 1024;

ChecksumField field_of(const Checksum& checksum) { return {checksum.high, checksum.low}; }

Result<void> check_offer(const Offer& offer) {
  if (offer.spec.size() > kMaxSpecBytes || offer.images.size() > kMaxImages || offer.ram_bytes == 0 ||
      !is_aligned(offer.ram_bytes, kChunkUnitBytes)) {
    return fail(Errc::kCorrupt, "the offer is impossible");
  }
  for (const ImageOffer& image : offer.images) {
    if (image.role.empty() || image.role.size() > kMaxRoleBytes || image.size_bytes > offer.ram_bytes) {
      return fail(Errc::kCorrupt, "the offer has an impossible boot image");
    }
    if (std::ranges::count(offer.images, image.role, &ImageOffer::role) != 1) {
      return fail(Errc::kCorrupt, "the offer has two boot images of one name");
    }
  }
  return {};
}

}  // namespace

Result<MigrationReceiver::End> MigrationReceiver::run() {
  auto end = receive();
  if (!end && !stream_.peer_gave_up()) {
    stream_.give_up(end.error().message());
  }
  return end;
}

Result<MigrationReceiver::End> MigrationReceiver::receive() {
  TANDEM_TRY(stream_.open());
  const auto offer = TANDEM_TRY(stream_.expect<Offer>());
  TANDEM_TRY(check_offer(offer));
  TANDEM_TRY(answer(offer));
  if (offer.check_only) {
    return End::kChecked;
  }
  auto images = TANDEM_TRY(receive_images(offer));
  const PreparedMachine machine = TANDEM_TRY(target_.prepare(offer.spec, std::move(images)));
  if (machine.ram.size() != offer.ram_bytes) {
    return fail(Errc::kCorrupt, "the offer speaks of {} bytes of RAM, its machine of {}", offer.ram_bytes,
                machine.ram.size());
  }
  TANDEM_TRY(stream_.send(Prepared{machine.sees_locks}));
  TANDEM_TRY(receive_rounds(machine.ram));
  auto state = TANDEM_TRY(receive_state());
  const Checksum checksum = offer.verify_ram ? checksum_of(machine.ram) : Checksum{};
  TANDEM_TRY(target_.restore(std::move(state)));
  TANDEM_TRY(stream_.send(Ready{field_of(checksum)}));
  TANDEM_TRY(take_over());
  return End::kArrived;
}

Result<void> MigrationReceiver::answer(const Offer& offer) {
  const auto texts = TANDEM_TRY(target_.differences(offer.spec));
  Answer answer;
  for (const std::string& text : texts) {
    if (answer.differences.size() == kMostDifferences) {
      break;
    }
    answer.differences.push_back({text.substr(0, kMostDifferenceBytes)});
  }
  TANDEM_TRY(stream_.send(std::move(answer)));
  if (!texts.empty() && !offer.check_only) {
    return fail(Errc::kUnsupported, "the machine does not fit here: {}", fmt::join(texts, "; "));
  }
  return {};
}

Result<std::vector<ArrivedImage>> MigrationReceiver::receive_images(const Offer& offer) {
  std::vector<ArrivedImage> images;
  for (uint32_t index = 0; index < offer.images.size(); ++index) {
    images.push_back(TANDEM_TRY(receive_image(index, offer.images[index])));
  }
  return images;
}

Result<ArrivedImage> MigrationReceiver::receive_image(uint32_t index, const ImageOffer& offer) {
  SealedImageWriter writer = TANDEM_TRY(SealedImageWriter::create("boot-image"));
  ChecksumStream checksum;
  while (writer.size() < offer.size_bytes) {
    const auto received = TANDEM_TRY(stream_.receive());
    if (received.type != MessageType::kImage || received.payload.size() <= sizeof index ||
        load_le<uint32_t>(received.payload) != index) {
      return fail(Errc::kCorrupt, "'{}' came where a piece of image {} was due",
                  MigrationStream::name_of(received.type), index);
    }
    const auto piece = received.payload.subspan(sizeof index);
    if (piece.size() > offer.size_bytes - writer.size()) {
      return fail(Errc::kCorrupt, "image {} is longer than it was offered", index);
    }
    TANDEM_TRY(writer.append(piece));
    checksum.append(piece);
  }
  if (field_of(checksum.checksum()) != offer.checksum) {
    return fail(Errc::kCorrupt, "image {} has a wrong checksum", index);
  }
  return ArrivedImage{.role = offer.role, .image = TANDEM_TRY(std::move(writer).seal())};
}

Result<void> MigrationReceiver::receive_rounds(std::span<std::byte> ram) {
  ChunkPlacer placer(ram);
  while (true) {
    received_ = TANDEM_TRY(stream_.receive(stream_.limits().work));  // saving the machine comes after the last but one
    if (received_.type != MessageType::kRoundBegin) {
      return {};
    }
    const auto begin = TANDEM_TRY(MigrationStream::decode<RoundBegin>(received_));
    if (begin.number != rounds_ + 1) {
      return fail(Errc::kCorrupt, "round {} came after round {}", begin.number, rounds_);
    }
    rounds_ = begin.number;
    TANDEM_TRY(receive_round(placer));
    TANDEM_TRY(stream_.send(RoundDone{rounds_}));
  }
}

Result<void> MigrationReceiver::receive_round(ChunkPlacer& placer) {
  placer.begin_round();
  uint64_t chunk_count = 0;
  while (true) {
    const auto received = TANDEM_TRY(stream_.receive());
    if (received.type != MessageType::kChunk) {
      const auto end = TANDEM_TRY(MigrationStream::decode<RoundEnd>(received));
      if (end.chunk_count != chunk_count) {
        return fail(Errc::kCorrupt, "round {} has {} chunks where {} are due", rounds_, chunk_count, end.chunk_count);
      }
      return {};
    }
    ++chunk_count;
    TANDEM_TRY(placer.place(TANDEM_TRY(Chunk::decode(received.payload))));
  }
}

Result<MachineState> MigrationReceiver::receive_state() {
  MachineState state;
  size_t size_bytes = 0;
  if (rounds_ == 0) {
    return fail(Errc::kCorrupt, "no RAM came");
  }
  while (received_.type == MessageType::kRecord) {
    auto record = TANDEM_TRY(MigrationStream::decode<Record>(received_));
    const bool known = std::ranges::find(state, record.component, &ComponentState::component) != state.end();
    size_bytes += record.payload.size();
    if (size_bytes > kMaxStateBytes) {
      return fail(Errc::kCorrupt, "the state of the components is longer than {} bytes", kMaxStateBytes);
    }
    if (known || state.size() == kMaxRecords || record.component.size() > kMaxComponentBytes) {
      return fail(Errc::kCorrupt, "the state of a component comes twice, or has an impossible name");
    }
    state.push_back(
        {.component = std::move(record.component),
         .record = {.kind = std::move(record.kind), .version = record.version, .payload = std::move(record.payload)}});
    received_ = TANDEM_TRY(stream_.receive());
  }
  const auto end = TANDEM_TRY(MigrationStream::decode<StateEnd>(received_));
  if (end.record_count != state.size()) {
    return fail(Errc::kCorrupt, "the state of {} components came where {} were due", state.size(), end.record_count);
  }
  arrival_ = end.paused ? MigrationTarget::Arrival::kPaused : MigrationTarget::Arrival::kRunning;
  return state;
}

Result<void> MigrationReceiver::take_over() {
  TANDEM_TRY(stream_.expect<Commit>(stream_.limits().work));
  TANDEM_TRY(target_.take_disks());
  if (auto said = stream_.send(Committed{}); !said) {
    target_.release_disks();
    return said;
  }
  target_.go_on(arrival_);
  return {};
}

}  // namespace tandem::migration
