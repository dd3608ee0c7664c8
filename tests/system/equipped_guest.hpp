// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/system/guest_fixture.hpp"

namespace tandem::tests {

/// A guest with four vCPUs and one of every device: what most suites share.
class EquippedGuestTest : public SharedGuestTest {
 protected:
  static constexpr unsigned kVcpus = 4;
  static constexpr const char* kName = "equipped";                        ///< For `tandem status` and its like.
  static constexpr const char* kDisk = "/tmp/equipped.img";               ///< 32 MiB, /dev/vda in the guest.
  static constexpr const char* kReadOnlyDisk = "/tmp/equipped-ro.img";    ///< Zeros, /dev/vdb.
  static constexpr const char* kFileSystemDisk = "/tmp/equipped-fs.img";  ///< For one file system, /dev/vdc.
  static constexpr const char* kSecondConsole = "/tmp/equipped-hvc.log";
  static constexpr const char* kHostAddress = "192.0.2.1";  ///< At the other end of eth0.

  static void SetUpTestSuite() {
    const std::string disks = std::string(kDisk) + " " + kReadOnlyDisk + " " + kFileSystemDisk;
    boot({.vcpu_count = kVcpus,
          .memory = "512M",
          .options = {"--name", kName, "--disk", kDisk, "--disk", std::string(kReadOnlyDisk) + ",ro", "--disk",
                      kFileSystemDisk, "--net", "tap=equipped0", "--balloon", "--hvc",
                      std::string("file=") + kSecondConsole},
          .preparation = "set -e; for disk in " + disks +
                         "; do dd if=/dev/zero of=$disk bs=1M count=32 2>/dev/null; done;"
                         " tunctl -t equipped0 >/dev/null; ip addr add " +
                         kHostAddress +
                         "/24 dev equipped0;"
                         " ip link set equipped0 up",
          .removal = "rm -f " + disks + " " + kSecondConsole + "; tunctl -d equipped0 >/dev/null"});
  }
};

}  // namespace tandem::tests
