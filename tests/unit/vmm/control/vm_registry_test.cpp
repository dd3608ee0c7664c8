// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/vm_registry.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

#include "tests/unit/vmm/control/control_test.hpp"
#include "vmm/control/vsock_dialer.hpp"

namespace tandem::control {
namespace {

namespace fs = std::filesystem;

class VmRegistryTest : public RegistryTest {
 protected:
  [[nodiscard]] std::string failure(const std::string& name) const { return failure_in(directory_, name); }
  [[nodiscard]] static std::string failure_in(const std::string& directory, const std::string& name) {
    const auto place = VmRegistration::claim(directory, name);
    return place ? "" : place.error().message();
  }
  [[nodiscard]] static unsigned mode_of(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }
  [[nodiscard]] std::vector<std::string> names() const { return registered_vms(directory_).value(); }

  /// A process that takes the place of `name` and is killed.
  void leave_behind(const std::string& name) const {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto place = VmRegistration::claim(directory_, name);
      const auto socket = place ? place->listen() : fail(Errc::kIo, "no place");
      ::raise(socket ? SIGKILL : SIGABRT);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
    ASSERT_TRUE(fs::exists(control_socket_path(directory_, name)));
  }
};

TEST_F(VmRegistryTest, DirectoryAndFilesAreTheUsersAlone) {
  const auto place = VmRegistration::claim(directory_, "vm1").value();
  const auto socket = place.listen().value();
  EXPECT_EQ(mode_of(directory_), 0700U);
  EXPECT_EQ(mode_of(directory_ + "/vm1.sock"), 0600U);
  EXPECT_EQ(mode_of(directory_ + "/vm1.lock"), 0600U);
  EXPECT_EQ(names(), std::vector<std::string>{"vm1"});
}

TEST_F(VmRegistryTest, ASecondVmOfTheNameIsRefusedAndTheFirstStays) {
  const auto place = VmRegistration::claim(directory_, "vm1").value();
  const auto socket = place.listen().value();
  EXPECT_EQ(failure("vm1"), "a virtual machine of the name 'vm1' is there already");
  EXPECT_EQ(failure("vm2"), "");
  EXPECT_TRUE(is_registered(directory_, "vm1"));
  connect_to(control_socket_path(directory_, "vm1"));
}

TEST_F(VmRegistryTest, ThePlaceIsFreeAgainAfterItsOwner) {
  {
    const auto place = VmRegistration::claim(directory_, "vm1").value();
    const auto socket = place.listen().value();
  }
  EXPECT_TRUE(names().empty());
  EXPECT_TRUE(fs::is_empty(directory_));
  EXPECT_EQ(failure("vm1"), "");
}

TEST_F(VmRegistryTest, WhatAKilledVmLeftIsNotListedAndIsReplaced) {
  leave_behind("vm1");
  EXPECT_TRUE(names().empty());
  EXPECT_FALSE(is_registered(directory_, "vm1"));
  const auto place = VmRegistration::claim(directory_, "vm1").value();
  const auto socket = place.listen();
  ASSERT_TRUE(socket) << socket.error().message();
  connect_to(control_socket_path(directory_, "vm1"));
  EXPECT_EQ(names(), std::vector<std::string>{"vm1"});
}

TEST_F(VmRegistryTest, APathThatIsTooLongIsRefusedWithBothNumbers) {
  const std::string deep = folder_ + '/' + std::string(kMaxSocketPathBytes - folder_.size() - 1 - 7, 'd');
  EXPECT_EQ(failure_in(deep, "a"), "") << "107 bytes";
  EXPECT_EQ(failure_in(deep, "aa"), deep + "/aa.sock: the path of a socket has at most 107 bytes, and this one 108");
}

TEST_F(VmRegistryTest, ADirectoryThatOthersMayWriteToIsRefused) {
  ASSERT_EQ(::mkdir(directory_.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(directory_.c_str(), 0770), 0);
  EXPECT_EQ(failure("vm1"), directory_ + ": others may write to it (mode 770)");
  ASSERT_EQ(::chmod(directory_.c_str(), 0755), 0);
  EXPECT_EQ(failure("vm1"), "");
}

TEST_F(VmRegistryTest, WhatIsNoDirectoryIsRefused) {
  std::ofstream(directory_) << "x";
  EXPECT_EQ(failure("vm1"), directory_ + ": is no directory");
  EXPECT_EQ(failure_in(folder_ + "/absent/too", "vm1"), folder_ + "/absent/too: No such file or directory");
}

TEST_F(VmRegistryTest, SomethingElseInThePlaceOfTheSocketIsLeftAlone) {
  const auto place = VmRegistration::claim(directory_, "vm1").value();
  std::ofstream(directory_ + "/vm1.sock") << "precious";
  EXPECT_FALSE(place.listen());
  EXPECT_TRUE(fs::is_regular_file(directory_ + "/vm1.sock"));
}

TEST_F(VmRegistryTest, ALockFileThatIsALinkIsNotFollowed) {
  ASSERT_EQ(::mkdir(directory_.c_str(), 0700), 0);
  fs::create_symlink(folder_ + "/elsewhere", directory_ + "/vm1.lock");
  EXPECT_NE(failure("vm1"), "");
  EXPECT_FALSE(fs::exists(folder_ + "/elsewhere"));
}

TEST_F(VmRegistryTest, OtherFilesInTheDirectoryAreNoVms) {
  const auto place = VmRegistration::claim(directory_, "vm1").value();
  const auto socket = place.listen().value();
  std::ofstream(directory_ + "/.sock") << "";
  std::ofstream(directory_ + "/notes.txt") << "";
  std::ofstream(directory_ + "/a b.sock") << "";
  EXPECT_EQ(names(), std::vector<std::string>{"vm1"});
}

TEST_F(VmRegistryTest, WithoutADirectoryThereAreNoVms) { EXPECT_TRUE(names().empty()); }

TEST_F(VmRegistryTest, TheDirectoryComesFromTheEnvironment) {
  ::unsetenv("TANDEM_RUNTIME_DIR");
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(runtime_directory(), "/run/tandem");
  ::setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  EXPECT_EQ(runtime_directory(), "/run/user/7/tandem");
  ::setenv("TANDEM_RUNTIME_DIR", "/srv/vms", 1);
  EXPECT_EQ(runtime_directory(), "/srv/vms");
  ::setenv("TANDEM_RUNTIME_DIR", "", 1);
  EXPECT_EQ(runtime_directory(), "/run/user/7/tandem");
  ::unsetenv("TANDEM_RUNTIME_DIR");
  ::unsetenv("XDG_RUNTIME_DIR");
}

class BadNameTest : public testing::TestWithParam<const char*> {};

TEST_P(BadNameTest, IsRefused) { EXPECT_FALSE(check_vm_name(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Names, BadNameTest,
                         testing::Values("", ".", "..", "a/b", "/a", "-a", "a b", "a\n", "\xc3\xa4"));

}  // namespace
}  // namespace tandem::control
