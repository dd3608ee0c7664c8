// SPDX-License-Identifier: Apache-2.0
#include "pv/host/bpf_refusal.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace tandem::pv {
namespace {

BpfHost able_host() {
  return {.release = "6.12.117+deb12-arm64", .has_capabilities = true, .has_type_information = true};
}

std::string reason(const BpfHost& host, int os_error) {
  return explain_refusal(host, "load the BPF program", os_error).message();
}

TEST(KernelReleaseTest, VersionIsReadFromTheFrontOfARelease) {
  EXPECT_EQ(parse_kernel_release("6.12.117+deb12-arm64"), (KernelVersion{.major = 6, .minor = 12}));
  EXPECT_EQ(parse_kernel_release("6.4"), (KernelVersion{.major = 6, .minor = 4}));
  EXPECT_EQ(parse_kernel_release("10.0-rc1"), (KernelVersion{.major = 10, .minor = 0}));
}

TEST(KernelReleaseTest, WhatIsNoReleaseHasNoVersion) {
  for (const char* text : {"", "6", "6.", ".4", "-6.4", "linux", "6-4", "99999999999.1", "6.99999999999"}) {
    EXPECT_EQ(parse_kernel_release(text), std::nullopt) << text;
  }
}

TEST(KernelReleaseTest, VersionsCompareByMajorThenMinor) {
  EXPECT_LT((KernelVersion{.major = 5, .minor = 19}), kFirstKernelForBpf);
  EXPECT_LT((KernelVersion{.major = 6, .minor = 3}), kFirstKernelForBpf);
  EXPECT_LT(kFirstKernelForBpf, (KernelVersion{.major = 6, .minor = 12}));
}

TEST(BpfRefusalTest, OldKernelIsTheReasonWhateverElseIsMissing) {
  BpfHost host = able_host();
  host.release = "6.1.0-44-arm64";
  host.has_capabilities = false;
  EXPECT_EQ(reason(host, EPERM), "needs Linux 6.4 or later, and this is 6.1.0-44-arm64");
}

TEST(BpfRefusalTest, MissingCapabilitiesAreNamed) {
  BpfHost host = able_host();
  host.has_capabilities = false;
  EXPECT_EQ(reason(host, EPERM), "needs CAP_BPF and CAP_PERFMON");
  EXPECT_EQ(reason(host, EACCES), "needs CAP_BPF and CAP_PERFMON");
  EXPECT_EQ(explain_refusal(host, "load", EPERM).code(), Errc::kPermission);
}

TEST(BpfRefusalTest, LockdownIsNamed) {
  BpfHost host = able_host();
  host.is_confidential = true;
  EXPECT_EQ(reason(host, EPERM), "this kernel is locked down (confidentiality): BPF may not read kernel memory");
}

TEST(BpfRefusalTest, RefusalDespiteCapabilitiesPointsToNamespaceFilterAndSecurityModule) {
  EXPECT_EQ(reason(able_host(), EPERM),
            "the kernel allows no BPF here (user namespace, seccomp filter or security module)");
}

TEST(BpfRefusalTest, KernelWithoutBpfIsNamed) {
  EXPECT_EQ(reason(able_host(), ENOSYS), "this kernel has no BPF, or a seccomp filter hides it");
  EXPECT_EQ(explain_refusal(able_host(), "load", ENOSYS).code(), Errc::kUnsupported);
}

TEST(BpfRefusalTest, MissingCompilerIsNamedThoughItsErrnoHasNoText) {
  constexpr int kKernelNotSupported = 524;
  EXPECT_EQ(reason(able_host(), kKernelNotSupported),
            "this kernel does not compile BPF programs (net.core.bpf_jit_enable)");
}

TEST(BpfRefusalTest, MissingTypeInformationIsNamed) {
  BpfHost host = able_host();
  host.has_type_information = false;
  EXPECT_EQ(reason(host, EINVAL), "this kernel has no type information (BTF: CONFIG_DEBUG_INFO_BTF)");
}

TEST(BpfRefusalTest, AnyOtherErrnoIsSaidWithWhatWasBeingDone) {
  EXPECT_EQ(reason(able_host(), ENOMEM), "load the BPF program: Cannot allocate memory");
}

}  // namespace
}  // namespace tandem::pv
