// SPDX-License-Identifier: Apache-2.0
// Holds the device tree of whole machines to what dtc, the reference compiler, says about it.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <sys/wait.h>

#include "pv/host/vcpu_state.hpp"
#include "tests/fakes/fake_doorbell_host.hpp"
#include "tests/fakes/fake_irq_sink.hpp"
#include "tests/fakes/fake_machine_events.hpp"
#include "tests/fakes/fake_vcpu_state_backend.hpp"
#include "tests/fakes/memory_file.hpp"
#include "vmm/boot/fdt_builder.hpp"
#include "vmm/machine/board_fdt.hpp"
#include "vmm/machine/board_layout.hpp"
#include "vmm/machine/device_set.hpp"

namespace tandem {
namespace {

constexpr auto kRam = GuestRange::fixed(0x4000'0000, 0x20'0000);
constexpr auto kInitrd = GuestRange::fixed(0x4010'0000, 0x1000);

/// One machine: its interrupt controller, and whether it has the devices that are optional.
struct TreeCase {
  std::string name;
  bool gic_v3;
  bool its;
  bool everything;
};

std::ostream& operator<<(std::ostream& out, const TreeCase& row) { return out << row.name; }

/// What dtc printed about the blob, warnings and errors; its exit status is told too if it is not 0.
std::string complaints_of_dtc(const std::vector<std::byte>& blob) {
  const fakes::MemoryFile file(blob);
  // Beside the checks that are on by default, one that is not.
  const std::string path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file.fd());
  const std::string command = "dtc -I dtb -O dts -o /dev/null -W property_name_chars_strict " + path + " 2>&1";
  FILE* const dtc = ::popen(command.c_str(), "r");
  std::string text;
  for (int letter = std::fgetc(dtc); letter != EOF; letter = std::fgetc(dtc)) {
    text += static_cast<char>(letter);
  }
  const int status = ::pclose(dtc);
  return status == 0 ? text : text + "dtc ended with status " + std::to_string(WEXITSTATUS(status)) + "\n";
}

class DeviceTreeTest : public testing::TestWithParam<TreeCase> {
 protected:
  MachineSpec spec() {
    MachineSpec spec;
    spec.console.kind = ConsoleSpec::Kind::kNone;
    if (GetParam().everything) {
      // All virtio devices look alike in the tree: one of each kind that needs nothing of the host.
      spec.disks = {{.path = disk_.path(), .id = "disk0"}};
      spec.hvc = ConsoleSpec{.kind = ConsoleSpec::Kind::kNone, .path = {}};
      spec.balloon = true;
    }
    return spec;
  }

  devices::FdtNode tree() {
    devices::FdtNode root = board::root_node({.mpidrs = {0x0, 0x1, 0x100, 0x1'0000'0000},
                                              .gic_v3 = GetParam().gic_v3,
                                              .its = GetParam().its,
                                              .pmu = GetParam().everything,
                                              .ram = kRam});
    set_ =
        DeviceSet::create(
            spec(),
            {.loop = *loop_, .irqs = irqs_, .doorbells = doorbells_, .memory = memory_, .ram = ram_, .events = events_})
            .value();
    set_->describe(root);
    if (GetParam().everything) {
      pv::FakeVcpuStateBackend backend;
      root.add_child(pv::VcpuState(backend, board::kPvVcpuState, 4).describe());
    }
    root.add_child(boot::make_chosen_node({.cmdline = "console=ttyAMA0",
                                           .stdout_path = "/serial@9000000",
                                           .seeds = boot::BootSeeds::draw().value(),
                                           .initrd = kInitrd}));
    return root;
  }

  const fakes::MemoryFile disk_{std::string(4096, '\0')};
  std::unique_ptr<EventLoop> loop_ = EventLoop::create().value();
  devices::FakeIrqSink irqs_;
  devices::FakeDoorbellHost doorbells_;
  GuestRam ram_ = GuestRam::create_anonymous(kRam).value();
  GuestMemory memory_{{{kRam, ram_.bytes()}}};
  FakeMachineEvents events_;
  std::unique_ptr<DeviceSet> set_;
};

TEST_P(DeviceTreeTest, DtcHasNothingToSayAboutIt) { EXPECT_EQ(complaints_of_dtc(boot::build_fdt(tree()).value()), ""); }

const TreeCase kCases[] = {
    {.name = "GicV3", .gic_v3 = true, .its = true, .everything = false},
    {.name = "GicV3WithoutIts", .gic_v3 = true, .its = false, .everything = false},
    {.name = "GicV3WithEverything", .gic_v3 = true, .its = true, .everything = true},
    {.name = "GicV2", .gic_v3 = false, .its = false, .everything = false},
    {.name = "GicV2WithEverything", .gic_v3 = false, .its = false, .everything = true},
};

std::string name_of(const testing::TestParamInfo<TreeCase>& row) { return row.param.name; }

INSTANTIATE_TEST_SUITE_P(Machines, DeviceTreeTest, testing::ValuesIn(kCases), name_of);

TEST(DtcTest, SpeaksUpAboutABadTree) {
  devices::FdtNode root("");
  root.add_string("compatible", "linux,dummy-virt").add_u32("#address-cells", 2).add_u32("#size-cells", 2);
  root.add_child(devices::FdtNode("memory@40000000"));
  EXPECT_NE(complaints_of_dtc(boot::build_fdt(root).value()).find("unit_address_vs_reg"), std::string::npos);
}

}  // namespace
}  // namespace tandem
