// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/command_line.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "vmm/cli/agent_options.hpp"
#include "vmm/cli/config_file.hpp"
#include "vmm/cli/error_line.hpp"
#include "vmm/cli/receive_options.hpp"
#include "vmm/cli/restore_options.hpp"
#include "vmm/cli/run_options.hpp"
#include "vmm/cli/snapshot_options.hpp"
#include "vmm/cli/vm_options.hpp"

namespace tandem::cli {
namespace {

using Kind = RunOption::Kind;

/// A command that is parsed apart from the others, by the words behind its name.
struct Command {
  const char* name;
  const char* help;
  Result<Request> (*parse)(const std::string& name, std::vector<std::string> words);
};

/// What a parser found, as a request: help is only to be shown.
template <typename Found>
Request request_of(std::variant<std::string, Found> parsed) {
  if (auto* const help = std::get_if<std::string>(&parsed)) {
    return TextRequest{std::move(*help)};
  }
  return std::get<Found>(std::move(parsed));
}

Result<Request> parse_agent(const std::string& /*name*/, std::vector<std::string> words) {
  return request_of(TANDEM_TRY(parse_agent_command(std::move(words))));
}
Result<Request> parse_restore(const std::string& /*name*/, std::vector<std::string> words) {
  return request_of(TANDEM_TRY(parse_restore_command(std::move(words))));
}
Result<Request> parse_receive(const std::string& /*name*/, std::vector<std::string> words) {
  return request_of(TANDEM_TRY(parse_receive_command(std::move(words))));
}
Result<Request> parse_vm(const std::string& name, std::vector<std::string> words) {
  return request_of(TANDEM_TRY(parse_vm_command(name, std::move(words))));
}
Result<Request> parse_snapshot(const std::string& name, std::vector<std::string> words) {
  return request_of(TANDEM_TRY(parse_snapshot_command(name, std::move(words))));
}

/// In the order in which the help has them, behind `run`.
constexpr std::array kCommands{
    Command{"list", "list the virtual machines of this host", &parse_vm},
    Command{"status", "show what a virtual machine is and does", &parse_vm},
    Command{"pause", "let a virtual machine stand still", &parse_vm},
    Command{"resume", "let a paused virtual machine go on", &parse_vm},
    Command{"reset", "reset a virtual machine in place", &parse_vm},
    Command{"stop", "make a guest power itself off, or end its virtual machine", &parse_vm},
    Command{"balloon", "show or set how much memory a guest gives up", &parse_vm},
    Command{"save", "save a virtual machine into a directory", &parse_vm},
    Command{"restore", "let a saved virtual machine go on, in the foreground", &parse_restore},
    Command{"migrate", "move a running virtual machine to another host", &parse_vm},
    Command{"receive", "wait for a virtual machine that moves here, then run it in the foreground", &parse_receive},
    Command{"console", "attach this terminal to a guest's console", &parse_vm},
    Command{"verify", "check every byte of snapshots", &parse_snapshot},
    Command{"info", "show what a snapshot holds", &parse_snapshot},
    Command{"agent", "ask the agent in a guest: run programs, copy files, freeze file systems, …", &parse_agent},
};

constexpr const char* kConfigHelp =
    "take options from a JSON object: keys are long options without the dashes; flags are true or false, options that "
    "may be repeated are arrays, all else strings; what the command line gives replaces what FILE gives";

constexpr const char* kRunFooter = R"(
If an option that takes one value is given more than once, the last one counts.
Linux hands what it does not know of its command line to init: 32 words at most, it panics on more.
On a terminal, Ctrl-A x ends the virtual machine; Ctrl-A h shows all keys.

Exit status: 0 the guest powered off, 1 failure, 2 usage error, 3 the guest crashed.

Examples:
  tandem run --kernel Image --initrd initramfs.cpio.gz --cmdline "console=ttyAMA0" --cpus 4 --memory 1G
  tandem run --kernel vmlinuz --disk root.img --disk seed.iso,id=seed,ro --cmdline "console=ttyAMA0 root=/dev/vda"
  tandem run --kernel Image --net tap=tap0,mac=52:54:00:12:34:56 --console socket=/run/vm1.console
  tandem run --config vm.json --memory 2G
      with vm.json: {"kernel": "Image", "cpus": 4, "disk": ["root.img"], "no-rng": true})";

/// `tandem` and its subcommands, as CLI11 sees them. Values are taken as texts; their meaning is none of its business.
class Parser {
 public:
  Parser() : app_("Runs virtual machines on 64-bit Arm hosts with KVM.", "tandem") {
    app_.set_help_flag("-h,--help", "show this help");
    app_.set_version_flag("--version", "tandem " TANDEM_VERSION, "show the version");
    app_.allow_extras();
    app_.require_subcommand(0, 1);
    run_ = app_.add_subcommand("run", "run a virtual machine in the foreground");
    run_->set_help_flag("-h,--help", "show this help");
    run_->allow_extras();
    run_->footer(kRunFooter);
    run_->get_formatter()->column_width(kHelpColumn);
    for (const RunOption& option : run_options()) {
      options_.push_back(add(option));
    }
    for (const Command& command : kCommands) {
      app_.add_subcommand(command.name, command.help);
    }
    config_ = run_->add_option("--config", CLI::callback_t{}, kConfigHelp);
    config_->type_name("FILE")->group("Other")->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }

