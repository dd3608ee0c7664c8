// SPDX-License-Identifier: Apache-2.0
#include "pv/host/choose_vcpu_state_backend.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/fakes/fake_vcpu_state_backend.hpp"

namespace tandem::pv {
namespace {

NamedVcpuStateBackend working(const std::string& name) {
  return {name, [name] { return std::make_unique<FakeVcpuStateBackend>(name); }};
}

NamedVcpuStateBackend failing(const std::string& name, Errc code, const std::string& reason) {
  return {name, [code, reason]() -> Result<std::unique_ptr<VcpuStateBackend>> { return fail(code, "{}", reason); }};
}

const VcpuStateBackendFactory kLastResort = working("zeros").create;

TEST(ChooseVcpuStateBackendTest, TheFirstThatWorksIsTaken) {
  const std::array candidates{failing("a", Errc::kPermission, "no"), working("b"), working("c")};
  const auto chosen = choose_vcpu_state_backend(candidates, kLastResort);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->backend->name(), "b");
  EXPECT_EQ(chosen->why_not_better, "");
}

TEST(ChooseVcpuStateBackendTest, IfNoneWorksTheLastResortIsTakenWithEveryReason) {
  const std::array candidates{failing("a", Errc::kPermission, "not allowed"), failing("b", Errc::kNotFound, "no BTF")};
  const auto chosen = choose_vcpu_state_backend(candidates, kLastResort);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->backend->name(), "zeros");
  EXPECT_EQ(chosen->why_not_better, "a: not allowed; b: no BTF");
}

TEST(ChooseVcpuStateBackendTest, WithoutALastResortTheReasonsAreTheError) {
  const std::array candidates{failing("a", Errc::kPermission, "not allowed"), failing("b", Errc::kNotFound, "no BTF")};
  const auto chosen = choose_vcpu_state_backend(candidates, {});
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code(), Errc::kUnsupported);
  EXPECT_EQ(chosen.error().message(), "a: not allowed; b: no BTF");
}

TEST(ChooseVcpuStateBackendTest, ALastResortThatFailsIsAnError) {
  const std::array candidates{failing("a", Errc::kPermission, "not allowed")};
  const auto chosen = choose_vcpu_state_backend(candidates, failing("zeros", Errc::kOutOfMemory, "no memory").create);
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code(), Errc::kOutOfMemory);
}

}  // namespace
}  // namespace tandem::pv
