// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "devices/backend/net_backend.hpp"
#include "devices/bus/device_executor.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::devices {

/// A tap interface of the host, made and configured by whoever runs the host: Tandem attaches to it and changes nothing.
/// A name without an interface is an error, because an interface created here would be down and connected to nothing.
class TapBackend final : public NetBackend {
 public:
  /// Attaches to the tap interface `name`.
  /// @param executor  of the device that will own the backend.
  /// @errors  Errc::kInvalidArgument: no name of an interface, or the interface is no tap; Errc::kNotFound: there is no
  ///          such interface; Errc::kBusy: another process is attached; Errc::kPermission.
  static Result<std::unique_ptr<TapBackend>> open(const std::string& name, DeviceExecutor& executor);

  [[nodiscard]] NetOffloads offloads() const override { return offloads_; }
  [[nodiscard]] uint16_t mtu() const override { return mtu_; }
  void set_client(NetClient* client) override { client_ = client; }
  void wait_for(Events events) override;
  Result<void> start(NetOffloads receive) override;
  NetTransfer receive(std::span<const iovec> places) override;
  NetTransfer send(std::span<const iovec> pieces) override;

 private:
  TapBackend(UniqueFd fd, NetOffloads offloads, uint16_t mtu) : fd_(std::move(fd)), offloads_(offloads), mtu_(mtu) {}
  void drop_pending() const;

  // Fixed configuration
  UniqueFd fd_;
  const NetOffloads offloads_;
  const uint16_t mtu_;
  // Connections
  NetClient* client_ = nullptr;
  EventLoop::Watch watch_;  // after fd_: ends before the descriptor is closed
  // Book-keeping
  Events waiting_for_ = Events::kNone;
};

/// Checks that `name` can be the name of a network interface.
/// @errors  Errc::kInvalidArgument.
Result<void> check_interface_name(std::string_view name);

}  // namespace tandem::devices
