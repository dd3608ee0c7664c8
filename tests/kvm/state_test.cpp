// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/harness/capabilities.hpp"
#include "tests/kvm/test_vm.hpp"
#include "vmm/kvm/vm_counter_state.hpp"
#include "vmm/lib/state/machine_state.hpp"
#include "vmm/vcpu/vcpu_state.hpp"

namespace tandem::tests {
namespace {

constexpr uint64_t kSeed = 0x1000'0000'0000;

template <typename T>
T expect(Result<T> made) {
  EXPECT_TRUE(made) << made.error().message();
  return made ? std::move(*made) : T{};
}

/// Names the vGIC's registers that differ.
void expect_same_vgic(const StateRecord& before, const StateRecord& after) {
  const auto saved = load_state<KvmVgicStateV1>(before);
  const auto restored = load_state<KvmVgicStateV1>(after);
  ASSERT_TRUE(saved && restored);
  ASSERT_EQ(saved->attrs, restored->attrs);
  for (size_t index = 0; index < saved->attrs.size(); ++index) {
    EXPECT_EQ(saved->values[index], restored->values[index])
        << std::hex << "group " << saved->groups[index] << " register 0x" << saved->attrs[index];
  }
}

/// Its registers, of a record that is one of a vCPU.
RegisterSet registers_in(const StateRecord& record) {
  const auto state = load_state<KvmVcpuStateV1>(record);
  EXPECT_TRUE(state);
  return expect(take_registers(*state));
}

/// Names the registers that differ.
void expect_same_registers(const StateRecord& before, const StateRecord& after) {
  const RegisterSet saved = registers_in(before);
  const RegisterSet restored = registers_in(after);
  EXPECT_EQ(saved.registers().size(), restored.registers().size());
  for (const auto& [id, reg] : saved.registers()) {
    const auto there = restored.registers().find(id);
    ASSERT_NE(there, restored.registers().end()) << name_of(id);
    EXPECT_EQ(there->second, reg) << name_of(id);
  }
  EXPECT_EQ(before, after);
}

/// Two VMs alike, as on both sides of a migration. Its parameter is the number of vCPUs.
class KvmStateTest : public testing::TestWithParam<unsigned> {
 protected:
  /// All components, in the order of saving.
  static MachineState save(TestVm& vm) {
    MachineState state;
    for (unsigned index = 0; index < vm.vcpu_count(); ++index) {
      state.push_back({std::string(vm.vcpu(index).name()), expect(vm.vcpu(index).save())});
    }
    state.push_back({"vgic", expect(vm.vgic().save())});
    return state;
  }
  /// RAM, counter, vCPUs and vGIC of `from` become those of `to`.
  static MachineState carry_over(TestVm& from, TestVm& to) {
    const MachineState state = save(from);
    const StateRecord counter = expect(from.counter().save());
    std::ranges::copy(from.ram(), to.ram().begin());
    expect_done(to.counter().restore(counter));
    for (unsigned index = 0; index < to.vcpu_count(); ++index) {
      expect_done(to.vcpu(index).restore(state.at(index).record));
    }
    expect_done(to.vgic().restore(state.back().record));
    return state;
  }
  static void expect_done(const Result<void>& done) { EXPECT_TRUE(done) << done.error().message(); }

  void expect_same_state(const MachineState& before) {
    const MachineState after = save(target_);
    ASSERT_EQ(after.size(), before.size());
    for (unsigned index = 0; index < target_.vcpu_count(); ++index) {
      SCOPED_TRACE(before[index].component);
      expect_same_registers(before[index].record, after[index].record);
    }
    expect_same_vgic(before.back().record, after.back().record);
    EXPECT_TRUE(std::ranges::equal(source_.ram(), target_.ram()));
  }

