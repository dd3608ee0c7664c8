// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/fdt_builder.hpp"

#include <libfdt.h>
#include <sys/random.h>

#include <algorithm>

#include "vmm/boot/boot_layout.hpp"
#include "vmm/lib/bits/bits.hpp"

namespace tandem::boot {
namespace {

using devices::FdtNode;

constexpr const char* kInitrdStart = "linux,initrd-start";
constexpr const char* kInitrdEnd = "linux,initrd-end";

/// Bytes that the blob of `node` takes at most: as if no property name occurred twice.
size_t bound_of(const FdtNode& node) {
  constexpr size_t kCell = 4;
  constexpr size_t kPropertyCells = 3;  // token, length, offset of the name
  constexpr size_t kNodeCells = 2;      // begin and end
  size_t bytes = kNodeCells * kCell + align_up(node.name().size() + 1, kCell);
  for (const auto& property : node.properties()) {
    bytes += kPropertyCells * kCell + align_up(property.value.size(), kCell) + property.name.size() + 1;
  }
  for (const FdtNode& child : node.children()) {
    bytes += bound_of(child);
  }
  return bytes;
}

void expect_written(int status) {
  TANDEM_ASSERT(
      status == 0,
      "the buffer has room for the bound, calls come in the order that libfdt wants, and what is set is there");
}

void write_node(void* blob, const FdtNode& node) {
  expect_written(fdt_begin_node(blob, node.name().c_str()));
  for (const auto& property : node.properties()) {
    expect_written(
        fdt_property(blob, property.name.c_str(), property.value.data(), static_cast<int>(property.value.size())));
  }
  for (const FdtNode& child : node.children()) {
    write_node(blob, child);
  }
  expect_written(fdt_end_node(blob));
}

}  // namespace

Result<std::vector<std::byte>> build_fdt(const FdtNode& root) {
  constexpr size_t kFrameBytes = sizeof(fdt_header) + sizeof(fdt_reserve_entry) + 64;  // end token and alignment
  const size_t bound = kFrameBytes + bound_of(root);
  if (bound > kMaxFdtBytes) {
    return fail(Errc::kOutOfRange, "the device tree takes {} bytes; at most {} are possible", bound, kMaxFdtBytes);
  }
  std::vector<std::byte> blob(bound);
  expect_written(fdt_create(blob.data(), static_cast<int>(blob.size())));
  expect_written(fdt_finish_reservemap(blob.data()));
  write_node(blob.data(), root);
  expect_written(fdt_finish(blob.data()));
  blob.resize(fdt_totalsize(blob.data()));
  return blob;
}

Result<BootSeeds> BootSeeds::draw() {
  std::array<std::byte, sizeof(BootSeeds::rng) + sizeof(BootSeeds::kaslr)> bytes;
  // Up to 256 bytes come whole once the host's generator is ready; before that, a signal can end the wait.
  ssize_t count = 0;
  do {
    count = ::getrandom(bytes.data(), bytes.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count != static_cast<ssize_t>(bytes.size())) {
    return fail_errno("getrandom");
  }
  BootSeeds seeds{};
  std::copy_n(bytes.begin(), seeds.rng.size(), seeds.rng.begin());
  seeds.kaslr = load_le<uint64_t>(std::span(bytes).subspan(seeds.rng.size()));
  return seeds;
}

FdtNode make_chosen_node(const ChosenSpec& spec) {
  FdtNode node("chosen");
  node.add_string("bootargs", spec.cmdline);
  if (!spec.stdout_path.empty()) {
    node.add_string("stdout-path", spec.stdout_path);
  }
  node.add_bytes("rng-seed", spec.seeds.rng);
  node.add_u64("kaslr-seed", spec.seeds.kaslr);
  if (spec.initrd) {
    const uint64_t start = spec.initrd->base().value();
    node.add_u64(kInitrdStart, start);
    node.add_u64(kInitrdEnd, start + spec.initrd->size());
  }
  return node;
}

void set_initrd_range(std::vector<std::byte>& blob, GuestRange initrd) {
  const uint64_t start = initrd.base().value();
  const int chosen = fdt_path_offset(blob.data(), "/chosen");
  expect_written(fdt_setprop_inplace_u64(blob.data(), chosen, kInitrdStart, start));
  expect_written(fdt_setprop_inplace_u64(blob.data(), chosen, kInitrdEnd, start + initrd.size()));
}

}  // namespace tandem::boot
