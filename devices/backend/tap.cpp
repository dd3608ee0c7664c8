// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/tap.hpp"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "vmm/lib/log/log.hpp"

// Linux 6.2
#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif
static_assert(TUN_F_USO4 == 0x20 && TUN_F_USO6 == 0x40);

namespace tandem::devices {
namespace {

/// Length of struct virtio_net_hdr_v1 in front of each packet.
constexpr int kHeaderBytes = 12;

/// Packets that wait in a tap nobody reads: its queue length, 1000 unless the host's owner wants more.
constexpr int kMaxPendingPackets = 4096;

constexpr unsigned kTsoFlags = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;

ifreq request_for(const std::string& name) {
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), std::min(name.size(), sizeof request.ifr_name - 1));
  return request;
}

Result<void> check_interface_exists(const std::string& name) {
  if (::if_nametoindex(name.c_str()) == 0) {
    return fail(Errc::kNotFound,
                "there is no such interface; make one with: ip tuntap add dev {} mode tap && ip link set dev {} up",
                name, name);
  }
  return {};
}

Result<UniqueFd> attach(const std::string& name) {
  UniqueFd fd(::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    return fail_errno("open /dev/net/tun");
  }
  ifreq request = request_for(name);
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(fd.get(), TUNSETIFF, &request) == 0) {
    return fd;
  }
  switch (errno) {
    case EBUSY:
      return fail(Errc::kBusy, "another process is attached to it");
    case EINVAL:
      return fail(Errc::kInvalidArgument,
                  "not a tap interface, or made with options that do not fit (multi_queue, pi)");
    case EPERM:
      return fail(Errc::kPermission,
                  "this user may not attach to it; make it with: ip tuntap add dev {} mode tap user USER", name);
    default:
      return fail_errno("TUNSETIFF");
  }
}

bool set_offloads(int fd, unsigned flags) { return ::ioctl(fd, TUNSETOFFLOAD, static_cast<unsigned long>(flags)) == 0; }

/// What the host's kernel can do, found by trying.
NetOffloads probe_offloads(int fd) {
  const bool tso = set_offloads(fd, kTsoFlags);
  const bool uso = tso && set_offloads(fd, kTsoFlags | TUN_F_USO4 | TUN_F_USO6);
  return {.checksum = tso || set_offloads(fd, TUN_F_CSUM), .tso4 = tso, .tso6 = tso, .ecn = tso, .uso = uso};
}

unsigned flags_of(NetOffloads offloads) {
  if (!offloads.checksum) {
    return 0;
  }
  return TUN_F_CSUM | (offloads.tso4 ? TUN_F_TSO4 : 0U) | (offloads.tso6 ? TUN_F_TSO6 : 0U) |
         (offloads.ecn ? TUN_F_TSO_ECN : 0U) | (offloads.uso ? TUN_F_USO4 | TUN_F_USO6 : 0U);
}

/// The interface's MTU; says so in the log when the interface is down.
Result<uint16_t> inspect(const std::string& name) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) {
    return fail_errno("socket");
  }
  ifreq request = request_for(name);
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) {
    return fail_errno("SIOCGIFFLAGS");
  }
  if ((request.ifr_flags & IFF_UP) == 0) {
    log::warn("tap {} is down: nothing passes until it is up (ip link set dev {} up)", name, name);
  }
  request = request_for(name);
  if (::ioctl(socket.get(), SIOCGIFMTU, &request) != 0) {
    return fail_errno("SIOCGIFMTU");
  }
  return static_cast<uint16_t>(std::clamp(request.ifr_mtu, 0, UINT16_MAX));
}

/// Repeats a transfer that a signal interrupted.
template <typename Call>
ssize_t without_interruption(Call call) {
  ssize_t done = 0;
  do {
    done = call();
  } while (done < 0 && errno == EINTR);
  return done;
}

}  // namespace

Result<void> check_interface_name(std::string_view name) {
  if (name.empty() || name.size() >= IFNAMSIZ) {
    return fail(Errc::kInvalidArgument, "the name of a network interface has 1 to {} bytes, not {}", IFNAMSIZ - 1,
                name.size());
  }
  // '%' is legal, but makes TUNSETIFF invent a name.
  const auto is_bad = [](char c) { return c <= ' ' || c == 0x7f || c == '/' || c == ':' || c == '%'; };
  if (name == "." || name == ".." || std::ranges::any_of(name, is_bad)) {
    return fail(Errc::kInvalidArgument, "'{}' is no name of a network interface", name);
  }
  return {};
}

Result<std::unique_ptr<TapBackend>> TapBackend::open(const std::string& name, DeviceExecutor& executor) {
  TANDEM_TRY(check_interface_name(name));
  const std::string doing = fmt::format("tap {}", name);
  TANDEM_TRY(with_context(check_interface_exists(name), doing));
  UniqueFd fd = TANDEM_TRY(with_context(attach(name), doing));
  const int header_bytes = kHeaderBytes;
  if (::ioctl(fd.get(), TUNSETVNETHDRSZ, &header_bytes) != 0) {
    return fail_errno("{}: TUNSETVNETHDRSZ", doing);
  }
  const NetOffloads offloads = probe_offloads(fd.get());
  const uint16_t mtu = TANDEM_TRY(with_context(inspect(name), doing));
  std::unique_ptr<TapBackend> tap(new TapBackend(std::move(fd), offloads, mtu));
  tap->watch_ = TANDEM_TRY(executor.watch(tap->fd_.get(), Events::kNone, [tap = tap.get()](Events events) {
    // An event may be on its way when the client stops to wait for it.
    if (tap->client_ != nullptr && tap->waiting_for_ != Events::kNone) {
      tap->client_->net_ready(events);
    }
  }));
  TANDEM_TRY(with_context(tap->start({}), doing));
  return tap;
}

void TapBackend::wait_for(Events events) {
  if (events != waiting_for_) {
    waiting_for_ = events;
    watch_.set_events(events);
  }
}

Result<void> TapBackend::start(NetOffloads receive) {
  if (!set_offloads(fd_.get(), flags_of(receive))) {
    return fail_errno("TUNSETOFFLOAD");
  }
  drop_pending();
  return {};
}

void TapBackend::drop_pending() const {
  std::array<std::byte, 64> start_of_packet{};
  for (int count = 0; count < kMaxPendingPackets; ++count) {
    if (::read(fd_.get(), start_of_packet.data(), start_of_packet.size()) < 0) {
      return;
    }
  }
}

NetTransfer TapBackend::receive(std::span<const iovec> places) {
  const ssize_t done =
      without_interruption([&] { return ::readv(fd_.get(), places.data(), static_cast<int>(places.size())); });
  if (done >= 0) {
    return static_cast<size_t>(done);
  }
  return std::unexpected(errno == EAGAIN ? NetStall::kWouldBlock : NetStall::kGone);
}

NetTransfer TapBackend::send(std::span<const iovec> pieces) {
  const ssize_t done =
      without_interruption([&] { return ::writev(fd_.get(), pieces.data(), static_cast<int>(pieces.size())); });
  if (done >= 0) {
    return static_cast<size_t>(done);
  }
  switch (errno) {
    case EAGAIN:
      return std::unexpected(NetStall::kWouldBlock);
    case EBADFD:
      return std::unexpected(NetStall::kGone);
    default:  // EIO: the interface is down; EINVAL: the header makes no sense; ENOMEM
      return std::unexpected(NetStall::kDropped);
  }
}

}  // namespace tandem::devices
