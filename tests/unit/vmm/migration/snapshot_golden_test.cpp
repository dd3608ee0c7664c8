// SPDX-License-Identifier: Apache-2.0
// Snapshots of every format version that was released still load: tests/golden/snapshot.v<N>.
#include "tests/unit/vmm/migration/snapshot_rig.hpp"
#include "vmm/migration/snapshot.hpp"

namespace tandem::migration {
namespace {

/// The files in tests/golden, put together again: RAM of 2 MiB has its beginning and what is behind it on record, and zeros
/// between them.
class SnapshotGoldenTest : public SnapshotRig {
 protected:
  static std::string recorded(const std::string& name) {
    std::ifstream stream(std::string(TANDEM_GOLDEN) + "/snapshot.v1/" + name + ".bin", std::ios::binary);
    return {std::istreambuf_iterator(stream), {}};
  }
  void assemble() {
    std::filesystem::create_directory(path("v1"));
    for (const std::string name : {"manifest", "spec", "state", "ram.sums"}) {
      overwrite("v1/" + name, recorded(name));
    }
    const std::string image = recorded("image");
    overwrite("v1/" + image_file_name(checksum_of(std::as_bytes(std::span(image)))), image);
    std::string ram_file = recorded("ram.begin");
    ram_file.resize(kRamChunkBytes);
    overwrite("v1/ram", ram_file + recorded("ram.end"));
  }
};

TEST_F(SnapshotGoldenTest, Version1Loads) {
  assemble();
  const auto snapshot = Snapshot::open(path("v1"));
  ASSERT_TRUE(snapshot) << snapshot.error().message();
  EXPECT_TRUE(verify("v1"));
  EXPECT_EQ(snapshot->spec_document(), R"({"name":"golden"})");
  EXPECT_EQ(snapshot->ram_bytes(), kRamChunkBytes);
  const MachineState expected{{"uart0", {.kind = "uart_pl011", .version = 1, .payload = noise(40, 2)}},
                              {"rng0", StateRecord::none("virtio_rng")}};
  EXPECT_EQ(snapshot->state(), expected);
  const auto loaded = snapshot->load_images();
  ASSERT_TRUE(loaded && loaded->size() == 1);
  EXPECT_EQ(loaded->front().role, "kernel");
  const auto mapping = snapshot->map_ram(GuestRange::fixed(0x4000'0000, kRamChunkBytes));
  ASSERT_TRUE(mapping);
  EXPECT_TRUE(std::ranges::equal(mapping->bytes().first(64), noise(64, 5)));
  EXPECT_EQ(mapping->bytes()[64], std::byte{0});
}

TEST_F(SnapshotGoldenTest, Version1IsStillWritten) {
  assemble();
  spec = R"({"name":"golden"})";
  state.erase(state.begin());
  images.pop_back();
  images[0].image = sealed(noise(100, 3));
  ram.assign(kRamChunkBytes, {});
  std::ranges::copy(noise(64, 5), ram.begin());
  ASSERT_TRUE(save("now"));
  EXPECT_EQ(names("now"), names("v1"));
  for (const std::string& name : names("v1")) {
    EXPECT_TRUE(content("now/" + name) == content("v1/" + name)) << name;
  }
}

}  // namespace
}  // namespace tandem::migration
