// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/lib/state/state_record.hpp"

/// What the two sides of a migration say to each other; see docs/migration.md. Fields are tagged as in saved state.
namespace tandem::migration {

/// Kind of a message; the numbers are part of the protocol.
enum class MessageType : uint32_t {
  kOffer = 1,       ///< Source: the machine, and what is wanted.
  kAnswer = 2,      ///< Receiver: whether it can have that machine.
  kImage = 3,       ///< Source: a piece of a boot image.
  kPrepared = 4,    ///< Receiver: the machine is built, RAM can come.
  kRoundBegin = 5,  ///< Source.
  kChunk = 6,       ///< Source: a piece of RAM.
  kRoundEnd = 7,    ///< Source.
  kRoundDone = 8,   ///< Receiver: all of the round is in RAM.
  kRecord = 9,      ///< Source: the state of one component.
  kStateEnd = 10,   ///< Source: nothing more comes.
  kReady = 11,      ///< Receiver: the machine could run.
  kCommit = 12,     ///< Source: the machine is yours; its disks are unlocked.
  kCommitted = 13,  ///< Receiver: its disks are locked, it runs.
  kFailure = 14,    ///< Either: I give up, and why.
};

// Bounds of what is read back.
inline constexpr size_t kMaxSpecBytes = 1U << 20;
inline constexpr size_t kMaxTextBytes = 1U << 16;
inline constexpr size_t kMaxImages = 8;
inline constexpr size_t kMaxRoleBytes = 32;
inline constexpr size_t kMaxAnswerBytes = 1U << 20;
inline constexpr size_t kMaxRecords = 4096;
inline constexpr size_t kMaxRecordBytes = 32U << 20;
inline constexpr size_t kMaxStateBytes = 128U << 20;
inline constexpr size_t kMaxComponentBytes = 64;
/// Most bytes of RAM in one chunk, but for chunks of zeros.
inline constexpr uint64_t kMaxChunkBytes = 256U << 10;
/// Unit of a chunk's place and length: a page of the smallest size that a host can have.
inline constexpr uint64_t kChunkUnitBytes = 4096;
/// Most bytes of an image in one message.
inline constexpr size_t kMaxImagePieceBytes = 256U << 10;

/// A checksum, its high half first.
using ChecksumField = std::array<uint64_t, 2>;

/// A boot image that is to come.
struct ImageOffer {
  std::string role;
  uint64_t size_bytes = 0;
  ChecksumField checksum{};

  template <typename A>
  void fields(A& archive) {
    archive(1, role);
    archive(2, size_bytes);
    archive(3, checksum);
  }
};

struct Offer {
  static constexpr MessageType kType = MessageType::kOffer;
  std::string spec;  ///< The machine's description.
  uint64_t ram_bytes = 0;
  std::vector<ImageOffer> images;
  bool check_only = false;  ///< Nothing is to follow the answer.
  bool verify_ram = false;  ///< `Ready` is to have the checksum of RAM.

  template <typename A>
  void fields(A& archive) {
    archive(1, spec);
    archive(2, ram_bytes);
    archive(3, images);
    archive(4, check_only);
    archive(5, verify_ram);
  }
};

/// One reason why a machine does not fit.
struct Difference {
  std::string text;

  template <typename A>
  void fields(A& archive) {
    archive(1, text);
  }
};

struct Answer {
  static constexpr MessageType kType = MessageType::kAnswer;
  std::vector<Difference> differences;  ///< None: it can have the machine.

  template <typename A>
  void fields(A& archive) {
    archive(1, differences);
  }
};

struct Prepared {
  static constexpr MessageType kType = MessageType::kPrepared;
  bool sees_locks = false;  ///< Every disk that is written to is seen to be locked, so its lock can tell who has it.

  template <typename A>
  void fields(A& archive) {
    archive(1, sees_locks);
  }
};

struct RoundBegin {
  static constexpr MessageType kType = MessageType::kRoundBegin;
  uint32_t number = 0;  ///< From 1 on.

  template <typename A>
  void fields(A& archive) {
    archive(1, number);
  }
};

struct RoundEnd {
  static constexpr MessageType kType = MessageType::kRoundEnd;
  uint64_t chunk_count = 0;

  template <typename A>
  void fields(A& archive) {
    archive(1, chunk_count);
  }
};

struct RoundDone {
  static constexpr MessageType kType = MessageType::kRoundDone;
  uint32_t number = 0;

  template <typename A>
  void fields(A& archive) {
    archive(1, number);
  }
};

struct Record {
  static constexpr MessageType kType = MessageType::kRecord;
  std::string component;
  std::string kind;
  uint32_t version = 0;
  std::vector<std::byte> payload;

  template <typename A>
  void fields(A& archive) {
    archive(1, component);
    archive(2, kind);
    archive(3, version);
    archive(4, payload);
  }
};

struct StateEnd {
  static constexpr MessageType kType = MessageType::kStateEnd;
  uint32_t record_count = 0;
  bool paused = false;  ///< The machine's user had paused it: it is not to run before the user says so.

  template <typename A>
  void fields(A& archive) {
    archive(1, record_count);
    archive(2, paused);
  }
};

struct Ready {
  static constexpr MessageType kType = MessageType::kReady;
  ChecksumField ram_checksum{};  ///< Zero unless it was asked for.

  template <typename A>
  void fields(A& archive) {
    archive(1, ram_checksum);
  }
};

struct Commit {
  static constexpr MessageType kType = MessageType::kCommit;

  template <typename A>
  void fields(A& /*archive*/) {}
};

struct Committed {
  static constexpr MessageType kType = MessageType::kCommitted;

  template <typename A>
  void fields(A& /*archive*/) {}
};

struct Failure {
  static constexpr MessageType kType = MessageType::kFailure;
  std::string reason;

  template <typename A>
  void fields(A& archive) {
    archive(1, reason);
  }
};

}  // namespace tandem::migration
