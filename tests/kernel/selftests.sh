#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs KVM's selftests, as the series of kernel-patches/ leave them, on the distribution's kernel and on the tandem kernel.
# What passes on the former has to pass on the latter, and so have the series' own. For each CPU model named (both that
# the testbed has if none is). Perf tests are left out: what they check takes longer than anyone waits.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
place="$top/build/kernel"
own=(pv_vcpu_state fp_switch)
seconds=60 # for each: what does not end by then did not pass
models=("$@")
[ $# -gt 0 ] || models=(max cortex-a72)
failed=0

mkdir -p "$place/selftests"
tests=$("$top/scripts/kernel" --selftests)
cp -f "$tests"/* "$place/selftests/"

# outcomes KERNEL MODEL: writes one line for each test, its name and its exit status; 4 is a skip.
outcomes() {
  local file="$place/selftests-$1-$2.txt"
  # shellcheck disable=SC2016 # for the shell of the testbed
  (cd "$place/selftests" && "$top/scripts/testbed" --kernel "$1" --cpu "$2" --memory 4G --timeout 7200 -- sh -c '
    for test in *; do
      case $test in *_perf_test | *_stress_test | *.txt) continue ;; esac
      status=0
      timeout -s KILL "$0" "./$test" >"/tmp/$test.log" 2>&1 || status=$?
      echo "$test $status"
      [ $status = 0 ] || tail -n 5 "/tmp/$test.log" | sed "s/^/  $test: /" >&2
    done' "$seconds" >"$file" 2>"$file.log") || { echo "FAILED: no testbed for $1 on $2" && return 1; }
  [ "$(wc -l <"$file")" -gt 15 ] || { echo "FAILED: $1 on $2 ran too few tests" && return 1; }
}

# compare MODEL: prints what fails under the tandem kernel alone; none must.
compare() {
  local before="$place/selftests-stock-$1.txt" after="$place/selftests-tandem-$1.txt" test status=0
  for test in $(sed -n 's/ 0$//p' "$before") "${own[@]}"; do
    grep -qx "$test 0" "$after" || { echo "FAILED: $test on $1: $(grep "^$test " "$after" || echo "$test did not run")" && status=1; }
  done
  [ "$status" != 0 ] || echo "ok: $1: all $(grep -c ' 0$' "$before") selftests that pass under the stock kernel, and ${own[*]}"
  return "$status"
}

for model in "${models[@]}"; do
  if ! outcomes stock "$model" || ! outcomes tandem "$model" || ! compare "$model"; then
    failed=$((failed + 1))
  fi
done
[ "$failed" = 0 ]
