// SPDX-License-Identifier: Apache-2.0
// usage: timed_run [--root DIR] [--input FILE] OUTPUT PROGRAM [ARGUMENT…]
//
// Runs PROGRAM (a path, inside DIR if that is given) with its standard input from FILE, or an empty one, and its standard
// output in the file OUTPUT. Prints
// `timed START END FREQUENCY STATUS`: the counter right before exec, the counter when the program had ended, its
// frequency in Hz, and the program's exit status (128+N if signal N ended it).
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kCannotRun = 127;

/// The virtual counter, which for programs of an arm64 KVM host is the physical one.
uint64_t counter() {
  uint64_t value = 0;
  __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(value)::"memory");
  return value;
}

uint64_t counter_frequency_hz() {
  uint64_t value = 0;
  __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(value));
  return value;
}

bool redirect(int descriptor, const char* path, int flags) {
  const int file = ::open(path, flags | O_CLOEXEC, 0600);
  return file >= 0 && ::dup2(file, descriptor) == descriptor;
}

struct Request {
  const char* root = nullptr;
  const char* input = "/dev/null";
  const char* output = nullptr;
  char** program = nullptr;
};

bool enter(const char* root) { return root == nullptr || (::chroot(root) == 0 && ::chdir("/") == 0); }

/// What the child does: the last thing before exec is to read the counter.
[[noreturn]] void become(const Request& request, volatile uint64_t* start) {
  if (redirect(STDIN_FILENO, request.input, O_RDONLY) &&
      redirect(STDOUT_FILENO, request.output, O_WRONLY | O_CREAT | O_TRUNC) && enter(request.root)) {
    *start = counter();
    ::execv(request.program[0], request.program);
  }
  std::perror(request.program[0]);
  ::_exit(kCannotRun);
}

int run(const Request& request) {
  volatile uint64_t start = 0;
  const pid_t child = ::vfork();  // the child writes to this process's memory, and nothing is copied
  if (child == 0) {
    become(request, &start);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) {
    std::perror("timed_run");
    return EXIT_FAILURE;
  }
  const uint64_t end = counter();
  const int exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::printf("timed %lu %lu %lu %d\n", start, end, counter_frequency_hz(), exit_status);
  return exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  int next = 1;
  for (; next + 1 < argc; next += 2) {
    if (std::strcmp(argv[next], "--root") == 0) {
      request.root = argv[next + 1];
    } else if (std::strcmp(argv[next], "--input") == 0) {
      request.input = argv[next + 1];
    } else {
      break;
    }
  }
  if (argc - next < 2) {
    std::fputs("usage: timed_run [--root DIR] [--input FILE] OUTPUT PROGRAM [ARGUMENT...]\n", stderr);
    return 2;
  }
  request.output = argv[next];
  request.program = argv + next + 1;
  return run(request);
}
