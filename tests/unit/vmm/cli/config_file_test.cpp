// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/config_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "tests/fakes/memory_file.hpp"

namespace tandem::cli {
namespace {

using Texts = std::vector<std::string>;

Texts texts_of(std::string_view json, std::string_view option) {
  const auto given = parse_config(json, "F");
  if (!given) {
    ADD_FAILURE() << given.error().message();
    return {};
  }
  return given->at(find_run_option(option)).texts;
}

TEST(ConfigFileTest, AnEmptyObjectGivesNothing) {
  const auto given = parse_config("{}", "F");
  ASSERT_TRUE(given);
  EXPECT_EQ(given->size(), run_options().size());
  EXPECT_TRUE(std::ranges::all_of(*given, [](const GivenOption& option) { return option.texts.empty(); }));
}

TEST(ConfigFileTest, ANumberIsTakenAsItsDigits) {
  EXPECT_EQ(texts_of(R"({"memory": 18446744073709551615})", "memory"), Texts{"18446744073709551615"});
  EXPECT_EQ(texts_of(R"({"cpus": -1})", "cpus"), Texts{"-1"});
}

TEST(ConfigFileTest, AFalseFlagIsNotGiven) { EXPECT_EQ(texts_of(R"({"no-rng": false})", "no-rng"), Texts{}); }

TEST(ConfigFileTest, AnArrayKeepsItsOrder) {
  EXPECT_EQ(texts_of(R"({"disk": ["b", "a"], "cpus": 1})", "disk"), (Texts{"b", "a"}));
}

TEST(ConfigFileTest, EscapesAreUndone) {
  EXPECT_EQ(texts_of(R"({"kernel": "\u00e9\/\n"})", "kernel"), Texts{"\xc3\xa9/\n"});
}

struct BadConfig {
  const char* name;
  std::string json;
  std::string message;
};

class ConfigFileErrorTest : public testing::TestWithParam<BadConfig> {};

TEST_P(ConfigFileErrorTest, OneLineSaysWhatIsWrong) {
  const auto given = parse_config(GetParam().json, "F");
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().message(), GetParam().message);
}

std::string repeated(std::string_view text, size_t count) {
  std::string all;
  for (size_t index = 0; index < count; ++index) {
    all += text;
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    Contents, ConfigFileErrorTest,
    testing::Values(
        BadConfig{"UnknownKey", R"({"cpu": 1})", "F: 'cpu' is not an option"},
        BadConfig{"KeyWithDashes", R"({"--cpus": 1})", "F: '--cpus' is not an option"},
        BadConfig{"ConfigInConfig", R"({"config": "x"})", "F: 'config' is not an option"},
        BadConfig{"RepeatedKey", R"({"cpus": 1, "cpus": 1})", "F: cpus: is there twice"},
        BadConfig{"RepeatedFalse", R"({"pmu": false, "pmu": true})", "F: pmu: is there twice"},
        BadConfig{"NumberForText", R"({"kernel": 1})", "F: kernel: has to be a string"},
        BadConfig{"FractionForNumber", R"({"cpus": 1.0})", "F: cpus: has to be a whole number or a string"},
        BadConfig{"HugeNumber", R"({"cpus": 18446744073709551616})", "F: cpus: has to be a whole number or a string"},
        BadConfig{"TextForFlag", R"({"pmu": "true"})", "F: pmu: has to be true or false"},
        BadConfig{"FlagForText", R"({"kernel": true})", "F: kernel: has to be a string"},
        BadConfig{"TextForList", R"({"disk": "a"})", "F: disk: has to be an array of strings"},
        BadConfig{"ListForText", R"({"kernel": ["a"]})", "F: kernel: has to be a string"},
        BadConfig{"NumberInList", R"({"disk": ["a", 1]})", "F: disk: has to be an array of strings"},
        BadConfig{"ListInList", R"({"disk": [["a"]]})", "F: disk: has to be an array of strings"},
        BadConfig{"ObjectInList", R"({"disk": [{"path": "a"}]})", "F: disk: has to be an array of strings"},
        BadConfig{"FlagInList", R"({"disk": [true]})", "F: disk: has to be an array of strings"},
        BadConfig{"Null", R"({"kernel": null})", "F: kernel: has to be a string"},
        BadConfig{"Object", R"({"kernel": {}})", "F: kernel: has to be a string"},
        BadConfig{"Nul", R"({"kernel": "a\u0000b"})", "F: kernel: a string holds a NUL"},
        BadConfig{"DeepNesting", R"({"kernel": )" + repeated("[", 100'000), "F: kernel: has to be a string"},
        BadConfig{"DeepNestingOutside", repeated("[", 100'000), "F: is not a JSON object"},
        BadConfig{"Array", "[]", "F: is not a JSON object"}, BadConfig{"Text", R"("run")", "F: is not a JSON object"},
        BadConfig{"Number", "1", "F: is not a JSON object"}),
    [](const auto& row) { return row.param.name; });

class ConfigSyntaxErrorTest : public testing::TestWithParam<BadConfig> {};

TEST_P(ConfigSyntaxErrorTest, OneShortLineSaysWhere) {
  const auto given = parse_config(GetParam().json, "F");
  ASSERT_FALSE(given);
  const std::string& message = given.error().message();
  EXPECT_TRUE(message.starts_with(GetParam().message)) << message;
  EXPECT_LT(message.size(), 250U) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Contents, ConfigSyntaxErrorTest,
    testing::Values(BadConfig{"Nothing", "", "F: parse error at line 1, column 1: "},
                    BadConfig{"OnlyStart", "{", "F: parse error at line 1, column 2: "},
                    BadConfig{"NotJson", "cpus: 1\n", "F: parse error at line 1, column 1: "},
                    BadConfig{"CommaAtEnd", "{\"cpus\": 1,\n}", "F: parse error at line 2, column 1: "},
                    BadConfig{"MoreBehind", R"({"cpus": 1} x)", "F: parse error at line 1, column 13: "},
                    BadConfig{"TwoObjects", "{}{}", "F: parse error at line 1, column 3: "},
                    BadConfig{"Comment", "// c\n{}", "F: parse error at line 1, column 1: "},
                    BadConfig{"NotUtf8", "{\"kernel\": \"\xff\"}", "F: parse error at line 1, column 13: "},
                    BadConfig{"Binary", std::string(1000, '\0'), "F: parse error at line 1, column 1: "},
                    BadConfig{"LongToken", "{\"kernel\": \"" + std::string(100'000, 'x') + "\n\"}",
                              "F: parse error at line 2, column 0: "},
                    BadConfig{"LongNumber", "{\"cpus\": 1" + std::string(100'000, '0') + "}", "F: cpus: has to be"}),
    [](const auto& row) { return row.param.name; });

TEST(ConfigFileTest, AFileBeyondTheLimitIsNotRead) {
  const fakes::MemoryFile file("");
  ASSERT_EQ(::ftruncate(file.fd(), (1 << 20) + 1), 0);
  EXPECT_EQ(read_config_file(file.path()).error().message(),
            "--config " + file.path() + ": has 1048577 bytes; at most 1048576 are possible");
}

TEST(ConfigFileTest, AFileAtTheLimitIsRead) {
  const fakes::MemoryFile file("{}" + std::string((1 << 20) - 2, ' '));
  EXPECT_TRUE(read_config_file(file.path()));
}

}  // namespace
}  // namespace tandem::cli
