// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "guest-agent/protocol/frame_channel.hpp"
#include "guest-agent/protocol/messages.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::agent {

/// Where events come from.
struct EventSources {
  std::string kernel_log = "/dev/kmsg";
  std::string folder = "/run/tandem-agent";  ///< Exists; init makes the file boot-finished in it.
};

/// The event that a record of /dev/kmsg tells of, if any: `priority,sequence,microseconds,…;text`. What programs wrote tells of none.
std::optional<Event> event_in(std::string_view record);

/// Sends events until the client goes. @errors  Errc::kClosed: it has.
Result<void> send_events(FrameChannel& channel, const EventSources& sources);

}  // namespace tandem::agent