  /// @errors  Errc::kInvalidArgument. A text, if the command line only wants that shown.
  Result<std::optional<std::string>> parse(std::vector<std::string> tokens) {
    std::ranges::reverse(tokens);  // as CLI11 wants them
    try {
      app_.parse(std::move(tokens));
    } catch (const CLI::CallForHelp&) {
      return run_->parsed() ? run_->help("tandem") : app_.help();
    } catch (const CLI::CallForVersion& version) {
      return std::string(version.what()) + '\n';
    } catch (const CLI::ArgumentMismatch& error) {
      return mismatch(error.what());
    } catch (const CLI::ParseError& error) {
      return fail(Errc::kInvalidArgument, "{}{}", run_->parsed() ? "run: " : "", error.what());
    }
    TANDEM_TRY(check_all_understood());
    return std::nullopt;
  }

  [[nodiscard]] GivenOptions given() const {
    GivenOptions given;
    for (const CLI::Option* const option : options_) {
      given.push_back({option->get_name(), option->results()});
      const bool takes_last = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeLast;
      if (auto& texts = given.back().texts; takes_last && texts.size() > 1) {
        texts.erase(texts.begin(), texts.end() - 1);
      }
    }
    return given;
  }

  [[nodiscard]] std::optional<std::string> config_path() const {
    return config_->count() == 0 ? std::nullopt : std::optional(config_->results().back());
  }

 private:
  static constexpr size_t kHelpColumn = 34;

  CLI::Option* add(const RunOption& option) {
    const std::string name = fmt::format("--{}", option.name);
    if (option.kind == Kind::kFlag) {
      CLI::Option* const flag = run_->add_flag(name);
      return flag->disable_flag_override()
          ->description(option.help)
          ->group(option.group)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
    CLI::Option* const added = run_->add_option(name, CLI::callback_t{}, option.help);
    added->type_name(option.value_name)->group(option.group);
    return added->multi_option_policy(option.kind == Kind::kList ? CLI::MultiOptionPolicy::TakeAll
                                                                 : CLI::MultiOptionPolicy::TakeLast);
  }

  /// `text` starts with the name of an option that has a value too many or too few.
  static std::unexpected<Error> mismatch(std::string_view text) {
    const size_t start = std::min(text.find_first_not_of('-'), text.size());
    const std::string_view name = text.substr(start, text.find_first_of(": ", start) - start);
    const size_t index = find_run_option(name);
    const bool is_flag = index < run_options().size() && run_options()[index].kind == Kind::kFlag;
    return fail(Errc::kInvalidArgument, "run: --{}: {}", name, is_flag ? "takes no value" : "a value is needed");
  }

  Result<void> check_all_understood() {
    if (!run_->parsed()) {
      const std::vector<std::string> rest = app_.remaining();
      if (rest.empty()) {
        return fail(Errc::kInvalidArgument, "a command is needed, run for instance (see tandem --help)");
      }
      const bool is_option = rest.front().starts_with('-');
      return fail(Errc::kInvalidArgument, "unknown {} {} (see tandem --help)", is_option ? "option" : "command",
                  in_quotes(rest.front()));
    }
    const std::vector<std::string> rest = app_.remaining(true);
    if (rest.empty()) {
      return {};
    }
    return fail(Errc::kInvalidArgument, "run: {} {} (see tandem run --help)",
                rest.front().starts_with('-') ? "unknown option" : "nothing is expected at", in_quotes(rest.front()));
  }

  CLI::App app_;
  CLI::App* run_ = nullptr;
  CLI::Option* config_ = nullptr;
  std::vector<CLI::Option*> options_;
};

/// The arguments without the program's name. CLI11 takes "--option=" for an option whose value comes next, so an empty
/// value gets a token of its own.
std::vector<std::string> tokens_of(std::span<const char* const> arguments) {
  std::vector<std::string> tokens;
  for (const char* const argument : arguments.subspan(std::min<size_t>(arguments.size(), 1))) {
    const std::string_view text = argument;
    if (text.starts_with("--") && text.find('=') == text.size() - 1 && text.size() > 3) {
      tokens.emplace_back(text.substr(0, text.size() - 1));
      tokens.emplace_back();
    } else {
      tokens.emplace_back(text);
    }
  }
  return tokens;
}

/// `given`, completed by what only the file gives.
GivenOptions merged(GivenOptions given, GivenOptions from_file) {
  for (size_t index = 0; index < given.size(); ++index) {
    if (given[index].texts.empty()) {
      given[index] = std::move(from_file[index]);
    }
  }
  return given;
}

Result<RunRequest> make_request(const Parser& parser) {
  GivenOptions given = parser.given();
  if (const auto path = parser.config_path()) {
    TANDEM_TRY(apply_options(given));  // what is wrong on the command line is found before a file is opened
    given = merged(std::move(given), TANDEM_TRY(read_config_file(*path)));
  }
  return make_run_request(given);
}

}  // namespace

Result<Request> parse_command_line(std::span<const char* const> arguments) {
  const std::string first = arguments.size() > 1 ? arguments[1] : "";
  if (const auto* const command = std::ranges::find(kCommands, first, &Command::name); command != kCommands.end()) {
    return with_context(command->parse(first, {arguments.begin() + 2, arguments.end()}), first);
  }
  Parser parser;
  if (auto text = TANDEM_TRY(parser.parse(tokens_of(arguments)))) {
    return TextRequest{std::move(*text)};
  }
  return TANDEM_TRY(with_context(make_request(parser), "run"));
}

}  // namespace tandem::cli
