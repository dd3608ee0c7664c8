// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/command_line.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/memory_file.hpp"
#include "vmm/cli/run_options.hpp"

namespace tandem::cli {
namespace {

using Words = std::vector<std::string>;

Result<Request> parse(const Words& words) {
  std::vector<const char*> arguments{"tandem"};
  for (const std::string& word : words) {
    arguments.push_back(word.c_str());
  }
  return parse_command_line(arguments);
}

/// The request that `tandem run --kernel K` with `words` behind makes.
RunRequest run_with(const Words& words) {
  Words all{"run", "--kernel", "K"};
  all.insert(all.end(), words.begin(), words.end());
  auto request = parse(all);
  if (!request) {
    ADD_FAILURE() << request.error().message();
    return {};
  }
  return std::get<RunRequest>(std::move(*request));
}

std::string error_of(const Words& words) {
  const auto request = parse(words);
  return request ? "no error" : request.error().message();
}

TEST(CommandLineTest, WithoutOptionsTheDefaultsHold) {
  const RunRequest request = run_with({});
  MachineSpec expected;
  expected.name = "vm-" + std::to_string(::getpid());
  expected.boot.kernel = "K";
  EXPECT_EQ(request, RunRequest{.spec = expected});
  EXPECT_EQ(request.spec.vcpu_count, 1U);
  EXPECT_EQ(request.spec.memory_bytes, 256U << 20);
  EXPECT_EQ(request.spec.console.kind, ConsoleSpec::Kind::kStdio);
  EXPECT_TRUE(request.spec.rng);
}

/// A value of an option, and what it changes in the request.
struct Sample {
  const char* option;
  std::string text;  ///< Of a command line.
  std::string json;  ///< Of a configuration file.
  void (*change)(RunRequest& request);
};

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all{
      {"kernel", "/k", R"("/k")", [](RunRequest& r) { r.spec.boot.kernel = "/k"; }},
      {"initrd", "/i", R"("/i")", [](RunRequest& r) { r.spec.boot.initrd = "/i"; }},
      {"cmdline", "a=b -- c", R"("a=b -- c")", [](RunRequest& r) { r.spec.boot.cmdline = "a=b -- c"; }},
      {"cpus", "7", "7", [](RunRequest& r) { r.spec.vcpu_count = 7; }},
      {"memory", "64M", "67108864", [](RunRequest& r) { r.spec.memory_bytes = 64U << 20; }},
      {"name", "a.b-c_1", R"("a.b-c_1")", [](RunRequest& r) { r.spec.name = "a.b-c_1"; }},
      {"gic", "v2", R"("v2")", [](RunRequest& r) { r.spec.gic = GicChoice::kV2; }},
      {"no-its", "", "true", [](RunRequest& r) { r.spec.its = false; }},
      {"pv-vcpu-state", "require", R"("require")",
       [](RunRequest& r) { r.spec.pv_vcpu_state = VcpuStateChoice::kRequire; }},
      {"no-pv-time", "", "true", [](RunRequest& r) { r.spec.pv_time = false; }},
      {"pmu", "", "true", [](RunRequest& r) { r.spec.cpu.pmu = true; }},
      {"no-sve", "", "true", [](RunRequest& r) { r.spec.cpu.sve = false; }},
      {"no-pauth", "", "true", [](RunRequest& r) { r.spec.cpu.pauth = false; }},
      {"disk", "/d,id=x,ro", R"(["/d,id=x,ro"])",
       [](RunRequest& r) { r.spec.disks = {{.path = "/d", .id = "x", .read_only = true}}; }},
      {"net", "tap=t", R"(["tap=t"])", [](RunRequest& r) { r.spec.nets = {{.tap = "t", .id = "net0", .mac = {}}}; }},
      {"vsock", "/v,cid=9", R"("/v,cid=9")",
       [](RunRequest& r) { r.spec.vsock = VsockSpec{.path = "/v", .guest_cid = 9}; }},
      {"console", "file=/c", R"("file=/c")",
       [](RunRequest& r) { r.spec.console = {.kind = ConsoleSpec::Kind::kFile, .path = "/c"}; }},
      {"hvc", "pty", R"("pty")", [](RunRequest& r) { r.spec.hvc = {.kind = ConsoleSpec::Kind::kPty, .path = ""}; }},
      {"balloon", "", "true", [](RunRequest& r) { r.spec.balloon = true; }},
      {"no-rng", "", "true", [](RunRequest& r) { r.spec.rng = false; }},
      {"dump-dtb", "/f", R"("/f")", [](RunRequest& r) { r.dump_dtb_path = "/f"; }},
      {"paused", "", "true", [](RunRequest& r) { r.paused = true; }},
      {"dry-run", "", "true", [](RunRequest& r) { r.dry_run = true; }},
      {"log-level", "debug", R"("debug")", [](RunRequest& r) { r.log_level = log::Level::kDebug; }},
  };
  return all;
}

class EveryOptionTest : public testing::TestWithParam<Sample> {
 protected:
  static RunRequest expected() {
    RunRequest request = run_with({});
    GetParam().change(request);
    return request;
  }
  static std::string flag() { return std::string("--") + GetParam().option; }
  static bool has_value() { return run_options()[find_run_option(GetParam().option)].kind != RunOption::Kind::kFlag; }
};

TEST_P(EveryOptionTest, TheCommandLineSetsIt) {
  EXPECT_EQ(run_with(has_value() ? Words{flag(), GetParam().text} : Words{flag()}), expected());
}

TEST_P(EveryOptionTest, TheConfigurationFileSetsItAlike) {
  const fakes::MemoryFile config(fmt::format(R"({{"{}": {}}})", GetParam().option, GetParam().json));
  // The kernel of run_with() is on the command line, where it would win.
  const bool is_kernel = std::string(GetParam().option) == "kernel";
  const Words words{"run", "--config", config.path()};
  EXPECT_EQ(is_kernel ? std::get<RunRequest>(parse(words).value()) : run_with({"--config", config.path()}), expected());
}

INSTANTIATE_TEST_SUITE_P(Options, EveryOptionTest, testing::ValuesIn(samples()), [](const auto& row) {
  std::string name = row.param.option;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(EveryOptionCoverageTest, ThereIsASampleOfEachOption) {
  std::vector<std::string> options;
  std::ranges::transform(run_options(), std::back_inserter(options), &RunOption::name);
  std::vector<std::string> sampled;
  std::ranges::transform(samples(), std::back_inserter(sampled), &Sample::option);
  EXPECT_EQ(options, sampled);
}

TEST(CommandLineTest, AListKeepsItsOrderAndNamesWhatHasNoName) {
  const RunRequest request = run_with({"--disk", "a", "--disk=b,id=b", "--disk", "c"});
  ASSERT_EQ(request.spec.disks.size(), 3U);
  EXPECT_EQ(request.spec.disks[0].id, "disk0");
  EXPECT_EQ(request.spec.disks[1].id, "b");
  EXPECT_EQ(request.spec.disks[2].id, "disk2");
}

TEST(CommandLineTest, OfOneValueTheLastCounts) {
  EXPECT_EQ(run_with({"--cpus", "2", "--cpus", "3"}).spec.vcpu_count, 3U);
}

TEST(CommandLineTest, AFlagMayBeGivenTwice) { EXPECT_FALSE(run_with({"--no-rng", "--no-rng"}).spec.rng); }

struct Verbatim {
  const char* name;
  Words words;
  std::string cmdline;
};

class CmdlineTest : public testing::TestWithParam<Verbatim> {};

TEST_P(CmdlineTest, TextIsPassedOnAsItIs) {
  EXPECT_EQ(run_with(GetParam().words).spec.boot.cmdline, GetParam().cmdline);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, CmdlineTest,
    testing::Values(Verbatim{"TwoDashes", {"--cmdline", "-- init --flag"}, "-- init --flag"},
                    Verbatim{"LooksLikeAnOption", {"--cmdline", "--cpus"}, "--cpus"},
                    Verbatim{"OnlyTwoDashes", {"--cmdline", "--"}, "--"},
                    Verbatim{"AfterEquals", {"--cmdline=a=b c=d"}, "a=b c=d"}, Verbatim{"Empty", {"--cmdline", ""}, ""},
                    Verbatim{"EmptyAfterEquals", {"--cmdline=", "--pmu"}, ""},
                    Verbatim{"Brackets", {"--cmdline", "[a,b]"}, "[a,b]"},
                    Verbatim{"Braces", {"--cmdline", "{}"}, "{}"},
                    Verbatim{"Quotes", {"--cmdline", R"(dyndbg="file a.c +p")"}, R"(dyndbg="file a.c +p")"},
                    Verbatim{"Newline", {"--cmdline", "a\nb"}, "a\nb"},
                    Verbatim{"Longest", {"--cmdline", std::string(2047, 'x')}, std::string(2047, 'x')}),
    [](const auto& row) { return row.param.name; });

TEST(CommandLineTest, APathInBracketsIsAPath) { EXPECT_EQ(run_with({"--disk", "[a]"}).spec.disks.at(0).path, "[a]"); }

struct GoodText {
  const char* name;
  Words words;
  bool (*holds)(const RunRequest& request);
};

class LimitTest : public testing::TestWithParam<GoodText> {};

TEST_P(LimitTest, ValueAtTheLimitIsTaken) { EXPECT_TRUE(GetParam().holds(run_with(GetParam().words))); }

Words disks(size_t count) {
  Words words;
  for (size_t index = 0; index < count; ++index) {
    words.insert(words.end(), {"--disk", "d"});
  }
  return words;
}

INSTANTIATE_TEST_SUITE_P(
    Limits, LimitTest,
    testing::Values(
        GoodText{"Cpus256", {"--cpus", "256"}, [](const RunRequest& r) { return r.spec.vcpu_count == 256; }},
        GoodText{"Cpus512", {"--cpus", "512"}, [](const RunRequest& r) { return r.spec.vcpu_count == 512; }},
        GoodText{
            "Memory32M", {"--memory", "32M"}, [](const RunRequest& r) { return r.spec.memory_bytes == 32U << 20; }},
        GoodText{"MemoryLowerCase",
                 {"--memory", "512m"},
                 [](const RunRequest& r) { return r.spec.memory_bytes == 512U << 20; }},
        GoodText{"MemoryMost",
                 {"--memory", "4096G"},
                 [](const RunRequest& r) { return r.spec.memory_bytes == uint64_t{4} << 40; }},
        GoodText{
            "GicV2With8", {"--gic", "v2", "--cpus", "8"}, [](const RunRequest& r) { return r.spec.vcpu_count == 8; }},
        GoodText{"GicV2WithoutIts", {"--gic", "v2", "--no-its"}, [](const RunRequest& r) { return !r.spec.its; }},
        GoodText{
            "Name64", {"--name", std::string(64, 'n')}, [](const RunRequest& r) { return r.spec.name.size() == 64; }},
        GoodText{"HvcStdio",
                 {"--hvc", "stdio", "--console", "none"},
                 [](const RunRequest& r) { return r.spec.hvc->kind == ConsoleSpec::Kind::kStdio; }},
        GoodText{"HvcNone", {"--hvc", "none"}, [](const RunRequest& r) { return !r.spec.hvc; }},
        GoodText{"TwoPtys",
                 {"--console", "pty", "--hvc", "pty"},
                 [](const RunRequest& r) { return r.spec.hvc.has_value(); }},
        GoodText{"VsockCommaInPath",
                 {"--vsock", "a,,b"},
                 [](const RunRequest& r) { return r.spec.vsock->path == "a,b" && r.spec.vsock->guest_cid == 3; }},
        GoodText{"Devices128", disks(127), [](const RunRequest& r) { return r.spec.disks.size() == 127; }}),
    [](const auto& row) { return row.param.name; });

struct Bad {
  const char* name;
  Words words;
  std::string message;
};

class UsageErrorTest : public testing::TestWithParam<Bad> {};

// None of the files that these command lines name exists: what is wrong is found before one is opened.
TEST_P(UsageErrorTest, OneLineSaysWhatIsWrong) { EXPECT_EQ(error_of(GetParam().words), GetParam().message); }

Words run(const Words& words) {
  Words all{"run", "--kernel", "/nonexistent"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    Commands, UsageErrorTest,
    testing::Values(
        Bad{"Nothing", {}, "a command is needed, run for instance (see tandem --help)"},
        Bad{"UnknownCommand", {"boot"}, "unknown command 'boot' (see tandem --help)"},
        Bad{"CommandOfLater", {"stats"}, "unknown command 'stats' (see tandem --help)"},
        Bad{"UnknownOptionOfAll", {"--quiet", "run"}, "run: unknown option '--quiet' (see tandem run --help)"},
        Bad{"OnlyUnknownOption", {"--quiet"}, "unknown option '--quiet' (see tandem --help)"},
        Bad{"UnknownOption", run({"--turbo", "9"}), "run: unknown option '--turbo' (see tandem run --help)"},
        Bad{"OptionOfLater", run({"--hugepages"}), "run: unknown option '--hugepages' (see tandem run --help)"},
        Bad{"SingleDash", run({"-cpus", "1"}), "run: unknown option '-cpus' (see tandem run --help)"},
        Bad{"Abbreviation", run({"--mem", "1G"}), "run: unknown option '--mem' (see tandem run --help)"},
        Bad{"TheCommandTwice", run({"run"}), "run: nothing is expected at 'run' (see tandem run --help)"},
        Bad{"Operand", run({"Image"}), "run: nothing is expected at 'Image' (see tandem run --help)"},
        Bad{"OperandBehindDashes", run({"--", "--cpus"}), "run: unknown option '--cpus' (see tandem run --help)"},
        Bad{"NoKernel", {"run"}, "run: --kernel is needed"},
        Bad{"FlagWithValue", run({"--no-rng=false"}), "run: --no-rng: takes no value"},
        Bad{"MissingValue", run({"--cpus"}), "run: --cpus: a value is needed"},
        Bad{"MissingKernel", {"run", "--kernel"}, "run: --kernel: a value is needed"}),
    [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Numbers, UsageErrorTest,
    testing::Values(Bad{"CpusZero", run({"--cpus", "0"}), "run: --cpus: '0' is not a number between 1 and 512"},
                    Bad{"CpusNegative", run({"--cpus", "-1"}), "run: --cpus: '-1' is not a number between 1 and 512"},
                    Bad{"CpusWord", run({"--cpus", "two"}), "run: --cpus: 'two' is not a number between 1 and 512"},
                    Bad{"CpusEmpty", run({"--cpus", ""}), "run: --cpus: '' is not a number between 1 and 512"},
                    Bad{"Cpus513", run({"--cpus", "513"}), "run: --cpus: '513' is not a number between 1 and 512"},
                    Bad{"Cpus99999", run({"--cpus", "99999"}),
                        "run: --cpus: '99999' is not a number between 1 and 512"},
                    Bad{"CpusBeyond32Bits", run({"--cpus", "4294967297"}),
                        "run: --cpus: '4294967297' is not a number between 1 and 512"},
                    Bad{"CpusFraction", run({"--cpus", "1.5"}), "run: --cpus: '1.5' is not a number between 1 and 512"},
                    Bad{"MemoryZero", run({"--memory", "0"}),
                        "run: --memory: '0' is too little: 0 bytes, and at least 32 MiB are needed"},
                    Bad{"MemoryWithoutSuffix", run({"--memory", "512"}),
                        "run: --memory: '512' is too little: 512 bytes, and at least 32 MiB are needed"},
                    Bad{"MemoryBelowLeast", run({"--memory", "30M"}),
                        "run: --memory: '30M' is too little: 30 MiB, and at least 32 MiB are needed"},
                    Bad{"MemoryFraction", run({"--memory", "1.5G"}),
                        "run: --memory: '1.5G' is not a size: digits, then K, M, G or nothing"},
                    Bad{"MemoryHex", run({"--memory", "0x20M"}),
                        "run: --memory: '0x20M' is not a size: digits, then K, M, G or nothing"},
                    Bad{"MemoryNegative", run({"--memory", "-1"}),
                        "run: --memory: '-1' is not a size: digits, then K, M, G or nothing"},
                    Bad{"MemoryOverflow", run({"--memory", "18446744073709551615M"}),
                        "run: --memory: '18446744073709551615M' is more than 2^64 - 1 bytes"},
                    Bad{"MemoryTwoTo64", run({"--memory", "17592186044416M"}),
                        "run: --memory: '17592186044416M' is more than 2^64 - 1 bytes"},
                    Bad{"MemoryTooMuch", run({"--memory", "4097G"}),
                        "run: --memory: '4097G' is too much: at most 4096 GiB are possible"},
                    Bad{"MemoryOdd", run({"--memory", "33M"}), "run: --memory: '33M' is no multiple of 2 MiB"}),
    [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Texts, UsageErrorTest,
    testing::Values(
        Bad{"Cmdline2048", run({"--cmdline", std::string(2048, 'x')}),
            "run: --cmdline: has 2048 bytes; Linux on arm64 takes at most 2047"},
        Bad{"Cmdline4096", run({"--cmdline", std::string(4096, 'x')}),
            "run: --cmdline: has 4096 bytes; Linux on arm64 takes at most 2047"},
        Bad{"Cmdline65536", run({"--cmdline", std::string(65536, 'x')}),
            "run: --cmdline: has 65536 bytes; Linux on arm64 takes at most 2047"},
        Bad{"KernelEmpty", {"run", "--kernel", ""}, "run: --kernel: the path is empty"},
        Bad{"InitrdEmpty", run({"--initrd="}), "run: --initrd: the path is empty"},
        Bad{"NameEmpty", run({"--name", ""}),
            "run: --name: '' is not 1 to 64 letters, digits, '.', '-' and '_', of which the first is a letter or "
            "digit"},
        Bad{"NameWithSlash", run({"--name", "a/b"}),
            "run: --name: 'a/b' is not 1 to 64 letters, digits, '.', '-' and '_', of which the first is a letter or "
            "digit"},
        Bad{"NameIsDots", run({"--name", ".."}),
            "run: --name: '..' is not 1 to 64 letters, digits, '.', '-' and '_', of which the first is a letter or "
            "digit"},
        Bad{"Name65", run({"--name", std::string(65, 'n')}),
            "run: --name: '" + std::string(60, 'n') +
                "…' is not 1 to 64 letters, digits, '.', '-' and '_', of which the first is a letter or digit"},
        Bad{"GicUnknown", run({"--gic", "3"}), "run: --gic: '3' is none of auto, v3 and v2"},
        Bad{"PvVcpuStateUnknown", run({"--pv-vcpu-state", "on"}),
            "run: --pv-vcpu-state: 'on' is none of auto, kernel, bpf, off and require"},
        Bad{"LogLevelUnknown", run({"--log-level", "loud"}),
            "run: --log-level: 'loud' is none of debug, info, warn, error and off"},
        Bad{"DiskBad", run({"--disk", "a,rw"}),
            "run: --disk: 'rw' is no part of PATH[,id=ID][,ro]; a comma in PATH is written twice"},
        Bad{"NetBad", run({"--net", "id=x"}), "run: --net: 'id=x' has no tap=IF"},
        Bad{"VsockOf108", run({"--vsock", std::string(108, 's')}),
            "run: --vsock: the path of a socket has 108 bytes; at most 107 are possible"},
        Bad{"VsockBadCid", run({"--vsock", "v,cid=2"}),
            "run: --vsock: cid '2' is not a number between 3 and 4294967294"},
        Bad{"ConsoleSocketOf108", run({"--console", "socket=" + std::string(108, 's')}),
            "run: --console: the path of a socket has 108 bytes; at most 107 are possible"},
        Bad{"HvcSocketOf109", run({"--hvc", "socket=" + std::string(109, 's')}),
            "run: --hvc: the path of a socket has 109 bytes; at most 107 are possible"}),
    [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Combinations, UsageErrorTest,
    testing::Values(
        Bad{"SameDiskId", run({"--disk", "a,id=x", "--disk", "b,id=x"}), "run: two devices have the id 'x'"},
        Bad{"DiskIdOfADefault", run({"--disk", "a", "--disk", "b,id=disk0"}), "run: two devices have the id 'disk0'"},
        Bad{"DiskIdOfANet", run({"--disk", "a,id=x", "--net", "tap=t,id=x"}), "run: two devices have the id 'x'"},
        Bad{"SameTap", run({"--net", "tap=t", "--net", "tap=t"}), "run: --net: two devices use the tap 't'"},
        Bad{"GicV2With9", run({"--gic", "v2", "--cpus", "9"}), "run: --cpus: 9, but a GICv2 has at most 8"},
        Bad{"BothStdio", run({"--console", "stdio", "--hvc", "stdio"}),
            "run: --hvc: the terminal belongs to --console, unless that is given as none, say"},
        Bad{"StdioBesideTheDefault", run({"--hvc", "stdio"}),
            "run: --hvc: the terminal belongs to --console, unless that is given as none, say"},
        Bad{"SameFile", run({"--console", "file=f", "--hvc", "file=f"}), "run: --hvc: 'f' belongs to --console"},
        Bad{"VsockAtTheConsole", run({"--console", "socket=s", "--vsock", "s"}),
            "run: --vsock: 's' belongs to a console"},
        Bad{"VsockAtTheHvc", run({"--hvc", "socket=s", "--vsock", "s,cid=4"}),
            "run: --vsock: 's' belongs to a console"},
        Bad{"Devices129", run(disks(128)), "run: 129 virtio devices; a machine has at most 128"},
        Bad{"BadValueBesideAMissingConfig", run({"--config", "/nonexistent", "--cpus", "0"}),
            "run: --cpus: '0' is not a number between 1 and 512"},
        Bad{"MissingConfig", run({"--config", "/nonexistent"}),
            "run: --config /nonexistent: No such file or directory"},
        Bad{"ConfigIsADirectory", run({"--config", "/proc"}),
            "run: --config /proc: is a directory; a regular file is needed"}),
    [](const auto& row) { return row.param.name; });

TEST(CommandLineTest, WhatTheCommandLineGivesReplacesWhatTheFileGives) {
  const fakes::MemoryFile config(R"({"cpus": 4, "memory": "1G", "disk": ["a", "b"], "no-rng": true})");
  const RunRequest request = run_with({"--config", config.path(), "--cpus", "2", "--disk", "c"});
  EXPECT_EQ(request.spec.vcpu_count, 2U);
  EXPECT_EQ(request.spec.memory_bytes, 1U << 30);
  ASSERT_EQ(request.spec.disks.size(), 1U);
  EXPECT_EQ(request.spec.disks[0].path, "c");
  EXPECT_FALSE(request.spec.rng);
}

TEST(CommandLineTest, ABadValueOfTheFileIsNamedWithFileAndKey) {
  const fakes::MemoryFile config(R"({"cpus": 0})");
  EXPECT_EQ(error_of(run({"--config", config.path()})),
            "run: --config " + config.path() + ": cpus: '0' is not a number between 1 and 512");
}

std::string text_of(const Words& words) {
  const auto request = parse(words);
  return request && std::holds_alternative<TextRequest>(*request) ? std::get<TextRequest>(*request).text : "no text";
}

TEST(CommandLineTest, HelpNamesEveryOptionWithItsValue) {
  const std::string help = text_of({"run", "--help"});
  EXPECT_TRUE(help.find("Usage: tandem run [OPTIONS]") != std::string::npos) << help;
  for (const RunOption& option : run_options()) {
    const std::string shown =
        fmt::format("  --{}{}{} ", option.name, *option.value_name == '\0' ? "" : " ", option.value_name);
    EXPECT_NE(help.find(shown), std::string::npos) << option.name << "\n" << help;
  }
  EXPECT_NE(help.find("--config FILE"), std::string::npos);
}

TEST(CommandLineTest, HelpWinsOverWhatIsMissing) {
  EXPECT_EQ(text_of({"run", "--help"}), text_of({"run", "-h", "--pmu"}));
}

TEST(CommandLineTest, HelpOfTheProgramNamesItsCommands) {
  const std::string help = text_of({"--help"});
  for (const char* const command : {"run", "list", "status", "pause", "resume", "reset", "stop", "balloon", "console",
                                    "save", "restore", "agent"}) {
    EXPECT_NE(help.find(fmt::format("\n  {} ", command)), std::string::npos) << command << " in\n" << help;
  }
}

TEST(CommandLineTest, AnErrorOfACommandBeginsWithItsName) {
  EXPECT_EQ(error_of({"pause"}), "pause: the name of a VM is needed (see tandem list)");
}

TEST(CommandLineTest, ACommandForAVmIsARequestOfItsOwn) {
  const auto request = parse({"stop", "vm1", "--force"});
  ASSERT_TRUE(request);
  EXPECT_EQ(std::get<VmRequest>(*request), (VmRequest{.command = "stop", .name = "vm1", .force = true}));
}

TEST(CommandLineTest, VersionIsShown) { EXPECT_TRUE(text_of({"--version"}).starts_with("tandem ")); }

TEST(CommandLineTest, AnEmptyArgumentVectorIsAUsageError) {
  const auto request = parse_command_line({});
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().message(), "a command is needed, run for instance (see tandem --help)");
}

}  // namespace
}  // namespace tandem::cli
