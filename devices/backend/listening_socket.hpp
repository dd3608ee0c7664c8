// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::devices {

/// A Unix stream socket that listens at a path, which only the owner may connect to; the path goes with it. Of several of us that
/// want one path at the same time one gets it.
class ListeningSocket {
 public:
  static constexpr int kShortBacklog = 4;

  /// A socket that a process left behind, and no one listens at any more, is replaced.
  /// @errors  Errc::kOutOfRange: the path is too long for an address. Errc::kBusy: another process listens there, or keeps the directory locked.
  ///          Errc::kExists: something else than a socket is there.
  /// @param backlog  most clients that wait to be accepted; the next ones have to wait, or to try again.
  static Result<ListeningSocket> create(std::string path, int backlog = kShortBacklog);
  ListeningSocket(ListeningSocket&& other) noexcept = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  /// The next client, with O_NONBLOCK; no descriptor if there is none.
  /// @errors  Errc::kIo and others: the process or the host is out of descriptors or memory.
  [[nodiscard]] Result<UniqueFd> accept() const;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  ListeningSocket(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Result<void> remember_inode();

  UniqueFd fd_;
  std::string path_;
  dev_t device_ = 0;  // with inode_, what was made at the path: only that is removed
  ino_t inode_ = 0;
};

}  // namespace tandem::devices
