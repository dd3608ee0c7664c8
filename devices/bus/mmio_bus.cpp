// SPDX-License-Identifier: Apache-2.0
#include "devices/bus/mmio_bus.hpp"

#include <algorithm>

#include "vmm/lib/bits/bits.hpp"

namespace tandem::devices {
namespace {

std::string_view text_of(BadAccess bad) {
  switch (bad) {
    case BadAccess::kNoRegister:
      return "no register";
    case BadAccess::kWidth:
      return "width not allowed";
    case BadAccess::kAlignment:
      return "not aligned";
    case BadAccess::kReadOnly:
      return "read-only register";
    case BadAccess::kWriteOnly:
      return "write-only register";
  }
  return "bad access";
}

}  // namespace

Result<void> MmioBus::map(GuestRange window, std::string name, MmioHandler& handler, std::mutex& mutex) {
  for (const Window& other : windows_) {
    if (other.range.overlaps(window)) {
      return fail(Errc::kExists, "window of {} at {:#x} overlaps that of {}", name, window.base().value(), other.name);
    }
  }
  const auto place =
      std::ranges::upper_bound(windows_, window.base(), {}, [](const Window& w) { return w.range.base(); });
  windows_.insert(place, {window, std::move(name), &handler, &mutex});
  return {};
}

const MmioBus::Window* MmioBus::find(GuestAddr addr, unsigned width_bytes) const {
  const auto access = GuestRange::create(addr, width_bytes);
  const auto after = std::ranges::upper_bound(windows_, addr, {}, [](const Window& w) { return w.range.base(); });
  if (!access || after == windows_.begin() || !std::prev(after)->range.contains(*access)) {
    return nullptr;
  }
  return &*std::prev(after);
}

uint64_t MmioBus::read(GuestAddr addr, unsigned width_bytes) {
  const Window* const window = find(addr, width_bytes);
  if (window == nullptr) {
    note("read", addr, width_bytes, "nothing is there");
    return 0;
  }
  const auto value = [&] {
    const std::lock_guard lock(*window->mutex);
    return window->handler->read({.offset = window->range.offset_of(addr), .width_bytes = width_bytes});
  }();
  if (!value) {
    note("read", addr, width_bytes, text_of(value.error()));
    return 0;
  }
  return low_bytes(*value, width_bytes);
}

void MmioBus::write(GuestAddr addr, unsigned width_bytes, uint64_t value) {
  const Window* const window = find(addr, width_bytes);
  if (window == nullptr) {
    note("write", addr, width_bytes, "nothing is there");
    return;
  }
  const auto done = [&] {
    const std::lock_guard lock(*window->mutex);
    return window->handler->write({.offset = window->range.offset_of(addr), .width_bytes = width_bytes},
                                  low_bytes(value, width_bytes));
  }();
  if (!done) {
    note("write", addr, width_bytes, text_of(done.error()));
  }
}

void MmioBus::note(const char* access, GuestAddr addr, unsigned width_bytes, std::string_view why) {
  if (const uint64_t count = bad_accesses_.count(); count != 0) {
    log::debug("guest {} of {} bytes at {:#x}: {} ({} bad accesses so far)", access, width_bytes, addr.value(), why,
               count);
  }
}

}  // namespace tandem::devices
