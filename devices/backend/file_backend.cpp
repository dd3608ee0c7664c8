// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/file_backend.hpp"

#include <fcntl.h>

#include <utility>

#include "vmm/lib/log/log.hpp"

namespace tandem::devices {

Result<std::unique_ptr<FileBackend>> FileBackend::create(DeviceExecutor& executor, std::string path) {
  // O_APPEND: the file may be truncated by others while it grows. O_NONBLOCK: for devices and named pipes.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  constexpr mode_t kMode = 0644;
  UniqueFd fd(::open(path.c_str(), kFlags, kMode));
  if (!fd && errno == EISDIR) {
    return fail(Errc::kInvalidArgument, "{}: is a directory", path);
  }
  if (!fd && errno == ENXIO) {
    return fail(Errc::kIo, "{}: a named pipe that no one reads, or no device", path);
  }
  if (!fd) {
    return fail_errno("{}", path);
  }
  auto output = TANDEM_TRY(CharOutput::create(executor, CharOutput::Unattached::kDrop));
  TANDEM_TRY(output->attach(CharDescriptor::own(std::move(fd)),
                            [path] { log::warn("{}: cannot be written any more; output is dropped", path); }));
  return std::unique_ptr<FileBackend>(new FileBackend(std::move(path), std::move(output)));
}

}  // namespace tandem::devices
