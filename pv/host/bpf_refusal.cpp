// SPDX-License-Identifier: Apache-2.0
#include "pv/host/bpf_refusal.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <charconv>

#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::pv {
namespace {

constexpr unsigned kCapSysAdmin = 21;
constexpr unsigned kCapPerfmon = 38;  // since Linux 5.8, as CAP_BPF
constexpr unsigned kCapBpf = 39;

/// The kernel's own ENOTSUPP, which is not for programs to see. (include/linux/errno.h)
constexpr int kKernelNotSupported = 524;

uint64_t effective_capabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, words) != 0) {
    return 0;
  }
  return uint64_t{words[1].effective} << 32 | words[0].effective;
}

bool has_both_capabilities() {
  const uint64_t held = effective_capabilities();
  const auto has = [held](unsigned capability) { return (held >> capability & 1) != 0; };
  return has(kCapSysAdmin) || (has(kCapBpf) && has(kCapPerfmon));
}

/// Whether the file's first bytes hold `word`; false without the file.
bool contains(const char* path, std::string_view word) {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  char text[256];
  const ssize_t size = read(file.get(), text, sizeof(text));
  return size > 0 && std::string_view(text, static_cast<size_t>(size)).find(word) != std::string_view::npos;
}

}  // namespace

std::optional<KernelVersion> parse_kernel_release(std::string_view release) {
  KernelVersion version;
  const char* const begin = release.data();
  const char* const end = begin + release.size();
  const auto major = std::from_chars(begin, end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') {
    return std::nullopt;
  }
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  if (minor.ec != std::errc()) {
    return std::nullopt;
  }
  return version;
}

BpfHost BpfHost::current() {
  BpfHost host;
  utsname name{};
  if (uname(&name) == 0) {
    host.release = name.release;
  }
  host.has_capabilities = has_both_capabilities();
  host.has_type_information = access("/sys/kernel/btf/vmlinux", F_OK) == 0;
  host.is_confidential = contains("/sys/kernel/security/lockdown", "[confidentiality]");
  return host;
}

Error explain_refusal(const BpfHost& host, std::string_view doing, int os_error) {
  const auto version = parse_kernel_release(host.release);
  if (version && *version < kFirstKernelForBpf) {
    return {Errc::kUnsupported, fmt::format("needs Linux 6.4 or later, and this is {}", host.release), os_error};
  }
  if (os_error == ENOSYS) {
    return {Errc::kUnsupported, "this kernel has no BPF, or a seccomp filter hides it", os_error};
  }
  if (os_error == kKernelNotSupported) {
    return {Errc::kUnsupported, "this kernel does not compile BPF programs (net.core.bpf_jit_enable)", os_error};
  }
  const bool is_refusal = os_error == EPERM || os_error == EACCES;
  if (is_refusal && !host.has_capabilities) {
    return {Errc::kPermission, "needs CAP_BPF and CAP_PERFMON", os_error};
  }
  if (host.is_confidential) {
    return {Errc::kPermission, "this kernel is locked down (confidentiality): BPF may not read kernel memory",
            os_error};
  }
  if (is_refusal) {
    return {Errc::kPermission, "the kernel allows no BPF here (user namespace, seccomp filter or security module)",
            os_error};
  }
  if (!host.has_type_information) {
    return {Errc::kUnsupported, "this kernel has no type information (BTF: CONFIG_DEBUG_INFO_BTF)", os_error};
  }
  return Error::from_errno(std::string(doing), os_error);
}

}  // namespace tandem::pv
