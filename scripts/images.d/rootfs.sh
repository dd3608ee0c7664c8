# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by scripts/images: how the root file system is made. A change here makes a new one.
# shellcheck disable=SC2154  # scripts/images and what it sources before set the variables

# What the root file system holds: Debian's essential packages, but not apt, and tools; usr-is-merged keeps
# usrmerge and its Perl modules out.
readonly rootfs_packages=('?and(?essential,?not(?exact-name(apt)))' usr-is-merged busybox-static
  rt-tests stress-ng linux-perf iproute2 iputils-ping)

# apt_for_rootfs ARGUMENT…: apt-get as on an arm64 machine that has no package installed yet.
apt_for_rootfs() {
  local state="$tandem_debian/rootfs"
  mkdir -p "$state/archives/partial"
  : >"$state/status"
  apt-get -q -y -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::status="$state/status" \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Dir::Cache::archives="$state/archives" \
    -o APT::Install-Recommends=false -o Debug::NoLocking=1 -o APT::Sandbox::User=root "$@" </dev/null
}

# rootfs_archives: prints the names of all package files the root file system is made of.
rootfs_archives() {
  local list
  list="$tandem_debian/rootfs-$(text_key "${rootfs_packages[@]}").list"
  if [ ! -s "$list" ] || [ /var/lib/apt/lists -nt "$list" ]; then
    refresh_lists rt-tests:arm64 || die "no package rt-tests for arm64 in the package lists"
    # In an empty archive, or apt would leave out what it need not fetch again.
    mkdir -p "$tandem_debian/rootfs/none/partial"
    apt_for_rootfs -o Dir::Cache::archives="$tandem_debian/rootfs/none" --print-uris install "${rootfs_packages[@]}" |
      sed -n "s/^'[^ ]* \([^ ]*\.deb\) .*/\1/p" | sort >"$list.$$"
    [ -s "$list.$$" ] || die "apt-get finds no way to install ${rootfs_packages[*]}"
    mv "$list.$$" "$list"
  fi
  cat "$list"
}

# unpack_archive DEB TREE: unpacks a package and records it there as unpacked, to be configured.
unpack_archive() {
  local deb=$1 tree=$2 info="$2/var/lib/dpkg/info" control package file path
  control=$(mktemp -d)
  dpkg-deb -e "$deb" "$control"
  package=$(sed -n 's/^Package: //p' "$control/control")
  ! grep -qx 'Multi-Arch: same' "$control/control" || package="$package:arm64"
  dpkg-deb --fsys-tarfile "$deb" | tar -xvp --keep-directory-symlink -C "$tree" | sed 's,^\./,/,; s,/$,,; s,^$,/.,' >"$info/$package.list"
  {
    sed 's/^Package: .*/&\nStatus: install ok unpacked/' "$control/control"
    if [ -e "$control/conffiles" ]; then
      echo Conffiles:
      while read -r path; do
        [ ! -f "$tree$path" ] || echo " $path $(md5sum <"$tree$path" | cut -d ' ' -f 1)"
      done <"$control/conffiles"
    fi
    echo
  } >>"$tree/var/lib/dpkg/status"
  rm "$control/control"
  for file in "$control"/*; do
    [ ! -e "$file" ] || mv "$file" "$info/$package.${file##*/}"
  done
  rmdir "$control"
}

