#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts more guests than a host of the tandem kernel has VMIDs, and has them write and check RAM at the same addresses.
# In either way of flushing, with VHE and without: no guest finds what is not its own, and the counters are what that way
# makes them. usage: vmid_rollover.sh [GUESTS [SECONDS]]     [40 guests of two vCPUs, 20 s, 8 CPUs, 15 VMIDs]
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
guests=${1:-40} seconds=${2:-20} failed=0

# counter NAME: of the last run.
counter() { sed -n "s/^$1 //p" "$answer"; }

# is_right FLUSH: the counters of a run with that way of flushing.
is_right() {
  local used=vmid_flush_local unused=vmid_flush_broadcast
  [ "$1" = local ] || used=vmid_flush_broadcast unused=vmid_flush_local
  [ "$(counter guests_failed)" = 0 ] && [ "$(counter vmid_bits)" = 4 ] && [ "$(counter vmid_rollovers)" -gt 0 ] &&
    [ "$(counter $used)" -gt 0 ] && [ "$(counter $unused)" = 0 ]
}

answer=$(mktemp)
trap 'rm -f "$answer"' EXIT
for cpu in max cortex-a72; do
  for flush in local broadcast; do
    "$top/scripts/testbed" --kernel "${TANDEM_KERNEL:-tandem}" --cpu "$cpu" --smp 8 --memory 4G --timeout 1200 \
      --append "kvm-arm.vmid_bits=4 kvm-arm.vmid_flush=$flush" -- \
      "$top/tests/kernel/vmid_guests.sh" "$guests" "$seconds" "$top/build/arm64" </dev/null >"$answer" || true
    if is_right "$flush"; then
      echo "ok: $cpu, $flush: $guests guests, $(counter vmid_rollovers) rollovers, $(counter vmid_flush_local) local and" \
        "$(counter vmid_flush_broadcast) broadcast flushes, $(counter vmid_running_at_rollover) running at rollovers"
    else
      echo "FAILED: $cpu, $flush: $(tr '\n' ' ' <"$answer")"
      failed=1
    fi
  done
done
exit "$failed"
