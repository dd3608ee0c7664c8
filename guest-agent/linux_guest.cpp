// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/linux_guest.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/random.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstring>
#include <ctime>

#include "guest-agent/neighbours.hpp"
#include "guest-agent/program.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::agent {
namespace {

constexpr int64_t kNsPerS = 1'000'000'000;

Result<void> control_filesystem(const std::string& mount_point, unsigned long request) {
  const UniqueFd place(::open(mount_point.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!place || ::ioctl(place.get(), request, 0) != 0) {
    return fail_errno("{}", mount_point);
  }
  return {};
}

int64_t realtime_ns_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * kNsPerS + now.tv_nsec;
}

/// Runs one of init's programs, and says how it failed, if it has by `kLimitMs`.
Result<void> ask_init(const std::string& name) {
  constexpr int kLimitMs = 10'000;
  Program program = TANDEM_TRY(Program::start({.arguments = {name}}));
  pollfd ended{.fd = program.pidfd(), .events = POLLIN, .revents = 0};
  if (::poll(&ended, 1, kLimitMs) != 1) {
    return fail(Errc::kIo, "{} does not end", name);
  }
  if (const ExecEnded how = program.reap(); how.status != 0) {
    return fail(Errc::kIo, "{} failed", name);
  }
  return {};
}

}  // namespace

Result<std::vector<Mount>> LinuxGuest::block_mounts() {
  return each_once(parse_block_mounts(TANDEM_TRY(read_kernel_file("/proc/self/mountinfo"))), is_on_top);
}

Result<void> LinuxGuest::freeze(const std::string& mount_point) { return control_filesystem(mount_point, FIFREEZE); }

Result<void> LinuxGuest::thaw(const std::string& mount_point) { return control_filesystem(mount_point, FITHAW); }

Result<int64_t> LinuxGuest::set_realtime(uint64_t realtime_ns) {
  if (realtime_ns > static_cast<uint64_t>(INT64_MAX)) {
    return fail(Errc::kInvalidArgument, "no such time");
  }
  const auto wanted = static_cast<int64_t>(realtime_ns);
  const timespec time{.tv_sec = wanted / kNsPerS, .tv_nsec = wanted % kNsPerS};
  const int64_t before = realtime_ns_now();
  if (::clock_settime(CLOCK_REALTIME, &time) != 0) {
    return fail_errno("clock_settime");
  }
  return wanted - before;
}

Result<void> LinuxGuest::reseed(std::span<const std::byte> seed) {
  /// As the kernel wants it; its own struct ends in an array without a length.
  struct Entropy {
    int bit_count;
    int byte_count;
    std::array<std::byte, kMaxSeedBytes> bytes;
  } entropy{static_cast<int>(seed.size() * CHAR_BIT), static_cast<int>(seed.size()), {}};
  static_assert(offsetof(Entropy, bytes) == sizeof(rand_pool_info));
  if (seed.size() > entropy.bytes.size()) {
    return fail(Errc::kInvalidArgument, "a seed of {} bytes", seed.size());
  }
  std::memcpy(entropy.bytes.data(), seed.data(), seed.size());
  const UniqueFd random(::open("/dev/urandom", O_RDWR | O_CLOEXEC));
  if (!random) {
    return fail_errno("/dev/urandom");
  }
  if (::ioctl(random.get(), RNDADDENTROPY, &entropy) != 0) {
    return fail_errno("RNDADDENTROPY");
  }
  if (::ioctl(random.get(), RNDRESEEDCRNG) != 0) {
    return fail_errno("RNDRESEEDCRNG");
  }
  return {};
}

Result<std::vector<NetworkAddress>> LinuxGuest::announce() { return announce_addresses(); }

bool LinuxGuest::is_forced(const PowerRequest& request) const { return request.forced || shutdown_ == Shutdown::kByUs; }

void LinuxGuest::sync() { ::sync(); }

Result<void> LinuxGuest::power(const PowerRequest& request) {
  if (!is_forced(request)) {
    return ask_init(request.reboots ? "reboot" : "poweroff");
  }
  ::reboot(request.reboots ? RB_AUTOBOOT : RB_POWER_OFF);
  return fail_errno("reboot");
}

}  // namespace tandem::agent
