// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/receive_options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "vmm/cli/host_name_options.hpp"

namespace tandem::cli {
namespace {

constexpr size_t kHelpColumn = 34;

constexpr const char* kFooter = R"(
ADDR is unix:PATH, tcp:HOST:PORT with an address in numbers or localhost, or fd:N for a connected socket that was
inherited. tcp is neither encrypted nor authenticated; ssh can carry the others.

Every device of the machine that needs something of this host has to be named: nothing else is opened. A console that is
not named goes nowhere, until `tandem console` attaches to it.

Exit status: 0 the guest powered off or has moved on, 1 failure, 2 usage error, 3 the guest crashed.)";

}  // namespace

Result<std::variant<std::string, ReceiveRequest>> parse_receive_command(std::vector<std::string> words) {
  CLI::App app("Waits for a virtual machine that moves here, then runs it in the foreground.", "tandem receive");
  app.set_help_flag("-h,--help", "show this help");
  app.footer(kFooter);
  app.get_formatter()->column_width(kHelpColumn);
  std::string address;
  app.add_option("ADDR", address, "where to wait for it")->type_name("");
  HostNameOptions names;
  names.add_to(app);
  std::ranges::reverse(words);  // as CLI11 wants them
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ParseError& error) {
    return fail(Errc::kInvalidArgument, "{}", error.what());
  }
  if (address.empty()) {
    return fail(Errc::kInvalidArgument, "an address is needed: unix:PATH, tcp:HOST:PORT or fd:N");
  }
  ReceiveRequest request;
  request.address = TANDEM_TRY(migration::MigrationAddress::parse(address));
  request.names = TANDEM_TRY(names.names());
  request.log_level = TANDEM_TRY(names.log_level());
  return request;
}

}  // namespace tandem::cli
