// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/kernel_events.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <span>

#include "guest-agent/guest_facts.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::agent {
namespace {

constexpr std::string_view kBootFinished = "boot-finished";

struct Sign {
  std::string_view text;
  std::string_view kind;
};
/// Where one of these is in the kernel's words, its event has happened.
constexpr std::array<Sign, 6> kSigns{{{"Kernel panic - not syncing", "panic"},
                                      {"ut of memory: Killed process", "oom"},
                                      {"Internal error: ", "oops"},
                                      {"kernel BUG at ", "oops"},
                                      {"BUG: ", "oops"},
                                      {"Unable to handle kernel ", "oops"}}};

/// Takes a number and the comma behind it off the front of `text`.
std::optional<uint64_t> take_number(std::string_view& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto length = static_cast<size_t>(end - text.data());
  if (error != std::errc() || length == text.size() || (*end != ',' && *end != ';')) {
    return std::nullopt;
  }
  text.remove_prefix(length + (*end == ',' ? 1 : 0));
  return value;
}

/// Watches the events of the guest on behalf of one client.
class EventWatch {
 public:
  EventWatch(FrameChannel& channel, const EventSources& sources)
      : channel_(channel),
        marker_(sources.folder + '/' + std::string(kBootFinished)),
        kernel_log_(::open(sources.kernel_log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)),
        folder_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    ::inotify_add_watch(folder_.get(), sources.folder.c_str(), IN_CREATE | IN_MOVED_TO);
  }

  Result<void> run() {
    while (true) {
      TANDEM_TRY(send_boot_finished());
      TANDEM_TRY(send_kernel_events());
      std::array<pollfd, 3> entries{
          {{channel_.fd(), POLLIN, 0}, {kernel_log_.get(), POLLIN, 0}, {folder_.get(), POLLIN, 0}}};
      if (::poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) {
        return fail_errno("poll");
      }
      if (entries[0].revents != 0) {
        TANDEM_TRY(channel_.fill());
        if (TANDEM_TRY(channel_.next())) {
          return fail(Errc::kCorrupt, "a frame where only the end of the connection is due");
        }
      }
      if ((entries[1].revents & (POLLERR | POLLHUP)) != 0 && (entries[1].revents & POLLIN) == 0) {
        kernel_log_.reset();
      }
    }
  }

 private:
  Result<void> send_boot_finished() {
    std::array<std::byte, 4096> changes;  // NOLINT(cppcoreguidelines-pro-type-member-init): read fills it
    while (::read(folder_.get(), changes.data(), changes.size()) > 0) {
    }
    if (boot_finished_ || ::access(marker_.c_str(), F_OK) != 0) {
      return {};
    }
    boot_finished_ = true;
    return channel_.send(Event{.kind = std::string(kBootFinished), .uptime_ns = uptime_ns(), .text = {}});
  }

  Result<void> send_kernel_events() {
    std::array<char, 8192> record;  // NOLINT(cppcoreguidelines-pro-type-member-init): read fills it
    while (kernel_log_) {
      const ssize_t count = ::read(kernel_log_.get(), record.data(), record.size());
      if (count < 0 && (errno == EPIPE || errno == EINTR)) {
        continue;  // EPIPE: the log has overtaken us, and goes on with what it still has
      }
      if (count <= 0) {
        return {};
      }
      if (const auto event = event_in({record.data(), static_cast<size_t>(count)})) {
        TANDEM_TRY(channel_.send(*event));
      }
    }
    return {};
  }

  FrameChannel& channel_;
  const std::string marker_;
  UniqueFd kernel_log_;
  UniqueFd folder_;
  bool boot_finished_ = false;
};

}  // namespace

std::optional<Event> event_in(std::string_view record) {
  constexpr uint64_t kFacilityShift = 3;
  std::string_view head = record;
  const auto priority = take_number(head);
  const auto sequence = priority ? take_number(head) : std::nullopt;
  const auto microseconds = sequence ? take_number(head) : std::nullopt;
  const size_t start = head.find(';');
  // Facility 0 is the kernel: it gives what programs write another.
  if (!microseconds || (*priority >> kFacilityShift) != 0 || start == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view text = head.substr(start + 1);
  text = text.substr(0, text.find('\n'));
  const auto sign = std::ranges::find_if(kSigns, [&](const Sign& one) { return text.find(one.text) != text.npos; });
  if (sign == kSigns.end()) {
    return std::nullopt;
  }
  return Event{.kind = std::string(sign->kind), .uptime_ns = *microseconds * 1000, .text = std::string(text)};
}

Result<void> send_events(FrameChannel& channel, const EventSources& sources) {
  TANDEM_TRY(channel.send(Done{}));
  return EventWatch(channel, sources).run();
}

}  // namespace tandem::agent
