// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/machine_spec_json.hpp"

#include <gtest/gtest.h>

#include <ostream>

namespace tandem {
namespace {

MachineSpec everything() {
  return {
      .name = "vm-1",
      .boot = {.kernel = "/boot/Image", .initrd = "/boot/initrd", .cmdline = "console=ttyAMA0 -- \"x\""},
      .vcpu_count = 4,
      .memory_bytes = 512U << 20,
      .cpu = {.sve = true, .sve_quadwords = {1, 2, 4}, .pauth = true, .pmu = true},
      .gic = GicChoice::kV3,
      .its = true,
      .pv_vcpu_state = VcpuStateChoice::kAuto,
      .pv_time = true,
      .console = {.kind = ConsoleSpec::Kind::kPty, .path = {}},
      .hvc = ConsoleSpec{.kind = ConsoleSpec::Kind::kSocket, .path = "/run/hvc"},
      .disks = {{.path = "/disk", .id = "root", .read_only = false}, {.path = "/iso", .id = "seed", .read_only = true}},
      .nets = {{.tap = "tap0", .id = "net0", .mac = std::array<uint8_t, 6>{0x52, 0x54, 0, 0x12, 0x34, 0xab}}},
      .vsock = VsockSpec{.path = "/run/vsock", .guest_cid = 7},
      .balloon = true,
      .rng = true};
}

MachineSpec little() {
  MachineSpec spec;
  spec.name = "a";
  spec.gic = GicChoice::kV2;
  spec.its = false;
  spec.cpu = {.sve = false, .sve_quadwords = {}, .pauth = false, .pmu = false};
  spec.pv_vcpu_state = VcpuStateChoice::kOff;
  spec.pv_time = false;
  spec.rng = false;
  return spec;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const size_t place = text.find(what);
  EXPECT_NE(place, std::string::npos) << what;
  return place == std::string::npos ? text : text.replace(place, what.size(), by);
}

TEST(MachineSpecJsonTest, ADocumentGivesBackTheMachineItWasMadeOf) {
  EXPECT_EQ(machine_spec_from_json(to_json(everything())).value(), everything());
  EXPECT_EQ(machine_spec_from_json(to_json(little())).value(), little());
}

TEST(MachineSpecJsonTest, TheFirstVersionOfADocumentIsReadForEver) {
  constexpr std::string_view kDocument =
      R"({"balloon":true,"cmdline":"console=ttyAMA0 -- \"x\"","cpu":{"pauth":true,"pmu":true,"sve":true,)"
      R"("sve-quadwords":[1,2,4]},"defaults":{"console":{"kind":"pty","path":""},"disks":["/disk","/iso"],)"
      R"("hvc":{"kind":"socket","path":"/run/hvc"},"initrd":"/boot/initrd","kernel":"/boot/Image","name":"vm-1",)"
      R"("taps":["tap0"],"vsock":"/run/vsock"},"disks":[{"id":"root","read-only":false},{"id":"seed","read-only":true}],)"
      R"("gic":3,"hvc":true,"its":true,"memory":536870912,"nets":[{"id":"net0","mac":"52:54:00:12:34:ab"}],)"
      R"("pv-time":true,"pv-vcpu-state":true,"rng":true,"vcpus":4,"version":1,"vsock-cid":7})";
  EXPECT_EQ(machine_spec_from_json(kDocument).value(), everything());
  EXPECT_EQ(to_json(everything()), kDocument);
}

TEST(MachineSpecJsonTest, TextsOfAnyBytesTravel) {
  MachineSpec spec = little();
  spec.boot.cmdline = "a\xff\xfe\x01";
  spec.boot.kernel = "/\x80";
  EXPECT_EQ(machine_spec_from_json(to_json(spec)).value(), spec);
}

TEST(MachineSpecJsonTest, HowTheSourceKeptPvVcpuStateIsItsOwnBusiness) {
  MachineSpec spec = little();
  spec.pv_vcpu_state = VcpuStateChoice::kRequire;
  EXPECT_EQ(machine_spec_from_json(to_json(spec)).value().pv_vcpu_state, VcpuStateChoice::kAuto);
}

TEST(MachineSpecJsonTest, EveryTruncatedDocumentIsRefused) {
  const std::string document = to_json(everything());
  for (size_t size = 0; size < document.size(); ++size) {
    const auto spec = machine_spec_from_json(std::string_view(document).substr(0, size));
    ASSERT_FALSE(spec) << size;
    EXPECT_EQ(spec.error().code(), Errc::kCorrupt);
  }
}

TEST(MachineSpecJsonTest, MoreThanTheBoundIsNotEvenParsed) {
  const std::string document = to_json(little()) + std::string(kMaxSpecDocumentBytes, ' ');
  EXPECT_EQ(machine_spec_from_json(document).error().message(), "machine: the description has more than 1048576 bytes");
}

/// One change to the document of `everything`, and what is said about it.
struct BadDocument {
  const char* name;
  const char* what;
  const char* by;
  const char* error;
};
std::ostream& operator<<(std::ostream& out, const BadDocument& row) { return out << row.name; }

class BadDocumentTest : public ::testing::TestWithParam<BadDocument> {};

TEST_P(BadDocumentTest, IsRefusedWithOneLineThatSaysWhere) {
  const auto& [name, what, by, error] = GetParam();
  const auto spec = machine_spec_from_json(replaced(to_json(everything()), what, by));
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code(), Errc::kCorrupt);
  EXPECT_EQ(spec.error().message(), error);
}

INSTANTIATE_TEST_SUITE_P(
    MachineSpecJson, BadDocumentTest,
    ::testing::Values(
        BadDocument{"MissingMember", R"("rng":true,)", "", "machine.rng: is missing"},
        BadDocument{"UnknownMember", R"("rng":true,)", R"("rng":true,"x":1,)",
                    "machine: has members that nobody knows"},
        BadDocument{"KeyTwice", R"("rng":true,)", R"("rng":true,"rng":true,)",
                    "machine: the description is no JSON, or an object has a key twice"},
        BadDocument{"NewerVersion", R"("version":1)", R"("version":2)", "machine.version: is not a number from 1 to 1"},
        BadDocument{"NoVcpu", R"("vcpus":4)", R"("vcpus":0)", "machine.vcpus: is not a number from 1 to 512"},
        BadDocument{"NegativeVcpus", R"("vcpus":4)", R"("vcpus":-4)", "machine.vcpus: is not a number from 1 to 512"},
        BadDocument{"HugeMemory", "536870912", "18446744073709551615",
                    "machine.memory: is not a number from 33554432 to 4398046511104"},
        BadDocument{"OddMemory", "536870912", "536870913", "machine.memory: is no multiple of 2097152"},
        BadDocument{"GicV2WithIts", R"("gic":3)", R"("gic":2)",
                    "machine.gic: version 2 has no ITS and at most 8 vCPUs"},
        BadDocument{"WrongType", R"("balloon":true)", R"("balloon":1)", "machine.balloon: is neither true nor false"},
        BadDocument{"SveWithoutLengths", "[1,2,4]", "[]", "cpu.sve-quadwords: do not go with cpu.sve"},
        BadDocument{"SveLengthsOutOfOrder", "[1,2,4]", "[2,1]", "cpu.sve-quadwords: are no ascending lengths"},
        BadDocument{"SameIdTwice", R"("id":"seed")", R"("id":"root")", "machine: two devices have the same id"},
        BadDocument{"IdWithSlash", R"("id":"seed")", R"("id":"a/b")", "disks.1.id: is no id of a device"},
        BadDocument{"MulticastMac", "52:54:00:12:34:ab", "53:54:00:12:34:ab",
                    "nets.0.mac: is not the address of one station"},
        BadDocument{"OddMac", "52:54:00:12:34:ab", "52-54-00-12-34-ab",
                    "nets.0.mac: is not the address of one station"},
        BadDocument{"HostCid", R"("vsock-cid":7)", R"("vsock-cid":2)", "machine.vsock-cid: is no guest's"},
        BadDocument{"NameOfAPath", R"("vm-1")", R"("../x")", "defaults.name: is no name of a machine"},
        BadDocument{"PathWithNul", R"("/boot/Image")", R"("/boot\u0000Image")",
                    "defaults.kernel: is no text of at most 4095 bytes"},
        BadDocument{"DiskWithoutPath", R"("/disk","/iso")", R"("/disk")", "defaults: are not those of the devices"},
        BadDocument{"ConsoleOfNoKind", R"("pty")", R"("tty")", "defaults.console.kind: is no kind of console"},
        BadDocument{"ObjectForANumber", R"("gic":3)", R"("gic":{})", "machine.gic: is not a number from 2 to 3"},
        BadDocument{"NumberForAnObject", R"("defaults":{)", R"("defaults":7,"x":{)", "defaults: is no object"}),
    [](const auto& row) { return row.param.name; });

TEST(MachineSpecJsonTest, AFloodOfBracketsIsRefused) {
  EXPECT_FALSE(machine_spec_from_json(std::string(kMaxSpecDocumentBytes, '[')));
}

TEST(MachineSpecJsonTest, DifferencesAreWhatTheGuestWouldSee) {
  MachineSpec here = everything();
  here.name = "other";
  here.disks[0].path = "/elsewhere";
  here.console = {};
  EXPECT_TRUE(differences(everything(), here).empty());
  here.vcpu_count = 2;
  here.cpu.sve_quadwords = {1, 2};
  here.disks.pop_back();
  const std::vector<std::string> expected{"cpu/sve-quadwords/2: the machine has 4, this host nothing",
                                          "disks/1/id: the machine has \"seed\", this host nothing",
                                          "disks/1/read-only: the machine has true, this host nothing",
                                          "vcpus: the machine has 4, this host 2"};
  EXPECT_EQ(differences(everything(), here), expected);
}

}  // namespace
}  // namespace tandem
