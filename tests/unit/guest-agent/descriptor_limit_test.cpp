// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/descriptor_limit.hpp"

#include <gtest/gtest.h>

namespace tandem::agent {
namespace {

struct Row {
  const char* name;
  rlimit now;
  rlimit wanted;
};

class DescriptorLimitTest : public testing::TestWithParam<Row> {};

TEST_P(DescriptorLimitTest, OnlyRises) {
  const rlimit limit = roomy_descriptor_limit(GetParam().now);
  EXPECT_EQ(limit.rlim_cur, GetParam().wanted.rlim_cur);
  EXPECT_EQ(limit.rlim_max, GetParam().wanted.rlim_max);
}

INSTANTIATE_TEST_SUITE_P(Limits, DescriptorLimitTest,
                         testing::Values(Row{"OfTheKernel", {1024, 4096}, {16384, 16384}},
                                         Row{"OfSystemd", {1024, 524288}, {16384, 524288}},
                                         Row{"Generous", {100000, 1048576}, {100000, 1048576}},
                                         Row{"None", {RLIM_INFINITY, RLIM_INFINITY}, {RLIM_INFINITY, RLIM_INFINITY}}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace tandem::agent
