// SPDX-License-Identifier: Apache-2.0
// A saved state of any content is read to its end or refused; what is accepted is written back the same.
#include "vmm/lib/state/state_record.hpp"

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/fuzz/input_reader.hpp"

namespace {

enum class Colour : uint8_t { kRed, kGreen };

struct PartV1 {
  uint32_t number = 0;
  bool flag = false;
  template <typename A>
  void fields(A& archive) {
    archive(1, number);
    archive(2, flag);
  }
};

/// One field of each kind that the reader knows.
struct ThingV1 {
  static constexpr tandem::StateKind kKind{"thing", 1};
  uint64_t wide = 0;
  bool flag = false;
  Colour colour = Colour::kRed;
  std::array<uint16_t, 3> row{};
  std::vector<uint32_t> list;
  std::string text;
  std::vector<PartV1> parts;
  template <typename A>
  void fields(A& archive) {
    archive(1, wide);
    archive(2, flag);
    archive(3, colour);
    archive(4, row);
    archive(5, list);
    archive(6, text);
    archive(7, parts);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const tandem::fuzz::InputReader input(bytes, size);
  const tandem::StateRecord record{
      .kind = "thing", .version = 1, .payload = {input.rest().begin(), input.rest().end()}};
  auto loaded = tandem::load_state<ThingV1>(record);
  if (!loaded) {
    return 0;
  }
  const tandem::StateRecord saved = tandem::save_state(*loaded);
  auto again = tandem::load_state<ThingV1>(saved);
  if (!again || tandem::save_state(*again) != saved) {
    std::abort();
  }
  return 0;
}
