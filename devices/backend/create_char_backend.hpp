// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "devices/backend/char_backend.hpp"
#include "devices/bus/device_executor.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::devices {

/// Which host's end a console gets.
struct CharBackendChoice {
  enum class Kind : uint8_t { kNone, kStdio, kPty, kFile, kSocket };
  Kind kind = Kind::kNone;
  std::string path;  ///< For kFile and kSocket.
  std::function<void()>
      on_quit{};  ///< For kStdio: the user asks for the end. Called on the event loop, under the mutex.
};

/// Opens the host's end of a console.
/// @param executor  that of the device which gets the backend.
/// @pre     the loop is not running, or the executor's mutex is held. SIGPIPE is ignored.
/// @errors  whatever the file, socket or terminal answers; see the classes.
Result<std::unique_ptr<CharBackend>> create_char_backend(const CharBackendChoice& choice, DeviceExecutor& executor);

}  // namespace tandem::devices
