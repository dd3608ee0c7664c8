# SPDX-License-Identifier: Apache-2.0
"""The build machine's end of a testbed: starts the emulated machine, hands it the command, carries the
command's streams and gives back its exit status. Its peer is run_command.cpp, which describes the frames.

usage: streams.py [--timeout S] [--log FILE] [--mount TAG=rw|ro:PATH]… [--env NAME[=VALUE]]…
                  --cwd DIR [--link PATH] -- MACHINE… -- CMD…
PATH is another name of the current directory. In MACHINE, {STREAMS} becomes the number of the socket that carries the frames and {LOG} the log's path.
"""

import argparse
import errno
import fcntl
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import tty

BOOT_LIMIT_S = 300
CHUNK = 32768
HIGH_WATER = 1 << 20  # bytes held for a slow reader before the machine is made to wait
PIPE_BUF = 4096  # what a pipe that polls writable takes without blocking
ESCAPE = b"\x1d" * 3  # Ctrl-] three times leaves a terminal session

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

EXIT_TIMEOUT = 124
EXIT_TESTBED = 125


class Leave(Exception):
    """Ends the session: with an exit status and, if something went wrong, one line that says what."""

    def __init__(self, status, why=None, keep_log=False):
        super().__init__(why)
        self.status, self.why, self.keep_log = status, why, keep_log


class Killed(Exception):
    def __init__(self, number):
        super().__init__()
        self.number = number


def parse_arguments(argv):
    options = argparse.ArgumentParser()
    options.add_argument("--timeout", type=int, default=0)
    options.add_argument("--log")
    options.add_argument("--mount", action="append", default=[])
    options.add_argument("--env", action="append", default=[])
    options.add_argument("--cwd")
    options.add_argument("--link")
    first = argv.index("--")
    second = argv.index("--", first + 1)
    parsed = options.parse_args(argv[:first])
    parsed.machine, parsed.command = argv[first + 1 : second], argv[second + 1 :]
    return parsed


def frame(kind, *parts):
    body = b"\0".join(os.fsencode(part) if isinstance(part, str) else part for part in parts)
    return kind + struct.pack("<I", len(body)) + body


def environment(names):
    chosen = {
        "PATH": "/usr/local/bin:/bin",
        "HOME": "/root",
        "USER": "root",
        "SHELL": "/bin/sh",
        "TERM": os.environ.get("TERM", "dumb"),
    }
    chosen.update((k, v) for k, v in os.environ.items() if k.startswith("TANDEM_"))
    for name in names:
        name, given, value = name.partition("=")
        if given or name in os.environ:
            chosen[name] = value if given else os.environ[name]
    chosen["PATH"] = f"{chosen.get('TANDEM_TOP', '')}/build/arm64:{chosen['PATH']}"
    return chosen


def session_frames(options, window):
    mounts = sorted(map(split_mount, options.mount), key=lambda mount: len(mount[2]))  # outer before inner
    frames = [frame(b"M", *mount) for mount in mounts]
    if options.link:
        frames.append(frame(b"L", options.cwd, options.link))
    frames += [frame(b"V", f"{name}={value}") for name, value in environment(options.env).items()]
    frames += [frame(b"A", argument) for argument in options.command]
    frames.append(frame(b"D", options.cwd))
    if window is not None:
        frames.append(frame(b"T", window))
    return b"".join(frames) + frame(b"G")


def split_mount(text):
    tag, rest = text.split("=", 1)
    mode, path = rest.split(":", 1)
    return tag, "rw" if mode == "rw" else "ro", path


class Terminal:
    """The user's terminal, in raw mode while the session lasts."""

    def __init__(self):
        self.before = termios.tcgetattr(0)
        tty.setraw(0)

    def restore(self):
        termios.tcsetattr(0, termios.TCSADRAIN, self.before)

    @staticmethod
    def window():
        return fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8))[:4]


