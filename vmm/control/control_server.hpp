// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "devices/backend/listening_socket.hpp"
#include "vmm/control/control_commands.hpp"
#include "vmm/control/control_protocol.hpp"
#include "vmm/control/job_runner.hpp"
#include "vmm/lib/event_loop/event_loop.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::control {

/// Serves the clients of one VM's control socket, on the control thread's loop. Spec: docs/control.md.
///
/// A client that sends rubbish, too much, half a line or nothing, or that does not read, holds up nobody: what is kept for
/// one is bounded, its requests wait while it does not read its replies, and when there are too many clients the one
/// that has been silent longest has to go.
/// @thread the loop's.
class ControlServer {
 public:
  static constexpr size_t kMaxClients = 32;
  /// Replies that a client has not read, with which no more of its requests are looked at [bytes].
  static constexpr size_t kMaxQueuedBytes = 64U << 10;

  /// @pre `loop` and `jobs` outlive it.
  static Result<std::unique_ptr<ControlServer>> create(EventLoop& loop, devices::ListeningSocket socket,
                                                       JobRunner& jobs, std::vector<ControlCommand> commands);
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer();

  /// Cancels the job, and lets clients have their last replies, for a moment. The end of the server does the same.
  /// @pre the loop does not run any more.
  void finish();
  [[nodiscard]] size_t client_count() const { return clients_.size(); }

 private:
  struct Client;
  ControlServer(EventLoop& loop, devices::ListeningSocket socket, JobRunner& jobs,
                std::vector<ControlCommand> commands);

  void accept_client();
  void pause_accepting();
  Result<void> add_client(UniqueFd socket);
  void make_room();

  void serve(Client& client);
  void serve_again(uint64_t client_key);
  void hand_over(Client& client, TakeOver take_over);
  bool work_on(Client& client);
  static bool may_read(const Client& client);
  void answer_requests(Client& client);
  void handle(Client& client, const std::string& line);
  Result<void> start(Client& client, const ControlRequest& request);
  Result<void> start_job(Client& client, const ControlRequest& request, Job job);
  void on_job_progress(uint64_t client_key, std::optional<uint64_t> id, const JobProgress& progress);
  void on_job_end(uint64_t client_key, std::optional<uint64_t> id, Result<Json> result);
  void remove(Client& client);

  EventLoop& loop_;
  devices::ListeningSocket socket_;
  JobRunner& jobs_;
  const std::vector<ControlCommand> commands_;
  EventLoop::Watch socket_watch_;
  UniqueFd accept_timer_;  // armed after a client could not be accepted
  EventLoop::Watch accept_timer_watch_;
  uint64_t next_key_ = 1;
  uint64_t activity_ = 0;  // counts what clients do, to tell who has been silent longest
  std::map<uint64_t, std::unique_ptr<Client>> clients_;
};

}  // namespace tandem::control
