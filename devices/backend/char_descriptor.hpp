// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::devices {

/// How a read or write that does not wait ended.
enum class IoStatus : uint8_t {
  kDone,        ///< Some bytes were moved.
  kWouldBlock,  ///< None now; try when the descriptor is ready.
  kNoSpace,     ///< The file system is full; later writes may succeed.
  kBackground,  ///< The terminal belongs to another process group; to read it would stop this one.
  kEnd,         ///< Nothing will come or go any more.
};

struct IoResult {
  IoStatus status;
  size_t count = 0;
};

/// A descriptor that is read or written without ever waiting for the other end.
///
/// The standard descriptors belong to an open file description that other processes share, a shell's for instance. To set
/// O_NONBLOCK there would change it for them too; so each kind of file has its own way of not waiting.
class CharDescriptor {
 public:
  enum class Direction : bool { kRead, kWrite };

  /// Another descriptor for the file behind `fd`, which stays as it is.
  /// @errors  Errc::kInvalidArgument: a directory. Errc::kIo: `fd` is not open.
  static Result<CharDescriptor> share(int fd, Direction direction);
  /// Takes over a descriptor whose description is ours alone, and has O_NONBLOCK set if it could wait.
  static CharDescriptor own(UniqueFd fd) { return {std::move(fd), Kind::kOwn}; }
  /// As `own`, for a socket.
  static CharDescriptor own_socket(UniqueFd fd) { return {std::move(fd), Kind::kSocket}; }
  /// As `own`, for the master side of a pseudoterminal.
  static CharDescriptor own_pty_master(UniqueFd fd) { return {std::move(fd), Kind::kPtyMaster}; }

  /// Reads what is there. @pre out is not empty.
  IoResult read(std::span<std::byte> out);
  /// Writes what there is room for. @pre bytes is not empty.
  IoResult write(std::span<const std::byte> bytes);

  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  enum class Kind : uint8_t {
    kOwn,             // O_NONBLOCK, or a file that never waits
    kTerminal,        // as kOwn, but read in the foreground only
    kPtyMaster,       // as kOwn, but takes output when no one has the other side open
    kSocket,          // MSG_DONTWAIT
    kShared,          // a pipe or device that could not be opened anew: asked before each transfer
    kSharedTerminal,  // as kShared; ready means room for no more than a byte
  };
  CharDescriptor(UniqueFd fd, Kind kind) : fd_(std::move(fd)), kind_(kind) {}

  UniqueFd fd_;
  Kind kind_;
};

/// Whether reading the terminal `fd` does not stop the process: it has the foreground, or `fd` is not its controlling
/// terminal. @thread any, also a signal handler.
[[nodiscard]] bool is_in_foreground(int fd);

}  // namespace tandem::devices
