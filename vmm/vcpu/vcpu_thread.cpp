// SPDX-License-Identifier: Apache-2.0
#include "vmm/vcpu/vcpu_thread.hpp"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "vmm/lib/thread/start_thread.hpp"

namespace tandem {
namespace {

/// Ends KVM_RUN of the thread it is sent to. It has a handler that does nothing, without SA_RESTART.
int kick_signal() { return SIGRTMIN; }

void install_kick_handler() {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  ::sigaction(kick_signal(), &action, nullptr);
}

/// Lets the calling thread be kicked: it has inherited its signal mask, and who started the process may block anything.
void unblock_kick() {
  sigset_t kick;
  sigemptyset(&kick);
  sigaddset(&kick, kick_signal());
  ::pthread_sigmask(SIG_UNBLOCK, &kick, nullptr);
}

}  // namespace

Result<std::unique_ptr<VcpuThread>> VcpuThread::create(Vcpu& vcpu, ExitDispatcher& dispatcher,
                                                       VcpuThreadListener& listener) {
  install_kick_handler();
  std::unique_ptr<VcpuThread> made(new VcpuThread(vcpu, dispatcher, listener));
  const std::string name = fmt::format("vcpu{}", vcpu.index());
  made->thread_ = TANDEM_TRY(start_thread(name.c_str(), [self = made.get()] { self->main(); }));
  TANDEM_TRY(with_context(made->wait_started(), fmt::format("vCPU {}", vcpu.index())));
  made->wait_parked();
  return made;
}

Result<void> VcpuThread::wait_started() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return started_.has_value(); });
  return *started_;
}

VcpuThread::~VcpuThread() {
  if (thread_.joinable()) {
    post(Request::kStop);
    thread_.join();
  }
}

void VcpuThread::request_park() { post(Request::kPark); }

void VcpuThread::wait_parked() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return parked_; });
}

void VcpuThread::unpark() { post(Request::kRun); }

void VcpuThread::post(Request request) {
  const std::lock_guard lock(mutex_);
  request_ = request;
  if (request != Request::kRun) {
    leave_guest();
  }
  changed_.notify_all();
}

void VcpuThread::block() {
  const std::lock_guard lock(mutex_);
  blocked_ = true;
  leave_guest();
}

void VcpuThread::unblock() {
  const std::lock_guard lock(mutex_);
  blocked_ = false;
  changed_.notify_all();
}

void VcpuThread::leave_guest() {
  vcpu_.set_immediate_exit(true);
  ::pthread_kill(thread_.native_handle(), kick_signal());
}

void VcpuThread::main() {
  thread_id_ = ::gettid();
  unblock_kick();
  if (!begin()) {
    return;
  }
  while (wait_to_run()) {
    if (dispatcher_.handle(vcpu_, vcpu_.run()) == AfterExit::kPark) {
      park_self();
    }
  }
  listener_.on_thread_end(vcpu_.index());
}

bool VcpuThread::begin() {
  auto told = listener_.on_thread_start(vcpu_.index());
  const std::lock_guard lock(mutex_);
  started_ = std::move(told);
  changed_.notify_all();
  return started_->has_value();
}

bool VcpuThread::wait_to_run() {
  std::unique_lock lock(mutex_);
  while (request_ == Request::kPark || (request_ == Request::kRun && blocked_)) {
    if (request_ == Request::kRun) {
      changed_.wait(lock, [this] { return request_ != Request::kRun || !blocked_; });
      continue;
    }
    vcpu_.finish_mmio();
    parked_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return request_ != Request::kPark; });
    parked_ = false;
  }
  vcpu_.set_immediate_exit(false);
  return request_ == Request::kRun;
}

void VcpuThread::park_self() {
  const std::lock_guard lock(mutex_);
  if (request_ == Request::kRun) {
    request_ = Request::kPark;
  }
}

}  // namespace tandem