class Session:
    def __init__(self, options):
        self.options = options
        self.directory = tempfile.mkdtemp(prefix="tandem-testbed-")
        self.log = os.path.join(self.directory, "log")
        self.terminal = Terminal() if os.isatty(0) and os.isatty(1) else None
        self.machine = None
        self.socket = None
        self.to_machine = bytearray(session_frames(options, self.terminal and Terminal.window()))
        self.from_machine = bytearray()
        self.held = {1: bytearray(), 2: bytearray()}
        self.input_open = True
        self.last_input = b""
        self.status = None
        self.started = False
        self.deadline = time.monotonic() + BOOT_LIMIT_S

    def start_machine(self):
        self.socket, theirs = socket.socketpair()
        self.socket.setblocking(False)
        places = {"{STREAMS}": str(theirs.fileno()), "{LOG}": self.log.replace(",", ",,")}
        machine = self.options.machine
        for place, value in places.items():
            machine = [word.replace(place, value) for word in machine]
        with open(self.log, "wb") as log:
            # The kernel ends the machine if this process is killed outright.
            self.machine = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *machine],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()

    def run(self):
        self.start_machine()
        while self.status is None or any(self.held.values()):
            self.turn()
        return self.status

    def turn(self):
        for fd, event in self.wait():
            if fd == self.socket.fileno():
                if event & select.POLLOUT:
                    self.send()
                if event & ~select.POLLOUT:
                    self.receive()
            elif fd == 0 and self.input_open:
                self.read_input()
            elif fd in self.held:
                self.write_output(fd)

    def wait(self):
        poll = select.poll()
        events = 0
        if self.status is None and max(map(len, self.held.values())) < HIGH_WATER:
            events |= select.POLLIN
        if self.to_machine and self.status is None:
            events |= select.POLLOUT
        if events:
            poll.register(self.socket, events)
        if self.input_open and self.started and len(self.to_machine) < HIGH_WATER:
            poll.register(0, select.POLLIN)
        for fd, held in self.held.items():
            if held:
                poll.register(fd, select.POLLOUT)
        return poll.poll(self.remaining_ms())

    def remaining_ms(self):
        if self.deadline is None or self.status is not None:
            return None
        remaining = self.deadline - time.monotonic()
        if remaining > 0:
            return remaining * 1000 + 1
        if self.started:
            raise Leave(EXIT_TIMEOUT, f"the command did not end within {self.options.timeout} s: killed", True)
        raise Leave(EXIT_TESTBED, f"the emulated machine did not start within {BOOT_LIMIT_S} s", True)

    def send(self):
        try:
            del self.to_machine[: self.socket.send(self.to_machine)]
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass  # a machine that ended is noticed when receiving

    def receive(self):
        try:
            chunk = self.socket.recv(8 * CHUNK)
        except BlockingIOError:
            return
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            raise Leave(EXIT_TESTBED, "the emulated machine ended before the command did", True)
        self.from_machine += chunk
        at = 0
        while len(self.from_machine) - at >= 5:
            kind, length = struct.unpack_from("<cI", self.from_machine, at)
            if len(self.from_machine) - at - 5 < length:
                break
            self.handle(kind, self.from_machine[at + 5 : at + 5 + length])
            at += 5 + length
        del self.from_machine[:at]

    def handle(self, kind, body):
        if kind == b"G":
            self.started = True
            self.deadline = time.monotonic() + self.options.timeout if self.options.timeout else None
        elif kind == b"O":
            self.held[1] += body
        elif kind == b"E":
            self.held[2] += body
        elif kind == b"X":
            self.status = body[0]

    def read_input(self):
        try:
            chunk = os.read(0, CHUNK)
        except OSError:
            chunk = b""
        self.input_open = bool(chunk)
        self.to_machine += frame(b"I", chunk)
        if self.terminal:
            self.last_input = (self.last_input + chunk)[-len(ESCAPE):]
            if self.last_input == ESCAPE:
                raise Leave(130)

    def write_output(self, fd):
        held = self.held[fd]
        try:
            del held[: os.write(fd, held[:PIPE_BUF])]
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise Killed(signal.SIGPIPE) from error
            raise Leave(EXIT_TESTBED, f"cannot write output: {error.strerror}") from error

    def resize(self):
        self.to_machine += frame(b"T", Terminal.window())

    def end(self, keep_log):
        if self.machine:
            self.machine.kill()
            self.machine.wait()
        if self.terminal:
            self.terminal.restore()
        if self.options.log:
            self.save_log()
        if not keep_log:
            shutil.rmtree(self.directory, ignore_errors=True)


    def save_log(self):
        try:
            shutil.copyfile(self.log, self.options.log)
        except OSError as error:
            complain(f"cannot write {self.options.log}: {error.strerror}")


def complain(text):
    print(f"testbed: {text}", file=sys.stderr, flush=True)


def raise_killed(number, _frame):
    raise Killed(number)


def main():
    options = parse_arguments(sys.argv[1:])
    for number in ENDING_SIGNALS:
        signal.signal(number, raise_killed)
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    session = Session(options)
    if session.terminal:
        signal.signal(signal.SIGWINCH, lambda *_: session.resize())
    leave = Leave(EXIT_TESTBED)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)
        leave = Leave(session.run())
    except Leave as early:
        leave = early
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
        session.end(leave.keep_log)
    if leave.why:
        where = f" (log: {options.log or session.log})" if leave.keep_log else ""
        complain(leave.why + where)
    return leave.status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        complain(error)
        sys.exit(EXIT_TESTBED)
    except Killed as killed:
        # Die of the same signal, so that a calling shell sees what happened.
        signal.signal(killed.number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)
        os.kill(os.getpid(), killed.number)
