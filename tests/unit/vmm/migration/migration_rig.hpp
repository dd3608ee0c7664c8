// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "tests/fakes/fake_migration_source.hpp"
#include "tests/fakes/fake_migration_target.hpp"
#include "tests/fakes/faulty_channel.hpp"
#include "vmm/migration/migration_receiver.hpp"
#include "vmm/migration/migration_sender.hpp"

namespace tandem::migration {

using fakes::ChannelFault;
using fakes::FakeMigrationSource;
using fakes::FakeMigrationTarget;
using fakes::FaultyChannel;
using fakes::SharedDisk;

/// The two ends of a connection.
inline std::array<UniqueFd, 2> connected_sockets() {
  std::array<int, 2> fds{-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

inline SealedImage sealed_image(std::string_view contents) {
  SealedImageWriter writer = SealedImageWriter::create("test").value();
  EXPECT_TRUE(writer.append(std::as_bytes(std::span(contents))));
  return std::move(writer).seal().value();
}

inline std::string contents_of(const SealedImage& image) {
  std::string text(image.size(), 0);
  EXPECT_TRUE(image.copy_to(std::as_writable_bytes(std::span(text))));
  return text;
}

/// Remembers the last progress.
class LastProgress final : public MigrationObserver {
 public:
  void on_progress(const MigrationProgress& progress) override {
    last = progress;
    if (when_shown) {
      when_shown(progress);
    }
  }
  MigrationProgress last;
  std::function<void(const MigrationProgress&)> when_shown;
};

enum class DiskKind : uint8_t { kNone, kWritable };

/// What breaks, at one end.
struct RigFault {
  ChannelFault of_source = ChannelFault::kNone;
  ChannelFault of_target = ChannelFault::kNone;
  unsigned at_message = 0;
};

/// Two machines' places, a connection that may fail, and a thread for each side.
class MigrationRig {
 public:
  static constexpr size_t kPages = 96;

  explicit MigrationRig(DiskKind disk = DiskKind::kWritable)
      : source(kPages, disk == DiskKind::kNone ? nullptr : &shared),
        target(kPages * FakeMigrationSource::kPageBytes, disk == DiskKind::kNone ? nullptr : &shared) {
    source.boot_images.emplace_back("kernel", sealed_image(std::string(kMaxImagePieceBytes + 10, 'k')));
    source.boot_images.emplace_back("initrd", sealed_image("initrd"));
    source.state = {{.component = "vcpu0", .record = {.kind = "kvm_vcpu", .version = 1, .payload = {std::byte{7}}}},
                    {.component = "rng0", .record = StateRecord::none("virtio_rng")}};
    source.writes_of_saving = {5};
  }

  void run(RigFault fault = {}) {
    auto [source_end, target_end] = connected_sockets();
    std::thread receiving([this, fault, end = std::move(target_end)]() mutable {
      FaultyChannel channel(SocketChannel::create(std::move(end)).value(), fault.of_target, fault.at_message);
      MigrationReceiver receiver(channel, target, limits);
      received.emplace(receiver.run());
      target_messages = channel.message_count();
    });
    {
      FaultyChannel channel(SocketChannel::create(std::move(source_end), cancellation->fd()).value(), fault.of_source,
                            fault.at_message);
      MigrationSender sender(channel, source, observer, *cancellation, wishes, limits);
      outcome = sender.run();
      source_messages = channel.message_count();
    }
    receiving.join();
  }

  [[nodiscard]] bool moved() const { return outcome.kind == MigrationOutcome::Kind::kMoved; }
  [[nodiscard]] bool same_ram() { return std::ranges::equal(source.ram(), target.ram()); }

  SharedDisk shared{SharedDisk::Owner::kSource};
  FakeMigrationSource source;
  FakeMigrationTarget target;
  MigrationWishes wishes;
  MigrationLimits limits;
  LastProgress observer;
  std::unique_ptr<Cancellation> cancellation = Cancellation::create().value();

  MigrationOutcome outcome;
  std::optional<Result<MigrationReceiver::End>> received;
  unsigned source_messages = 0;
  unsigned target_messages = 0;
};

}  // namespace tandem::migration
