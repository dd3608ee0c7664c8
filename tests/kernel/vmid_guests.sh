#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What vmid_rollover.sh runs in the testbed: guests that write and check RAM until a character comes, each with a pattern of its
# own, and end with status 0 if all that they found was theirs; then the counters of VMIDs.
# usage: vmid_guests.sh GUESTS SECONDS BUILD
place=$(mktemp -d) bad=0 pids=''
for i in $(seq "$1"); do
  { sleep "$2" && echo x; } | "$3/tandem" run --kernel "$3/tests/guest/payloads/ram_writer.img" --cpus 2 --memory 32M \
    --cmdline "pages=96 stamp=$i" >"$place/$i" 2>&1 &
  pids="$pids $!"
done
i=0
for pid in $pids; do
  i=$((i + 1))
  wait "$pid" && grep -q '^EXIT 0' "$place/$i" && continue
  bad=$((bad + 1))
  tail -n 3 "$place/$i"
done
echo "guests_failed $bad"
cd /sys/kernel/debug/kvm && grep -H . vmid_* | tr ':' ' '
