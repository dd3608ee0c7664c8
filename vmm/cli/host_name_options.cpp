// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/host_name_options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "vmm/cli/device_text.hpp"
#include "vmm/cli/error_line.hpp"
#include "vmm/control/vm_registry.hpp"

namespace tandem::cli {
namespace {

void add_list(CLI::App& app, const char* name, std::vector<std::string>& texts, const char* form, const char* help) {
  app.add_option(name, texts, help)->type_name(form)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

void HostNameOptions::add_to(CLI::App& app) {
  app.add_option("--name", name_, "name of the VM on this host [that it had]")->type_name("NAME");
  add_list(app, "--disk", disks_, "ID=PATH", "what the disk ID is kept in; may be repeated");
  add_list(app, "--net", nets_, "ID=tap=IF", "the tap interface of the network device ID; may be repeated");
  app.add_option("--vsock", vsock_, "the socket that leads to the guest's ports")->type_name("PATH");
  app.add_option("--console", console_, "first serial port: stdio, pty, file=PATH, socket=PATH or none")
      ->type_name("BACKEND");
  app.add_option("--hvc", hvc_, "virtio console, on a BACKEND as above")->type_name("BACKEND");
  app.add_option("--log-level", log_level_, "debug, info, warn, error or off [info]")->type_name("LEVEL");
}

Result<HostNames> HostNameOptions::names() const {
  HostNames names;
  if (!name_.empty()) {
    if (const auto checked = control::check_vm_name(name_); !checked) {
      return fail(checked.error().code(), "--name: {} {}", in_quotes(name_), checked.error().message());
    }
    names.name = name_;
  }
  for (const std::string& disk : disks_) {
    TANDEM_TRY(with_context(take_disk(names, disk), "--disk"));
  }
  for (const std::string& net : nets_) {
    TANDEM_TRY(with_context(take_net(names, net), "--net"));
  }
  if (!vsock_.empty()) {
    names.vsock = vsock_;
  }
  if (!console_.empty()) {
    names.console = TANDEM_TRY(with_context(parse_console(console_), "--console"));
  }
  if (!hvc_.empty()) {
    names.hvc = TANDEM_TRY(with_context(parse_console(hvc_), "--hvc"));
  }
  return names;
}

Result<log::Level> HostNameOptions::log_level() const {
  if (log_level_.empty()) {
    return log::Level::kInfo;
  }
  auto level = log::parse_level(log_level_);
  if (!level) {
    return fail(Errc::kInvalidArgument, "--log-level: {} is none of debug, info, warn, error and off",
                in_quotes(log_level_));
  }
  return level;
}

}  // namespace tandem::cli
