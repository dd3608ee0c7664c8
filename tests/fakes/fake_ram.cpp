// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/fake_ram.hpp"

#include "vmm/lib/bits/bits.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem {

FakeRam::FakeRam(uint64_t size_bytes)
    : range_(GuestRange::create(kBase, size_bytes).value()),
      mapping_(
          MappedRegion::map(size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE).value()),
      memory_({{range_, mapping_.bytes()}}) {}

GuestAddr FakeRam::allocate(uint64_t size_bytes, uint64_t alignment) {
  const uint64_t offset = align_up(allocated_bytes_, alignment);
  TANDEM_ASSERT(offset + size_bytes <= range_.size(), "the test asks for more RAM than it made");
  allocated_bytes_ = offset + size_bytes;
  return GuestAddr(kBase.value() + offset);
}

GuestAddr FakeRam::end_minus(uint64_t size_bytes) const { return GuestAddr(range_.last().value() - size_bytes + 1); }

std::vector<std::byte> FakeRam::read(GuestAddr addr, size_t size_bytes) const {
  std::vector<std::byte> bytes(size_bytes);
  TANDEM_ASSERT(memory_.read(addr, bytes), "the test reads RAM");
  return bytes;
}

void FakeRam::write(GuestAddr addr, std::span<const std::byte> bytes) const {
  TANDEM_ASSERT(memory_.write(addr, bytes), "the test writes RAM");
}

}  // namespace tandem
