#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that the tandem kernel shows programs and guests the same CPU as the distribution's kernel does:
# HWCAPs, identification registers, KVM capabilities and the registers KVM has. For each CPU model named
# (all that the testbed has if none is) both kernels must answer alike.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
place="$top/build/kernel"
models=("$@")
[ $# -gt 0 ] || models=(max cortex-a72)
failed=0

compiler=g++
[ "$(uname -m)" = aarch64 ] || compiler=aarch64-linux-gnu-g++
mkdir -p "$place"
"$compiler" -std=c++20 -O1 -static -Wall -Wextra -Werror -o "$place/id_registers" "$top/tests/kernel/id_registers.cpp"

# answers KERNEL MODEL: prints what the kernel shows on the model; a short answer is a failure.
answers() {
  local file="$place/cpu-$1-$2.txt"
  (cd "$place" && "$top/scripts/testbed" --kernel "$1" --cpu "$2" --smp 1 --timeout 300 -- ./id_registers >"$file")
  [ "$(grep -c '^guest ' "$file")" -gt 50 ] || { echo "FAILED: $1 on $2 gave no full answer" && return 1; }
}

for model in "${models[@]}"; do
  if ! answers stock "$model" || ! answers tandem "$model"; then
    failed=$((failed + 1))
  elif diff -u "$place/cpu-stock-$model.txt" "$place/cpu-tandem-$model.txt"; then
    echo "ok: $model is the same CPU under both kernels ($(wc -l <"$place/cpu-stock-$model.txt") facts)"
  else
    echo "FAILED: $model differs between the stock kernel (-) and the tandem kernel (+)"
    failed=$((failed + 1))
  fi
done
[ "$failed" = 0 ]
