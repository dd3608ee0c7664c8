// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/snapshot_manifest.hpp"

#include <gtest/gtest.h>

#include <span>

#include "vmm/migration/snapshot_format.hpp"

namespace tandem::migration {
namespace {

SnapshotManifest sample() {
  const FileEntry file{.size_bytes = 17, .checksum = {.high = 1, .low = 2}};
  return {
      .spec = file,
      .state = file,
      .ram_bytes = 64U << 20,
      .ram_sums = file,
      .images = {{.role = "kernel", .file = file, .stored = true}, {.role = "initrd", .file = file, .stored = false}},
      .base = BaseEntry{.path = "../a", .manifest = {.high = 3, .low = 4}},
      .page_bytes = 4096};
}

/// A manifest whose first line fits `body`.
std::string with_header(const std::string& body) {
  return fmt::format("TANDEM-SNAPSHOT 1 aarch64 {} {}\n{}", body.size(),
                     checksum_of(std::as_bytes(std::span(body))).text(), body);
}

std::string body_of(const std::string& manifest) { return manifest.substr(manifest.find('\n') + 1); }

/// The manifest with one piece of its JSON replaced.
std::string with(const std::string& what, const std::string& by) {
  std::string body = body_of(encode_manifest(sample()).value());
  const size_t place = body.find(what);
  EXPECT_NE(place, std::string::npos) << what;
  return with_header(body.replace(place, what.size(), by));
}

TEST(SnapshotManifestTest, IsReadAsItWasWritten) {
  EXPECT_EQ(decode_manifest(encode_manifest(sample()).value()).value(), sample());
}

TEST(SnapshotManifestTest, ANewerVersionIsUnsupported) {
  const auto decoded = decode_manifest("TANDEM-SNAPSHOT 2 aarch64 anything at all");
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Errc::kUnsupported);
  EXPECT_EQ(decoded.error().message(), "format version 2; this tandem reads version 1");
}

TEST(SnapshotManifestTest, AnotherArchitectureIsUnsupported) {
  const auto decoded = decode_manifest("TANDEM-SNAPSHOT 1 riscv64 2 00\n{}");
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Errc::kUnsupported);
}

TEST(SnapshotManifestTest, ManyImagesAreNotWritten) {
  SnapshotManifest manifest = sample();
  manifest.images.resize(kMaxBootImages + 1, manifest.images[0]);
  EXPECT_FALSE(encode_manifest(manifest));
}

struct Hostile {
  const char* name;
  std::string content;
};

class HostileManifestTest : public testing::TestWithParam<Hostile> {};

TEST_P(HostileManifestTest, IsCorrupt) {
  const auto decoded = decode_manifest(GetParam().content);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Errc::kCorrupt) << decoded.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Snapshot, HostileManifestTest,
    testing::Values(
        Hostile{"Empty", ""}, Hostile{"AnotherFile", "#!/bin/sh\n"}, Hostile{"NoNewline", "TANDEM-SNAPSHOT 1 aarch64"},
        Hostile{"VersionZero", "TANDEM-SNAPSHOT 0 aarch64 2 00\n{}"},
        Hostile{"VersionOverflows", "TANDEM-SNAPSHOT 99999999999999999999 aarch64 2 00\n{}"},
        Hostile{"NoJson", with_header("{")}, Hostile{"EmptyObject", with_header("{}\n")},
        Hostile{"Array", with_header("[]\n")}, Hostile{"DeepNesting", with_header(std::string(60'000, '['))},
        Hostile{"BehindTheEnd", encode_manifest(sample()).value() + "\n"},
        Hostile{"AnotherSpacing", with("\"size\": 17", "\"size\":  17")},
        Hostile{"UnknownMember", with("\"spec\": {", "\"x\": 1,\n  \"spec\": {")},
        Hostile{"MemberTwice", with("\"size\": 17", "\"size\": 17,\n    \"size\": 17")},
        Hostile{"NegativeSize", with("\"size\": 17", "\"size\": -1")},
        Hostile{"FractionalSize", with("\"size\": 17", "\"size\": 17.0")},
        Hostile{"HugeSpec", with("\"size\": 17", "\"size\": 18446744073709551615")},
        Hostile{"HugeRam", with("67108864", "9223372036854775808")}, Hostile{"OddRam", with("67108864", "67108865")},
        Hostile{"NoRam", with("67108864", "0")}, Hostile{"PageOfNoHost", with("4096", "4097")},
        Hostile{"TinyPage", with("4096", "1")}, Hostile{"AbsoluteBase", with("../a", "/etc")},
        Hostile{"EmptyBase", with("../a", "")}, Hostile{"BaseWithNul", with("../a", "a\\u0000b")},
        Hostile{"ImageTwice", with("initrd", "kernel")}, Hostile{"RoleWithSlash", with("initrd", "ini/rd")},
        Hostile{"ImageLargerThanRam", with("\"size\": 17,\n        \"ch", "\"size\": 67108865,\n        \"ch")},
        Hostile{"ShortChecksum", with("00000000000000030000", "0000000000000003000")}),
    [](const testing::TestParamInfo<Hostile>& hostile) { return hostile.param.name; });

}  // namespace
}  // namespace tandem::migration
