// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/ram_file_guard.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "tests/fakes/memory_file.hpp"
#include "vmm/lib/guest_memory/guest_ram.hpp"

namespace tandem {
namespace {

constexpr auto kRange = GuestRange::fixed(0x4000'0000, 0x1'0000);

/// RAM mapped from a file, which is then cut off.
class RamFileGuardTest : public ::testing::Test {
 protected:
  RamFileGuardTest() { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }

  void cut_off() const { ASSERT_EQ(::ftruncate(file_.fd(), 0), 0); }
  static void touch(const std::byte& place) { std::atomic_ref(const_cast<std::byte&>(place)).load(); }

  const fakes::MemoryFile file_{std::string(kRange.size(), 'r')};
  GuestRam ram_ = GuestRam::create_private_file(kRange, UniqueFd(::dup(file_.fd()))).value();
};

TEST_F(RamFileGuardTest, AHoleInTheFileEndsTheProcessByOneLine) {
  EXPECT_EXIT(
      {
        const auto guard = RamFileGuard::create(ram_.bytes(), "tandem: the file has become shorter").value();
        cut_off();
        touch(ram_.bytes()[0x8000]);
      },
      ::testing::ExitedWithCode(1), "^tandem: the file has become shorter\n$");
}

TEST_F(RamFileGuardTest, ABusErrorElsewhereIsWhatItAlwaysIs) {
  EXPECT_EXIT(
      {
        const auto guard = RamFileGuard::create(ram_.bytes().first(0x4000), "not this").value();
        ::signal(SIGABRT, SIG_DFL);
        cut_off();
        touch(ram_.bytes()[0x8000]);
      },
      ::testing::KilledBySignal(SIGBUS), "^$");
}

TEST_F(RamFileGuardTest, RamKnowsThatItsFileIsCutOff) {
  EXPECT_FALSE(ram_.is_cut_off());
  cut_off();
  EXPECT_TRUE(ram_.is_cut_off());
  EXPECT_FALSE(GuestRam::create_anonymous(kRange).value().is_cut_off());
}

}  // namespace
}  // namespace tandem
