// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/migration_report.hpp"

#include <fmt/format.h>

namespace tandem::migration {
namespace {

double milliseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

double mebibytes(uint64_t bytes) { return static_cast<double>(bytes) / (1U << 20); }

}  // namespace

std::string_view text_of(MigrationPhase phase) {
  switch (phase) {
    case MigrationPhase::kHello:
      return "comparing machines";
    case MigrationPhase::kImages:
      return "sending boot images";
    case MigrationPhase::kPreparing:
      return "waiting for the machine there";
    case MigrationPhase::kRam:
      return "copying RAM";
    case MigrationPhase::kStopped:
      return "stopped, copying the rest";
    case MigrationPhase::kHandOver:
      return "handing over";
    case MigrationPhase::kOver:
      return "over";
  }
  return "unknown";
}

std::string MigrationReport::text() const {
  return fmt::format(
      "total      {:10.1f} ms\n"
      "sent       {:10.1f} MiB\n"
      "RAM copied {:10.1f} MiB in {} rounds{}\n"
      "throttle   {:10} %\n"
      "downtime   {:10.1f} ms = pause and save {:.1f} + remainder {:.1f} + state {:.1f} + hand-over {:.1f}\n",
      milliseconds(total), mebibytes(sent_bytes), mebibytes(copied_bytes), rounds,
      ram_compared ? ", compared equal" : "", throttle_percent, milliseconds(downtime.total()),
      milliseconds(downtime.pause), milliseconds(downtime.remainder), milliseconds(downtime.state),
      milliseconds(downtime.hand_over));
}

}  // namespace tandem::migration
