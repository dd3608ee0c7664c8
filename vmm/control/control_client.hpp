// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "vmm/control/control_protocol.hpp"
#include "vmm/control/line_channel.hpp"
#include "vmm/lib/deadline/deadline.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::control {

/// How long a VM may take to answer what needs no work.
inline constexpr std::chrono::seconds kControlAnswerLimit{30};

/// The client's end of a VM's control socket.
class ControlClient {
 public:
  using OnProgress = std::function<void(const JobProgress&)>;

  /// Connects to the VM called `name`.
  /// @errors  Errc::kInvalidArgument: that is no name. Errc::kNotFound: no such VM. As connect(2) fails.
  static Result<ControlClient> connect(const std::string& directory, const std::string& name);

  /// Asks, and waits for the result. A job may take as long as it does: give it a deadline without end.
  /// @errors  those of the command; Errc::kClosed: the VM has ended. Errc::kIo: no answer in time.
  Result<Json> ask(const std::string& command, const Json& arguments,
                   const Deadline& deadline = Deadline(kControlAnswerLimit), const OnProgress& on_progress = nullptr);

  /// Waits for the end of the VM. @return false: the time is over.
  Result<bool> wait_for_end(const Deadline& deadline);

  /// After `console`: what came behind the result, and the socket, which carries the bytes of the console from then on.
  [[nodiscard]] std::string take_rest() { return channel_.take_rest(); }
  [[nodiscard]] UniqueFd take_socket() && { return std::move(channel_).take(); }

 private:
  explicit ControlClient(UniqueFd socket) : channel_(std::move(socket), kMaxReplyBytes) {}
  Result<void> send(const std::string& line, const Deadline& deadline);
  /// Waits for something to read. @errors Errc::kIo: no answer in time.
  Result<void> wait_readable(const Deadline& deadline);
  Result<ControlReply> receive(const Deadline& deadline);

  LineChannel channel_;
  uint64_t next_id_ = 1;
};

}  // namespace tandem::control
