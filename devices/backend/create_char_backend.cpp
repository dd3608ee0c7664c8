// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/create_char_backend.hpp"

#include "devices/backend/file_backend.hpp"
#include "devices/backend/pty_backend.hpp"
#include "devices/backend/socket_backend.hpp"
#include "devices/backend/stdio_backend.hpp"

namespace tandem::devices {

Result<std::unique_ptr<CharBackend>> create_char_backend(const CharBackendChoice& choice, DeviceExecutor& executor) {
  switch (choice.kind) {
    case CharBackendChoice::Kind::kNone:
      return std::make_unique<NullBackend>();
    case CharBackendChoice::Kind::kStdio:
      return StdioBackend::create(executor, {.on_quit = choice.on_quit ? choice.on_quit : [] {}});
    case CharBackendChoice::Kind::kPty:
      return PtyBackend::create(executor);
    case CharBackendChoice::Kind::kFile:
      return FileBackend::create(executor, choice.path);
    case CharBackendChoice::Kind::kSocket:
      return SocketBackend::create(executor, choice.path);
  }
  TANDEM_UNREACHABLE("all kinds are handled");
}

}  // namespace tandem::devices
