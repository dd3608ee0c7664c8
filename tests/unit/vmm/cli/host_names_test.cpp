// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/host_names.hpp"

#include <gtest/gtest.h>

namespace tandem::cli {
namespace {

MachineSpec saved() {
  MachineSpec spec;
  spec.name = "vm1";
  spec.disks = {{.path = "/old/root", .id = "root", .read_only = false},
                {.path = "/old/data", .id = "data", .read_only = true}};
  spec.nets = {{.tap = "tap0", .id = "net0", .mac = std::array<uint8_t, 6>{2, 0, 0, 0, 0, 1}}};
  spec.vsock = VsockSpec{.path = "/old/vsock", .guest_cid = 5};
  spec.hvc = ConsoleSpec{.kind = ConsoleSpec::Kind::kPty, .path = {}};
  return spec;
}

TEST(HostNamesTest, NamesReplaceThoseOfTheSourceAndNothingElse) {
  HostNames names;
  names.name = "clone";
  ASSERT_TRUE(take_disk(names, "data=/new/a=b"));
  ASSERT_TRUE(take_net(names, "net0=tap=tap7"));
  names.vsock = "/new/vsock";
  names.console = ConsoleSpec{.kind = ConsoleSpec::Kind::kNone, .path = {}};
  MachineSpec expected = saved();
  expected.name = "clone";
  expected.disks[1].path = "/new/a=b";
  expected.nets[0].tap = "tap7";
  expected.vsock->path = "/new/vsock";
  expected.console = *names.console;
  EXPECT_EQ(with_host_names(saved(), names, SourceNames::kUsed).value(), expected);
}

TEST(HostNamesTest, WithoutNamesOfTheSourceEachDeviceNeedsOne) {
  HostNames names;
  ASSERT_TRUE(take_disk(names, "root=/new/root"));
  const auto spec = with_host_names(saved(), names, SourceNames::kNotUsed);
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().message(), "--disk data=… is needed: the machine has that device");
}

TEST(HostNamesTest, WithoutNamesOfTheSourceAConsoleIsThisTerminal) {
  HostNames names;
  ASSERT_TRUE(take_disk(names, "root=/r"));
  ASSERT_TRUE(take_disk(names, "data=/d"));
  ASSERT_TRUE(take_net(names, "net0=tap=tap7"));
  names.vsock = "/v";
  names.hvc = ConsoleSpec{.kind = ConsoleSpec::Kind::kNone, .path = {}};
  MachineSpec spec = saved();
  spec.console = {.kind = ConsoleSpec::Kind::kFile, .path = "/etc/passwd"};
  const auto named = with_host_names(spec, names, SourceNames::kNotUsed);
  ASSERT_TRUE(named) << named.error().message();
  EXPECT_EQ(named->console, ConsoleSpec());
}

TEST(HostNamesTest, AFileThatASnapshotNamesIsNotEmptied) {
  MachineSpec spec = saved();
  spec.console = {.kind = ConsoleSpec::Kind::kFile, .path = "/log"};
  EXPECT_EQ(with_host_names(spec, {}, SourceNames::kUsed).error().message(),
            "--console is needed: at the source, that console went to the file '/log'");
}

TEST(HostNamesTest, ADeviceThatIsNotThereIsRefusedWithThoseThatAre) {
  HostNames names;
  ASSERT_TRUE(take_disk(names, "swap=/x"));
  EXPECT_EQ(with_host_names(saved(), names, SourceNames::kUsed).error().message(),
            "--disk: the machine has no 'swap'; it has root, data");
  const MachineSpec plain;
  HostNames only_hvc;
  only_hvc.hvc = ConsoleSpec();
  HostNames only_vsock;
  only_vsock.vsock = "/x";
  EXPECT_EQ(with_host_names(plain, only_hvc, SourceNames::kUsed).error().message(),
            "--hvc: the machine has no virtio console");
  EXPECT_EQ(with_host_names(plain, only_vsock, SourceNames::kUsed).error().message(),
            "--vsock: the machine has no socket device");
}

TEST(HostNamesTest, WhatIsNoAssignmentIsRefused) {
  HostNames names;
  EXPECT_EQ(take_disk(names, "/path").error().message(), "'/path' is not of the form ID=PATH");
  EXPECT_EQ(take_disk(names, "=x").error().message(), "'=x' is not of the form ID=PATH");
  EXPECT_EQ(take_net(names, "net0=tap7").error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(take_net(names, "net0=tap=tap7,mac=02:00:00:00:00:01").error().message(),
            "'net0=tap=tap7,mac=02:00:00:00:00:01' is not of the form ID=tap=IF");
  ASSERT_TRUE(take_disk(names, "a=x"));
  EXPECT_EQ(take_disk(names, "a=y").error().message(), "'a' is there twice");
}

}  // namespace
}  // namespace tandem::cli
