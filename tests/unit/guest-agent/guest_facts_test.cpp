// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/guest_facts.hpp"

#include <gtest/gtest.h>

#include "guest-agent/mount_table.hpp"

namespace tandem::agent {
namespace {

bool always(const Mount& /*mount*/) { return true; }

TEST(MountTableTest, FileSystemsOnBlockDevicesAreFound) {
  const auto mounts = parse_block_mounts(
      "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
      "23 22 0:20 / /proc rw - proc proc rw\n"
      "24 22 254:16 / /srv/with\\040space rw master:2 propagate_from:1 - xfs /dev/vdb rw\n"
      "25 22 254:0 /home /home rw - ext4 /dev/vda rw\n");
  EXPECT_EQ(mounts, (std::vector<Mount>{{"/", "ext4", "/dev/vda", "254:0", 22},
                                        {"/srv/with space", "xfs", "/dev/vdb", "254:16", 24},
                                        {"/home", "ext4", "/dev/vda", "254:0", 25}}));
  EXPECT_EQ(each_once(mounts, always), (std::vector<Mount>{mounts[0], mounts[1]}));
}

TEST(MountTableTest, AFileSystemIsFoundWhereNoOtherMountHidesIt) {
  const auto mounts = parse_block_mounts(
      "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
      "23 22 254:16 / /mnt rw - ext4 /dev/vdb rw\n"
      "24 22 254:32 / /srv rw - ext4 /dev/vdc rw\n"
      "25 23 254:48 / /mnt rw - ext4 /dev/vdd rw\n"
      "26 24 0:40 / /srv rw - tmpfs none rw\n"
      "27 22 254:16 / /opt rw - ext4 /dev/vdb rw\n");
  const auto is_on_top = [](const Mount& mount) { return mount.id != 23 && mount.id != 24; };
  const auto found = each_once(mounts, is_on_top);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].mount_point, "/");
  EXPECT_EQ(found[1].mount_point, "/opt");
  EXPECT_EQ(found[2].device, "254:48");
}

TEST(MountTableTest, TheMountThatAPathLeadsToIsOnTop) {
  Mount proc{.mount_point = "/proc"};
  const std::string table = read_kernel_file("/proc/self/mountinfo").value();
  const size_t line = table.rfind('\n', table.find(" / /proc ")) + 1;
  proc.id = std::stoul(table.substr(line));
  EXPECT_TRUE(is_on_top(proc));
  ++proc.id;
  EXPECT_FALSE(is_on_top(proc));
  EXPECT_FALSE(is_on_top({.mount_point = "/no/such/place"}));
}

TEST(MountTableTest, FileSystemsThatMayBeOnSeveralDevicesCount) {
  const auto mounts = parse_block_mounts(
      "22 1 0:26 /@ / rw,relatime shared:1 - btrfs /dev/vda2 rw,subvol=/@\n"
      "23 22 0:26 /@home /home rw,relatime shared:2 - btrfs /dev/vda2 rw,subvol=/@home\n"
      "24 22 0:31 / /srv rw - bcachefs /dev/vdb:/dev/vdc rw\n"
      "25 22 0:32 / /run rw - tmpfs tmpfs rw\n");
  EXPECT_EQ(each_once(mounts, always), (std::vector<Mount>{{"/", "btrfs", "/dev/vda2", "0:26", 22},
                                                           {"/srv", "bcachefs", "/dev/vdb:/dev/vdc", "0:31", 24}}));
}

TEST(MountTableTest, LinesThatMakeNoSenseAreLeftOut) {
  EXPECT_TRUE(
      parse_block_mounts("\n- - -\n1 2 8:0\n1 2 8:0 / / rw - ext4\nno separator at all in this line\n").empty());
}

TEST(MountTableTest, AKernelFileIsReadToItsEnd) {
  EXPECT_EQ(read_kernel_file("/proc/sys/kernel/random/boot_id").value().size(), 37U);
  EXPECT_EQ(read_kernel_file("/no/such/file").error().code(), Errc::kNotFound);
}

TEST(StolenTimeTest, EachCpuHasItsColumn) {
  const auto vcpus = parse_stolen_time(
      "cpu  9 9 9 9 9 9 9 99 9 9\n"
      "cpu0 1 2 3 4 5 6 7 8 9 10\n"
      "cpu11 1 2 3 4 5 6 7 0 9 10\n"
      "intr 5\n",
      10);
  ASSERT_EQ(vcpus.size(), 2U);
  EXPECT_EQ(vcpus[0].vcpu, 0U);
  EXPECT_EQ(vcpus[0].stolen_ns, 80U);
  EXPECT_EQ(vcpus[1].vcpu, 11U);
  EXPECT_EQ(vcpus[1].stolen_ns, 0U);
}

TEST(StolenTimeTest, AKernelWithoutTheColumnHasNone) {
  EXPECT_EQ(parse_stolen_time("cpu0 1 2 3 4\n", 10).at(0).stolen_ns, std::nullopt);
}

TEST(PreemptionTest, RecordsGoToTheirCpus) {
  std::vector<VcpuState> vcpus{{.vcpu = 0}, {.vcpu = 1}, {.vcpu = 2}};
  parse_preemption("0 1 17\n2 0 3\n7 1 1\nnonsense\n1 1\n", vcpus);
  EXPECT_EQ(vcpus[0].preempted, true);
  EXPECT_EQ(vcpus[0].preempt_count, 17U);
  EXPECT_EQ(vcpus[1].preempted, std::nullopt);
  EXPECT_EQ(vcpus[2].preempted, false);
  EXPECT_EQ(vcpus[2].preempt_count, 3U);
}

}  // namespace
}  // namespace tandem::agent
