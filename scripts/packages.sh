# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by scripts, as lib.sh is: arm64 packages that are unpacked into the cache, never installed, and what is
# made from them: kernels and initramfs archives. Nothing of them runs on the build machine.

# shellcheck source=scripts/lib.sh
[ -n "${tandem_cache:-}" ] || . "${BASH_SOURCE[0]%/*}/lib.sh"

readonly tandem_debian="$tandem_cache/debian"

# _need_unpacking_tools: installs what unpacks kernels and modules and packs archives, where a machine lacks it.
_need_unpacking_tools() {
  have_tools cpio depmod modprobe xz zstd || need_packages cpio kmod xz-utils zstd
}

_apt_get() { apt-get -q -o APT::Sandbox::User=root "$@" </dev/null; }

# refresh_lists NAME: makes the package lists know NAME:arm64 (they do not after arm64 was just added).
refresh_lists() {
  apt-cache show --no-all-versions "$1" >/dev/null 2>&1 && return 0
  [ "$(id -u)" = 0 ] || die "the package lists do not know $1, and only root can update them"
  say "updating package lists for $1"
  with_lock packages _add_arm64
  with_lock packages _apt_get update >/dev/null 2>&1 || die "apt-get update failed"
  apt-cache show --no-all-versions "$1" >/dev/null 2>&1
}

# _stamp_is_fresh FILE: the package lists have not changed since FILE was written, or are gone.
_stamp_is_fresh() {
  [ -s "$1" ] && [ -d "$(cat "$1")" ] || return 1
  [ ! -d /var/lib/apt/lists ] || [ ! /var/lib/apt/lists -nt "$1" ]
}

_unpack_package() {
  local name=$1 stamp=$2 work dir deb
  _stamp_is_fresh "$stamp" && return 0
  refresh_lists "$name:arm64" || die "no package $name for arm64 in the package lists"
  deb=$(apt-get -q --print-uris download "$name:arm64" 2>/dev/null | cut -d ' ' -f 2 | tail -n 1)
  [ -n "$deb" ] || die "apt-get does not offer $name:arm64"
  dir="$tandem_debian/${deb%.deb}"
  if [ ! -d "$dir" ]; then
    say "fetching $name (arm64)"
    work=$(mktemp -d "$tandem_debian/fetch.XXXXXX")
    (cd "$work" && _apt_get download "$name:arm64" >apt.log 2>&1) || {
      tail -n 3 "$work/apt.log" >&2
      rm -rf "$work"
      die "could not fetch $name:arm64"
    }
    dpkg-deb -x "$work"/*.deb "$work/root"
    mv "$work/root" "$dir"
    rm -rf "$work"
  fi
  printf '%s\n' "$dir" >"$stamp"
}

# unpacked_package NAME: prints the directory that holds the unpacked arm64 package NAME.
unpacked_package() {
  local stamp="$tandem_debian/$1.dir"
  if ! _stamp_is_fresh "$stamp"; then
    mkdir -p "$tandem_debian"
    with_lock "unpack-$1" _unpack_package "$1" "$stamp" || exit
  fi
  cat "$stamp"
}

_name_stock_kernel() {
  local meta
  for meta in "linux-image-6.12-$1" "linux-image-$1"; do
    refresh_lists "$meta:arm64" || continue
    apt-cache depends --important "$meta:arm64" | sed -n 's/^ *Depends: \(linux-image-6\.[0-9.]*[^:]*\).*/\1/p' | grep -v unsigned | head -n 1
    return 0
  done
}

# stock_kernel_package stock|stock-16k: prints the directory of the distribution's unpacked 6.12 kernel.
stock_kernel_package() {
  local flavour=arm64 stamp name
  [ "$1" = stock ] || flavour=arm64-16k
  stamp="$tandem_debian/kernel-$flavour.dir"
  if ! _stamp_is_fresh "$stamp"; then
    mkdir -p "$tandem_debian"
    name=$(_name_stock_kernel "$flavour")
    [ -n "$name" ] || die "no linux-image 6.12 $flavour package in the package lists"
    unpacked_package "$name" >"$stamp.$$" || exit
    mv "$stamp.$$" "$stamp"
  fi
  cat "$stamp"
}

# kernel_as_packaged stock|stock-16k|tandem|small|PATH: prints the kernel's file, as its package or build made it.
kernel_as_packaged() {
  local dir
  case $1 in
    stock | stock-16k)
      dir=$(stock_kernel_package "$1") || exit
      echo "$dir"/boot/vmlinuz-*
      ;;
    tandem) "$tandem_top/scripts/kernel" ;;
    small) "$tandem_top/scripts/kernel" --small ;;
    *)
      [ -f "$1" ] || die "no kernel file: $1"
      realpath -e -- "$1"
      ;;
  esac
}

