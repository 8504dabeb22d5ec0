"""oracles: common functions of the oracles in this folder, which compare programs with a few lines of Python on random
histories, or run them many times with faults"""

import functools
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
from datetime import datetime, timezone

OLDEST = datetime.min.replace(tzinfo=timezone.utc)


def fold(text):
    """Simple case folding: what the full one makes of a character, unless that is several."""
    def one(c):
        return c.casefold() if len(c.casefold()) == 1 else c.lower() if len(c.lower()) == 1 else c
    return ''.join(map(one, text))


def time_of(text):
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def counts_as(text, latest, now):
    """When a line counts as written: a time that is none, or ahead of the clock, is the latest one before it."""
    time = time_of(text)
    return latest if time is None or time > now else time


def demand(held, *what):
    if not held:
        raise AssertionError(' '.join(map(str, what))[:5000])


def play(attempt, count, more=''):
    """Calls attempt(random) for each seed of `usage: NAME [COUNT [SEED]]`, in the working directory. Prints the first
    AssertionError with what repeats it. Returns the count, or exits with 1."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else count
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    home = os.getcwd()
    for n in range(count):
        try:
            attempt(random.Random(seed + n))
        except AssertionError as e:
            print(f'{os.path.basename(sys.argv[0])} 1 {seed + n}{more}: {e}')
            sys.exit(1)
        finally:
            os.chdir(home)
    return count


# ---- programs with faults

# Where the files are: in ORACLE_DIR, or else where they are fast, if there is such a place.
MEMORY = os.environ.get('ORACLE_DIR') or ('/dev/shm' if os.access('/dev/shm', os.W_OK) else None)

@functools.cache
def library():
    """The path of faults.so, which is made with the programs on Linux, or None: the sanitizers would have to be loaded
    before it."""
    folder = os.environ.get('BUILD') or os.path.dirname(shutil.which('hist-append') or '/')
    path = os.path.join(folder, 'tests/tools/faults.so')
    return path if os.path.exists(path) and os.environ.get('VARIANT') != 'asan' else None


class Loaded:
    """A program that is loaded once, and runs each time it is asked to; see tests/tools/faults.c."""

    def __init__(self, program):
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(120)
        self.process = subprocess.Popen(
            [program], pass_fds=[theirs.fileno()], start_new_session=True, stdin=subprocess.DEVNULL,
            env=dict(os.environ, LD_PRELOAD=library(), FAULTS_SERVER=str(theirs.fileno())))
        theirs.close()

    def begin(self, directory, files, words, env):
        """Starts it in a directory. The files are those of its standard streams."""
        text = [directory, *files, str(len(words)), *words, *('%s=%s' % pair for pair in env.items())]
        data = b''.join(word.encode() + b'\0' for word in text)
        self.socket.sendall(struct.pack('=I', len(data)) + data)

    def end(self):
        """Waits for it. Returns its status, negative for a signal, and how many calls it made; None if it hangs."""
        try:
            status, calls = struct.unpack('=ii', self.socket.recv(8))
        except TimeoutError:
            self.stop()
            return None, 0
        return os.waitstatus_to_exitcode(status), calls

    def stop(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.socket.close()