  VcpuFeatures features_ = host_features();
  TestVm source_{GetParam(), features_};
  TestVm target_{GetParam(), source_.vcpu(0).features()};
};

/// A guest whose last vCPU has an LPI pending, and the tables of its ITS.
class KvmLpiTest : public KvmStateTest {
 protected:
  static constexpr uint64_t kRam = 0x4000'0000;
  static constexpr uint64_t kCommands = kRam + 0x10'0000, kDevices = kRam + 0x11'0000, kCollections = kRam + 0x12'0000,
                            kEvents = kRam + 0x13'0000, kProperties = kRam + 0x20'0000, kPending = kRam + 0x30'0000;
  /// The last vCPU's.
  [[nodiscard]] static uint64_t pending_table() { return kPending + 0x10000 * (GetParam() - 1); }

  void SetUp() override {
    if (capabilities().gic_version != 3) {
      GTEST_SKIP() << "no ITS in " << capabilities().where;
    }
    constexpr uint64_t kValid = uint64_t{1} << 63;
    const uint64_t gits = TestVm::kGits.base().value();
    const uint64_t last_vcpu = GetParam() - 1;
    const uint64_t redistributor = TestVm::kGicr + 0x20000 * last_vcpu;
    // LPI 8192 and 8193 enabled; device 7 has events 0 and 1, of which the last vCPU is to get both. (IHI 0069H, "ITS commands")
    ASSERT_TRUE(source_.memory().write_value(GuestAddr(kProperties), uint16_t{0xa1a1}));
    using Command = std::array<uint64_t, 4>;
    const std::array commands{
        Command{0x08 | (uint64_t{7} << 32), 4, kEvents | kValid, 0},            // MAPD
        Command{0x09, 0, (last_vcpu << 16) | kValid | 1, 0},                    // MAPC of collection 1
        Command{0x0a | (uint64_t{7} << 32), (uint64_t{8192} << 32) | 0, 1, 0},  // MAPTI
        Command{0x0a | (uint64_t{7} << 32), (uint64_t{8193} << 32) | 1, 1, 0},  // MAPTI
        Command{0x03 | (uint64_t{7} << 32), 1, 0, 0},                           // INT of event 1
    };
    ASSERT_TRUE(source_.memory().write(GuestAddr(kCommands), std::as_bytes(std::span(commands))));
    const auto poked = source_.poke(std::array{
        Poke{redistributor + 0x70, kProperties | 15, 8}, Poke{redistributor + 0x78, pending_table(), 8},
        Poke{redistributor, 1, 4}, Poke{gits + 0x80, kCommands | kValid, 8}, Poke{gits + 0x100, kDevices | kValid, 8},
        Poke{gits + 0x108, kCollections | kValid, 8}, Poke{gits, 1, 4}, Poke{gits + 0x88, sizeof commands, 8}});
    ASSERT_TRUE(poked) << poked.error().message();
  }
};

TEST_P(KvmLpiTest, PendingLpisAreTheSameElsewhere) {
  const MachineState before = carry_over(source_, target_);

  // KVM has told RAM that LPI 8193 is pending, and which device and event it belongs to.
  const auto pending = source_.memory().read_value<uint8_t>(GuestAddr(pending_table() + 8192 / 8));
  ASSERT_TRUE(pending);
  EXPECT_EQ(*pending, 2);
  expect_same_state(before);
}

TEST_P(KvmLpiTest, TheLogHasTheTablesThatSavingWrites) {
  const auto guest_log = KvmDirtyLog::create(source_.vm(), TestVm::kRam);
  ASSERT_TRUE(guest_log) << guest_log.error().message();
  RamWriteLog log(source_.memory(), **guest_log, TestVm::kRam, host_page_size());
  const auto reader = log.open();
  ASSERT_TRUE(reader) << reader.error().message();
  ASSERT_TRUE(source_.vgic().save());
  DirtyBitmap written = log.make_bitmap();
  expect_done((*reader)->collect(written));
  for (const uint64_t table : {kDevices, kCollections, kEvents, pending_table()}) {
    EXPECT_TRUE(written.is_marked((table - kRam) / host_page_size())) << std::hex << table;
  }
}

INSTANTIATE_TEST_SUITE_P(Vcpus, KvmStateTest, testing::Values(1U, 4U),
                         [](const auto& test) { return std::to_string(test.param); });
INSTANTIATE_TEST_SUITE_P(Vcpus, KvmLpiTest, testing::Values(1U, 4U),
                         [](const auto& test) { return std::to_string(test.param); });

TEST_P(KvmStateTest, AFreshVmIsTheSameElsewhere) { expect_same_state(carry_over(source_, target_)); }

TEST_P(KvmStateTest, RegistersOfEveryVcpuAreTheSameElsewhere) {
  for (unsigned index = 0; index < GetParam(); ++index) {
    const auto ended = source_.run(index, fill_registers_code(), kSeed * (index + 1));
    ASSERT_TRUE(ended) << ended.error().message();
  }
  const MachineState before = carry_over(source_, target_);
  expect_same_state(before);
  for (unsigned index = 0; index < GetParam(); ++index) {
    const uint64_t expected = expect(source_.run(index, read_x19_code()));
    EXPECT_GT(expected, kSeed * (index + 1));
    EXPECT_EQ(expect(target_.run(index, read_x19_code())), expected);
  }
}

TEST_P(KvmStateTest, VectorsAndPredicatesAreTheSameElsewhere) {
  if (!capabilities().sve) {
    GTEST_SKIP() << "no SVE in " << capabilities().where;
  }
  for (unsigned index = 0; index < GetParam(); ++index) {
    const auto vector_bytes = source_.run(index, fill_sve_code(), 17 * (index + 1));
    ASSERT_TRUE(vector_bytes) << vector_bytes.error().message();
    EXPECT_GE(*vector_bytes, 16U);
  }
  expect_same_state(carry_over(source_, target_));
}

TEST_P(KvmStateTest, ThePmuIsTheSameElsewhere) {
  if (!capabilities().pmu) {
    GTEST_SKIP() << "no PMU in " << capabilities().where;
  }
  ASSERT_TRUE(source_.run(0, fill_pmu_code(), 5));
  const MachineState before = carry_over(source_, target_);
  expect_same_state(before);
  const RegisterSet restored = registers_in(before.front().record);
  constexpr RegisterId kPmcntenset = register_id::system(3, 3, 9, 12, 1);
  EXPECT_EQ(restored.registers().at(kPmcntenset).value.front(), std::byte{5});
}

TEST_P(KvmStateTest, VcpusThatAreOffStayOff) {
  const MachineState before = carry_over(source_, target_);
  for (unsigned index = 0; index < GetParam(); ++index) {
    const auto state = load_state<KvmVcpuStateV1>(expect(target_.vcpu(index).save()));
    ASSERT_TRUE(state);
    EXPECT_EQ(state->mp_state, load_state<KvmVcpuStateV1>(before.at(index).record)->mp_state);
    EXPECT_EQ(state->mp_state == 0, index == 0);
  }
}

TEST_P(KvmStateTest, ARestoreDoesAwayWithWhatWasThere) {
  ASSERT_TRUE(target_.run(0, fill_registers_code(), 3 * kSeed));
  expect_same_state(carry_over(source_, target_));
}

TEST_P(KvmStateTest, PendingInterruptsAreTheSameElsewhere) {
  const uint64_t gicd = TestVm::kGicd.base().value();
  // Group 1 for SPIs 32..63, another priority for one, SPI 33 pending, SPI 34 edge-triggered and enabled.
  std::vector<Poke> pokes{{gicd + 0x000, source_.is_gicv3() ? 0x12U : 1U, 4},
                          {gicd + 0x084, 0xffffffff, 4},
                          {gicd + 0x420, 0x40302010, 4},
                          {gicd + 0xc08, 0x20, 4},
                          {gicd + 0x104, 4, 4},
                          {gicd + 0x204, 6, 4}};
  if (!source_.is_gicv3()) {
    pokes.push_back({gicd + 0x820, 0x01010101, 4});
    pokes.push_back({gicd + 0xf00, 0x0200'0003, 4});  // SGI 3 to vCPU 0 itself
  }
  const auto poked = source_.poke(pokes);
  ASSERT_TRUE(poked) << poked.error().message();
  if (source_.is_gicv3()) {
    for (unsigned index = 0; index < GetParam(); ++index) {
      ASSERT_TRUE(source_.run(index, enable_cpu_interface_code()));
    }
    ASSERT_TRUE(source_.run(0, send_sgi_code(), (uint64_t{1} << 40) | (5U << 24)));  // SGI 5 to all others
  }
  source_.vm().set_level(devices::Intid::spi(8), true);
  const MachineState before = carry_over(source_, target_);
  if (!source_.is_gicv3()) {
    target_.vm().set_level(devices::Intid::spi(8), true);  // as its device does
  }
  expect_same_state(before);
}

TEST_P(KvmStateTest, ANewRestoreOfAnOldStateIsTheOldState) {
  const MachineState fresh = save(source_);
  source_.vm().set_level(devices::Intid::spi(8), true);
  ASSERT_TRUE(source_.poke(std::array{Poke{TestVm::kGicd.base().value() + 0x204, 6, 4}}));
  source_.vm().set_level(devices::Intid::spi(8), false);
  expect_done(source_.vgic().restore(fresh.back().record));
  expect_same_vgic(fresh.back().record, expect(source_.vgic().save()));
}

TEST_P(KvmStateTest, TheCounterGoesOnFromTheSavedValue) {
  ASSERT_TRUE(source_.run(0, read_x19_code()));
  const StateRecord record = expect(source_.counter().save());
  const uint64_t saved = load_state<VmCounterStateV1>(record)->value;
  expect_done(target_.counter().restore(record));
  const uint64_t restored = expect(target_.counter().read());
  EXPECT_GE(restored, saved);
  EXPECT_LT(restored - saved, 60 * KvmCounter::frequency_hz());
}

TEST_P(KvmStateTest, TheCounterMayBeSetToAnyValue) {
  constexpr uint64_t kValue = uint64_t{1} << 50;
  expect_done(target_.counter().set(kValue));
  EXPECT_GE(expect(target_.counter().read()), kValue);
  EXPECT_LT(expect(target_.counter().read()), kValue + 60 * KvmCounter::frequency_hz());
}

TEST_P(KvmStateTest, BothCountersOfTheGuestAreTheSame) {
  const auto apart = source_.run(0, read_counters_code());
  ASSERT_TRUE(apart) << apart.error().message();
  EXPECT_LT(*apart, 60 * KvmCounter::frequency_hz());
}

TEST_P(KvmStateTest, AControllerForOtherVcpusIsRefused) {
  TestVm other(GetParam() + 1, features_);
  const auto restored = other.vgic().restore(expect(source_.vgic().save()));
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code(), Errc::kUnsupported);
}

TEST_P(KvmStateTest, AnotherCpuIsRefusedByTheNamesOfItsRegisters) {
  KvmVcpuStateV1 state = *load_state<KvmVcpuStateV1>(expect(source_.vcpu(0).save()));
  const auto midr =
      std::ranges::find(state.register_ids, register_id::system(3, 0, 0, 0, 0)) - state.register_ids.begin();
  size_t offset = 0;
  for (ptrdiff_t index = 0; index < midr; ++index) {
    offset += size_bytes_of(state.register_ids.at(static_cast<size_t>(index)));
  }
  state.register_values.at(offset) ^= 0xf;
  const auto restored = target_.vcpu(0).restore(save_state(state));
  ASSERT_FALSE(restored);
  EXPECT_NE(restored.error().message().find("MIDR_EL1 (saved "), std::string::npos) << restored.error().message();
}

TEST_P(KvmStateTest, VectorLengthsThatTheHostLacksAreRefused) {
  if (!capabilities().sve) {
    GTEST_SKIP() << "no SVE in " << capabilities().where;
  }
  VcpuFeatures features = source_.vcpu(0).features();
  ASSERT_TRUE(features.sve_vector_lengths);
  (*features.sve_vector_lengths)[0] |= uint64_t{1} << 40;
  const auto kvm = Kvm::open();
  ASSERT_TRUE(kvm);
  const auto vm = KvmVm::create(*kvm, TestVm::kRam.last());
  ASSERT_TRUE(vm);
  const auto vcpu = KvmVcpu::create(**vm, 0, features);
  ASSERT_FALSE(vcpu);
  EXPECT_EQ(vcpu.error().code(), Errc::kUnsupported);
}

}  // namespace
}  // namespace tandem::tests