_u32_at() { od -A n -t u4 -j "$2" -N 4 --endian=little -- "$1" | tr -d ' '; }
_text_at() { dd if="$1" bs=1 skip="$2" count="$3" status=none | tr -d '\0'; }

_decompressor_of() {
  case $(od -A n -t x1 -N 4 -- "$1" | tr -d ' ') in
    1f8b*) echo gzip -dc ;;
    28b52ffd) echo zstd -dc ;;
    fd377a58) echo xz -dc ;;
  esac
}

_unpack_image() {
  local file=$1 image=$2 work="$2.$$" tool
  [ -e "$image" ] && return 0
  # shellcheck disable=SC2064  # these files; with_lock runs this in a shell of its own
  trap "rm -f '$work' '$work.z'" EXIT
  _need_unpacking_tools
  if [ "$(_text_at "$file" 4 4)" = zimg ]; then
    tail -c "+$(($(_u32_at "$file" 8) + 1))" -- "$file" | head -c "$(_u32_at "$file" 12)" >"$work.z"
  else
    cp -- "$file" "$work.z"
  fi
  tool=$(_decompressor_of "$work.z")
  [ -n "$tool" ] || die "neither an arm64 Image nor one compressed by gzip, zstd or xz: $file"
  # shellcheck disable=SC2086  # the tool carries its options
  $tool <"$work.z" >"$work" || die "cannot unpack $file"
  [ "$(_text_at "$work" 56 4)" = ARMd ] || die "not an arm64 kernel: $file"
  mv "$work" "$image"
}

# loadable_kernel FILE: prints a plain arm64 Image that QEMU 7.2 can load: FILE itself, or what is packed in it.
loadable_kernel() {
  local image
  if [ "$(_text_at "$1" 56 4)" = ARMd ]; then
    echo "$1"
    return
  fi
  image="$tandem_cache/images/Image-$(content_key "$1")"
  mkdir -p "${image%/*}"
  with_lock unpack-image _unpack_image "$1" "$image" || exit
  echo "$image"
}

# modules_package KERNEL: prints the directory of the package with the kernel's modules; nothing if all is built in.
modules_package() {
  case $1 in stock | stock-16k) stock_kernel_package "$1" ;; esac
}

# copy_modules PACKAGE_DIR ROOT NAME…: copies the kernel modules and all they need, decompressed, with
# an index, from an unpacked kernel package.
copy_modules() {
  local package=$1 root=$2 release file module
  shift 2
  _need_unpacking_tools
  release=$(basename "$package"/lib/modules/*)
  [ -e "$package/lib/modules/$release/modules.dep" ] || depmod -b "$package" "$release"
  modprobe -d "$package" -S "$release" --show-depends -a "$@" | sed -n 's/^insmod //p' | sort -u |
    while read -r file; do
      module="$root${file#"$package"}"
      mkdir -p "${module%/*}"
      case $file in
        *.xz) xz -dc "$file" >"${module%.xz}" ;;
        *.zst) zstd -qdc "$file" >"${module%.zst}" ;;
        *) cp "$file" "$module" ;;
      esac
    done
  cp "$package/lib/modules/$release/"modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$release/"
  depmod -b "$root" "$release"
}

# start_initramfs ROOT INIT: puts busybox and the first process into the directory ROOT.
start_initramfs() {
  local busybox name
  _need_unpacking_tools
  busybox=$(unpacked_package busybox-static) || exit
  chmod 755 "$1"
  mkdir -p "$1"/{bin,dev,proc,sys,mnt,root,tmp,usr}
  for name in sbin usr/bin usr/sbin; do ln -s /bin "$1/$name"; done
  cp "$busybox/bin/busybox" "$1/bin/"
  install -m 755 "$2" "$1/init"
}

# pack_initramfs DIR FILE: writes DIR as an uncompressed archive: unpacking costs more than loading here.
pack_initramfs() {
  (cd "$1" && find . -print0 | LC_ALL=C sort -z | cpio --quiet -0 -o -H newc -R 0:0 --reproducible) >"$2.$$"
  mv "$2.$$" "$2"
}

# forget_images KIND: removes images of that kind that nothing has read for two weeks.
forget_images() { find "$tandem_cache/images" -maxdepth 1 -name "$1-*" -atime +14 -mtime +14 -exec rm -rf {} +; }
