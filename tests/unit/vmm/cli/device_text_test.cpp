// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/device_text.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tandem::cli {
namespace {

using Kind = ConsoleSpec::Kind;
using Mac = std::array<uint8_t, 6>;

struct GoodDisk {
  const char* name;
  const char* text;
  DiskSpec disk;
};

class ParseDiskTest : public testing::TestWithParam<GoodDisk> {};

TEST_P(ParseDiskTest, TextGivesDisk) { EXPECT_EQ(parse_disk(GetParam().text).value(), GetParam().disk); }

INSTANTIATE_TEST_SUITE_P(
    Disks, ParseDiskTest,
    testing::Values(
        GoodDisk{"Path", "/a/b.img", {.path = "/a/b.img", .id = "", .read_only = false}},
        GoodDisk{"Everything", "b.img,id=root-1_A,ro", {.path = "b.img", .id = "root-1_A", .read_only = true}},
        GoodDisk{"OtherOrder", "b.img,ro,id=x", {.path = "b.img", .id = "x", .read_only = true}},
        GoodDisk{"CommaInPath", "a,,b,,,ro", {.path = "a,b,", .id = "", .read_only = true}},
        GoodDisk{"EqualsInPath", "id=x", {.path = "id=x", .id = "", .read_only = false}},
        GoodDisk{
            "LongestId", "b,id=abcdefghijklmnopqrst", {.path = "b", .id = "abcdefghijklmnopqrst", .read_only = false}}),
    [](const auto& row) { return row.param.name; });

struct GoodNet {
  const char* name;
  const char* text;
  NetSpec net;
};

class ParseNetTest : public testing::TestWithParam<GoodNet> {};

TEST_P(ParseNetTest, TextGivesNet) { EXPECT_EQ(parse_net(GetParam().text).value(), GetParam().net); }

INSTANTIATE_TEST_SUITE_P(
    Nets, ParseNetTest,
    testing::Values(
        GoodNet{"Tap", "tap=tap0", {.tap = "tap0", .id = "", .mac = {}}},
        GoodNet{"Everything",
                "tap=tap0,id=lan,mac=52:54:00:AB:cd:ef",
                {.tap = "tap0", .id = "lan", .mac = Mac{0x52, 0x54, 0x00, 0xab, 0xcd, 0xef}}},
        GoodNet{"OtherOrder", "mac=02:00:00:00:00:01,tap=t", {.tap = "t", .id = "", .mac = Mac{2, 0, 0, 0, 0, 1}}},
        GoodNet{"LongestName", "tap=abcdefghijklmno", {.tap = "abcdefghijklmno", .id = "", .mac = {}}}),
    [](const auto& row) { return row.param.name; });

struct GoodVsock {
  const char* name;
  std::string text;
  VsockSpec vsock;
};

class ParseVsockTest : public testing::TestWithParam<GoodVsock> {};

TEST_P(ParseVsockTest, TextGivesVsock) { EXPECT_EQ(parse_vsock(GetParam().text).value(), GetParam().vsock); }

INSTANTIATE_TEST_SUITE_P(
    Vsocks, ParseVsockTest,
    testing::Values(GoodVsock{"Path", "/run/v", {.path = "/run/v", .guest_cid = 3}},
                    GoodVsock{"Cid", "v,cid=42", {.path = "v", .guest_cid = 42}},
                    GoodVsock{"LastCid", "v,cid=4294967294", {.path = "v", .guest_cid = 4294967294}},
                    GoodVsock{"CommaInPath", "a,,cid=9", {.path = "a,cid=9", .guest_cid = 3}},
                    GoodVsock{"LongestPath", std::string(107, 'v'), {.path = std::string(107, 'v'), .guest_cid = 3}}),
    [](const auto& row) { return row.param.name; });

struct GoodConsole {
  const char* name;
  std::string text;
  ConsoleSpec console;
};

class ParseConsoleTest : public testing::TestWithParam<GoodConsole> {};

TEST_P(ParseConsoleTest, TextGivesConsole) { EXPECT_EQ(parse_console(GetParam().text).value(), GetParam().console); }

INSTANTIATE_TEST_SUITE_P(Consoles, ParseConsoleTest,
                         testing::Values(GoodConsole{"Stdio", "stdio", {.kind = Kind::kStdio, .path = ""}},
                                         GoodConsole{"Pty", "pty", {.kind = Kind::kPty, .path = ""}},
                                         GoodConsole{"None", "none", {.kind = Kind::kNone, .path = ""}},
                                         GoodConsole{
                                             "File", "file=/tmp/a,b=c", {.kind = Kind::kFile, .path = "/tmp/a,b=c"}},
                                         GoodConsole{"LongestSocket",
                                                     "socket=" + std::string(107, 's'),
                                                     {.kind = Kind::kSocket, .path = std::string(107, 's')}}),
                         [](const auto& row) { return row.param.name; });

struct BadText {
  const char* name;
  std::string text;
  const char* message;
};

class ParseDiskErrorTest : public testing::TestWithParam<BadText> {};

TEST_P(ParseDiskErrorTest, TextIsRefused) {
  EXPECT_EQ(parse_disk(GetParam().text).error().message(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Disks, ParseDiskErrorTest,
    testing::Values(BadText{"Empty", "", "'' has no PATH"}, BadText{"OnlyOptions", ",ro", "',ro' has no PATH"},
                    BadText{"UnknownPart", "a,rw",
                            "'rw' is no part of PATH[,id=ID][,ro]; a comma in PATH is written twice"},
                    BadText{"CommaAtEnd", "a,", "'' is no part of PATH[,id=ID][,ro]; a comma in PATH is written twice"},
                    BadText{"EmptyId", "a,id=", "id '' is not 1 to 20 letters, digits, '-' and '_'"},
                    BadText{"IdWithSlash", "a,id=../x", "id '../x' is not 1 to 20 letters, digits, '-' and '_'"},
                    BadText{"IdWithNewline", "a,id=x\n", "id 'x\n' is not 1 to 20 letters, digits, '-' and '_'"},
                    BadText{"IdOf21", "a,id=abcdefghijklmnopqrstu",
                            "id 'abcdefghijklmnopqrstu' is not 1 to 20 letters, digits, '-' and '_'"},
                    BadText{"TwoIds", "a,id=x,id=y", "more than one id"}),
    [](const auto& row) { return row.param.name; });

class ParseNetErrorTest : public testing::TestWithParam<BadText> {};

TEST_P(ParseNetErrorTest, TextIsRefused) {
  EXPECT_EQ(parse_net(GetParam().text).error().message(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Nets, ParseNetErrorTest,
    testing::Values(
        BadText{"Empty", "", "'' is no part of tap=IF[,id=ID][,mac=M], or is there twice"},
        BadText{"NoTap", "id=x", "'id=x' has no tap=IF"},
        BadText{"OnlyName", "tap0", "'tap0' is no part of tap=IF[,id=ID][,mac=M], or is there twice"},
        BadText{"TwoTaps", "tap=a,tap=b", "'tap=b' is no part of tap=IF[,id=ID][,mac=M], or is there twice"},
        BadText{"EmptyTap", "tap=", "tap '' is not the name of an interface (1 to 15 bytes)"},
        BadText{"TapOf16", "tap=abcdefghijklmnop",
                "tap 'abcdefghijklmnop' is not the name of an interface (1 to 15 bytes)"},
        BadText{"TapWithSlash", "tap=a/b", "tap 'a/b' is not the name of an interface (1 to 15 bytes)"},
        BadText{"TapTemplate", "tap=tap%d", "tap 'tap%d' is not the name of an interface (1 to 15 bytes)"},
        BadText{"TapIsDots", "tap=..", "tap '..' is not the name of an interface (1 to 15 bytes)"},
        BadText{"MacEmpty", "tap=t,mac=", "mac '' is not of the form 52:54:00:12:34:56"},
        BadText{"MacShort", "tap=t,mac=52:54:00:12:34", "mac '52:54:00:12:34' is not of the form 52:54:00:12:34:56"},
        BadText{"MacDashes", "tap=t,mac=52-54-00-12-34-56",
                "mac '52-54-00-12-34-56' is not of the form 52:54:00:12:34:56"},
        BadText{"MacNotHex", "tap=t,mac=52:54:00:12:34:5g",
                "mac '52:54:00:12:34:5g' is not of the form 52:54:00:12:34:56"},
        BadText{"MacSign", "tap=t,mac=52:54:00:12:34:-6",
                "mac '52:54:00:12:34:-6' is not of the form 52:54:00:12:34:56"},
        BadText{"MacMulticast", "tap=t,mac=01:00:5e:00:00:01",
                "mac '01:00:5e:00:00:01' is not the address of one station"},
        BadText{"MacBroadcast", "tap=t,mac=ff:ff:ff:ff:ff:ff",
                "mac 'ff:ff:ff:ff:ff:ff' is not the address of one station"},
        BadText{"MacZero", "tap=t,mac=00:00:00:00:00:00", "mac '00:00:00:00:00:00' is not the address of one station"}),
    [](const auto& row) { return row.param.name; });

class ParseVsockErrorTest : public testing::TestWithParam<BadText> {};

TEST_P(ParseVsockErrorTest, TextIsRefused) {
  EXPECT_EQ(parse_vsock(GetParam().text).error().message(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Vsocks, ParseVsockErrorTest,
    testing::Values(
        BadText{"Empty", "", "'' has no PATH"}, BadText{"OnlyCid", ",cid=5", "',cid=5' has no PATH"},
        BadText{"Path108", std::string(108, 'v'), "the path of a socket has 108 bytes; at most 107 are possible"},
        BadText{"UnknownPart", "v,id=5",
                "'id=5' is no part of PATH[,cid=N], or is there twice; a comma in PATH is written twice"},
        BadText{"TwoCids", "v,cid=5,cid=6",
                "'cid=6' is no part of PATH[,cid=N], or is there twice; a comma in PATH is written twice"},
        BadText{"CidEmpty", "v,cid=", "cid '' is not a number between 3 and 4294967294"},
        BadText{"CidOfTheHost", "v,cid=2", "cid '2' is not a number between 3 and 4294967294"},
        BadText{"CidOfAny", "v,cid=4294967295", "cid '4294967295' is not a number between 3 and 4294967294"},
        BadText{"CidBeyond32Bits", "v,cid=4294967299", "cid '4294967299' is not a number between 3 and 4294967294"},
        BadText{"CidHex", "v,cid=0x5", "cid '0x5' is not a number between 3 and 4294967294"}),
    [](const auto& row) { return row.param.name; });

class ParseConsoleErrorTest : public testing::TestWithParam<BadText> {};

TEST_P(ParseConsoleErrorTest, TextIsRefused) {
  EXPECT_EQ(parse_console(GetParam().text).error().message(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Consoles, ParseConsoleErrorTest,
    testing::Values(BadText{"Empty", "", "'' is none of stdio, pty, file=PATH, socket=PATH and none"},
                    BadText{"Unknown", "tty", "'tty' is none of stdio, pty, file=PATH, socket=PATH and none"},
                    BadText{"FileWithoutPath", "file=", "'file=' has no PATH"},
                    BadText{"SocketWithoutPath", "socket=", "'socket=' has no PATH"},
                    BadText{"SocketOf108", "socket=" + std::string(108, 's'),
                            "the path of a socket has 108 bytes; at most 107 are possible"}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace tandem::cli