# fill_tree TREE: unpacks all packages, our files and the modules of the stock kernels.
fill_tree() {
  local tree=$1 directory archive n=0 total modules list
  list=$(rootfs_archives)
  total=$(wc -l <<<"$list")
  mkdir -p "$tree"/usr/{bin,sbin,lib} "$tree"/var/lib/dpkg/{info,updates} "$tree"/{dev,proc,sys,run,tmp,mnt,root}
  for directory in bin sbin lib; do ln -s "usr/$directory" "$tree/$directory"; done
  echo arm64 >"$tree/var/lib/dpkg/arch"
  for archive in $list; do
    unpack_archive "$tandem_debian/rootfs/archives/$archive" "$tree"
    n=$((n + 1))
    [ $((n % 40)) != 0 ] || say "rootfs: $n of $total packages unpacked"
  done
  rm -rf "$tree"/usr/share/{doc,man,info,locale,lintian,bug}/*
  cp -r "$here/images.d/rootfs/." "$tree/"
  echo guest >"$tree/etc/hostname"
  printf '127.0.0.1 localhost\n127.0.1.1 guest\n' >"$tree/etc/hosts"
  for modules in stock stock-16k; do
    copy_modules "$(stock_kernel_package "$modules")" "$tree" "${guest_modules[@]}"
  done
}

# configure_image IMAGE: configures the packages inside the testbed.
configure_image() {
  local total n=0 line log="$tandem_debian/rootfs.log"
  total=$(rootfs_archives | wc -l)
  cp "$here/images.d/configure" "${1%/*}/"
  (cd "${1%/*}" && "$here/testbed" --kernel stock --timeout 3000 -- sh ./configure "${1##*/}" </dev/null) 2>&1 |
    tee "$log" | while read -r line; do
    case $line in 'Setting up'*) n=$((n + 1)) ;; *) continue ;; esac
    [ $((n % 20)) != 0 ] || say "rootfs: $n of $total packages configured"
  done || {
    tail -n 5 "$log" >&2
    die "could not configure the root file system (log: $log)"
  }
}

_build_rootfs() {
  local image=$1 work size
  [ -e "$image" ] && return 0
  need_packages e2fsprogs kmod xz-utils
  say "rootfs: fetching packages"
  apt_for_rootfs --download-only install "${rootfs_packages[@]}" >"$tandem_debian/rootfs.log" 2>&1 ||
    die "could not fetch packages (log: $tandem_debian/rootfs.log)"
  work=$(mktemp -d "$tandem_cache/images/rootfs-work.XXXXXX")
  # shellcheck disable=SC2064  # this directory; with_lock runs this in a shell of its own
  trap "rm -rf '$work'" EXIT
  mkdir "$work/tree"
  chmod 755 "$work/tree"
  fill_tree "$work/tree"
  size=$(($(du -sm "$work/tree" | cut -f 1) + 512))
  mke2fs -F -q -t ext4 -L tandem-root -m 0 -J size=8 -d "$work/tree" "$work/rootfs.ext4" "${size}M" >/dev/null
  configure_image "$work/rootfs.ext4"
  mv "$work/rootfs.ext4" "$image"
  forget_images rootfs
}

# _add_agent BASE AGENT IMAGE: makes IMAGE, which is BASE with the guest agent in it. Apart from BASE, which takes
# minutes: the agent changes more often.
_add_agent() {
  local base=$1 agent=$2 image=$3 work="$3.$$" place=/usr/sbin/tandem-agent
  [ -e "$image" ] && return 0
  need_packages e2fsprogs
  # shellcheck disable=SC2064  # this file; with_lock runs this in a shell of its own
  trap "rm -f '$work'" EXIT
  cp --sparse=always -- "$base" "$work"
  # debugfs takes no failure seriously.
  printf '%s\n' "write $agent $place" "set_inode_field $place mode 0100755" "set_inode_field $place uid 0" \
    "set_inode_field $place gid 0" | debugfs -w -f - "$work" >/dev/null 2>&1
  debugfs -R "dump $place $work.agent" "$work" >/dev/null 2>&1
  cmp -s "$agent" "$work.agent" || die "could not put the guest agent into the root file system"
  rm -f "$work.agent"
  mv "$work" "$image"
  forget_images rootfs
}

rootfs() {
  local base image archives agent
  mkdir -p "$tandem_cache/images" "$tandem_debian"
  agent=$(guest_agent)
  archives=$(rootfs_archives)
  base="$tandem_cache/images/rootfs-base-$(text_key "$archives" "$(stock_kernel_package stock)" \
    "$(stock_kernel_package stock-16k)" "${guest_modules[*]}" \
    "$(find "$here"/images.d/{rootfs,rootfs.sh,configure} -type f -print0 | sort -z | xargs -0 cat | sha256sum)").ext4"
  [ -e "$base" ] || with_lock rootfs _build_rootfs "$base"
  image="$tandem_cache/images/rootfs-$(text_key "$base" "$(content_key "$agent")").ext4"
  [ -e "$image" ] || with_lock rootfs _add_agent "$base" "$agent" "$image"
  echo "$image"
}
