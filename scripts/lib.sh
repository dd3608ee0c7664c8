# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by every script: messages, the cache, and packages. No side effects when sourced.

tandem_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly tandem_top
# Without HOME, as services start, bash takes ~ from the user database.
readonly tandem_cache="${XDG_CACHE_HOME:-${HOME:-$(unset HOME && echo ~)}/.cache}/tandem"
readonly tandem_program="${0##*/}"

# say TEXT…: progress, on stderr so that stdout carries results only.
say() { printf '%s: %s\n' "$tandem_program" "$*" >&2; }

# die TEXT…: one line, exit status 1.
die() {
  say "$@"
  exit 1
}

# usage_error TEXT…: one line, exit status 2.
usage_error() {
  say "$* (see --help)"
  exit 2
}

# is_arm64_host: true where arm64 code runs natively and KVM is there.
is_arm64_host() { [ "$(uname -m)" = aarch64 ] && [ -e /dev/kvm ]; }

# content_key FILE…: a key that changes when a file's content changes.
content_key() { cat -- "$@" | sha256sum | cut -c1-16; }

# text_key TEXT…: a key that changes when a text changes.
text_key() { printf '%s\0' "$@" | sha256sum | cut -c1-16; }

# with_lock NAME COMMAND…: runs COMMAND while no other script holds the lock NAME.
with_lock() {
  local name=$1
  shift
  mkdir -p "$tandem_cache"
  (
    flock 9
    "$@" 9>&-
  ) 9>"$tandem_cache/$name.lock"
}

# _are_installed NAME…: asks about all at once, which takes as long as about one.
_are_installed() {
  local states
  states=$(dpkg-query -W -f '${db:Status-Status}\n' "$@" 2>/dev/null) && [ "$(sort -u <<<"$states")" = installed ]
}

_install_missing() {
  local package missing=()
  ! _are_installed "$@" || return 0
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  [ "$(id -u)" = 0 ] || die "these packages are missing, and only root can install them: ${missing[*]}"
  say "installing packages: ${missing[*]}"
  local log
  log=$(mktemp)
  export DEBIAN_FRONTEND=noninteractive
  if ! { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } </dev/null >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    die "apt-get could not install: ${missing[*]} (log: $log)"
  fi
  rm -f "$log"
}

_add_arm64() {
  [ "$(dpkg --print-architecture)" = arm64 ] && return 0
  dpkg --print-foreign-architectures | grep -qx arm64 || dpkg --add-architecture arm64
}

# have_tools NAME…: true if every one is on the PATH ('command -v' is content with one of them).
have_tools() { type -P "$@" >/dev/null; }

# need_packages NAME…: installs the Debian packages that are not there yet. A name may carry
# an architecture (libfdt-dev:arm64); arm64 is added as a foreign architecture when needed.
need_packages() {
  case "$*" in *:arm64*) with_lock packages _add_arm64 ;; esac
  with_lock packages _install_missing "$@"
}
