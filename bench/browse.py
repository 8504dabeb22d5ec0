"""For bench/browse.sh: BIN HISTORY SIZE ROUNDS FIRST FRAME MESSAGE."""

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import termios
import time

BIN, HISTORY, SIZE = sys.argv[1:4]
ROUNDS, FIRST, FRAME = int(sys.argv[4]), float(sys.argv[5]), float(sys.argv[6])
# Of one message, in megabytes.
MESSAGE = int(sys.argv[7])
PATIENCE = 60
# Letters that no message holds: a search for them reads all of the file, and nothing but the answer to the key
# shows them.
LETTERS = 'ѠѢѤѦѨѪѬѮѰѲѴѶѸѺѼѾ'


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, argv):
        self.output = b''
        self.start = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 40, 120, 0, 0))
            os.execv(argv[0], argv)

    def pump(self, wait):
        if not select.select([self.fd], [], [], wait)[0]:
            return False
        self.output += os.read(self.fd, 1 << 16)
        return True

    def until(self, text):
        """Waits until the output has it; when that was."""
        end = time.monotonic() + PATIENCE
        while text not in self.output:
            if time.monotonic() > end:
                raise SystemExit(f'bench/browse.sh: waited in vain for {text!r}: {self.output[-2000:]!r}')
            self.pump(1)
        return time.monotonic()

    def quiet(self, seconds=0.05):
        while self.pump(seconds):
            pass
        self.output = b''

    def key(self, key, answer=None):
        """How long it takes until there is an answer, in milliseconds; any when none is given."""
        self.output = b''
        start = time.monotonic()
        os.write(self.fd, key)
        if answer:
            return (self.until(answer) - start) * 1000
        if not self.pump(2):
            raise SystemExit(f'bench/browse.sh: no answer to {key!r}')
        return (time.monotonic() - start) * 1000

    def memory(self):
        with open(f'/proc/{self.pid}/status', encoding='ascii') as status:
            return int(next(line for line in status if line.startswith('VmHWM')).split()[1]) / 1024

    def close(self):
        os.kill(self.pid, signal.SIGTERM)
        end = time.monotonic() + PATIENCE
        start = time.monotonic()
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                raise SystemExit('bench/browse.sh: it does not end')
            try:
                self.pump(0.001)
            except OSError:
                time.sleep(0.001)
        os.close(self.fd)
        return (time.monotonic() - start) * 1000


def ask(t, name, key, answer=None):
    """A key for the browser; then one for cat, which has the same machine and what the browser does to it."""
    times[name].append(t.key(key, answer))
    times['key, cat beside it'].append(cat.key(b'x'))


def browse(history=HISTORY):
    # As it is opened for the first time.
    shutil.rmtree(f'{os.environ["HOME"]}/.local', ignore_errors=True)
    return Terminal([f'{BIN}/hist-browse', '--history', history])


def write_long(path):
    """A session with a message of MESSAGE MB between two short ones, of lines with quotes, Markdown and letters that
    are escaped."""
    text = ''.join(f'line {i}: "some" **words** of a long answer, `code` and more\n' for i in range(10000))
    text = text * (MESSAGE * 1000000 // len(text)) + 'flummoxed\n'
    with open(path, 'w', encoding='utf-8') as out:
        for number, (role, content) in enumerate((('user', 'a long one'), ('assistant', text), ('user', 'thanks'))):
            json.dump({'id': f'1-{number}', 'session_id': 'long', 'timestamp': '2024-06-27T15:00:00.000000+00:00',
                       'role': role, 'content': content}, out)
            out.write('\n')


def long_message(path):
    """Keys in it: by pages and to its ends, while it is looked through for a word at its end, and for a letter."""
    t = browse(path)
    t.until(b'line 3')
    t.quiet()
    t.key(b'\t')
    t.key(b'\t')
    t.quiet()
    for key in (b'\x06', b'G', b'\x02', b'K', b'\x06', b'j', b'G', b'g') * 4:
        ask(t, 'key, long message', key)
        t.quiet(0.03)
    t.key(b'i')
    t.quiet()
    for letter in 'flummoxed':
        ask(t, 'key, long message', letter.encode(), letter.encode())
        time.sleep(0.07)
    # The matches of the letters before the last one may be on the screen already.
    t.quiet(1)
    t.key(b'\t')
    t.key(b'\t')
    t.quiet()
    # The next one is the same, all the way round; meanwhile the help screen comes and goes.
    for _ in range(10):
        os.write(t.fd, b'n')
        time.sleep(0.005)
        ask(t, 'key, long message', b'?', b'any other key')
        ask(t, 'key, long message', b'x')
        t.quiet()
    memory_long.append(t.memory())
    t.close()


def round_of(times):
    # The newest session is shown; then each key while the others are being read.
    t = browse()
    times['first screen'].append((t.until(newest) - t.start) * 1000)
    for letter in LETTERS[:4]:
        ask(t, 'key, reading sessions', letter.encode(), letter.encode())
    t.until(b'no hit')
    t.quiet()
    # A letter after the other, each before the search of the one before it has ended.
    for _ in range(2):
        for letter in LETTERS:
            ask(t, 'key, searching', letter.encode(), letter.encode())
            time.sleep(0.07)
        t.key(b'\x15')
        t.quiet()
    # A common word, whose hits keep coming while the list is walked through.
    times['first hits'].append(t.key(b'the', b'asst '))
    t.quiet()
    for _ in range(30):
        ask(t, 'key, in the list', b'\x1bOB')
        t.quiet(0.03)
    t.key(b'\t')
    t.key(b'\t')
    t.quiet()
    for key in (b'j', b'\x06', b'J', b'k', b'n', b'\x02') * 4:
        ask(t, 'key, in the messages', key)
        t.quiet(0.03)
    memory.append(t.memory())
    times['end, by a signal'].append(t.close())


names = ['first screen', 'key, reading sessions', 'key, searching', 'first hits', 'key, in the list',
         'key, in the messages', 'key, long message',
         'end, by a signal', 'key, cat beside it']
times = {name: [] for name in names}
memory, memory_long = [], []
newest = subprocess.run([f'{BIN}/hist-sessions', '--history', HISTORY, '-n', '1', '-q'], capture_output=True,
                        check=True).stdout.split(b'\t')[0]
cat = Terminal(['/bin/cat'])
time.sleep(0.05)
for _ in range(ROUNDS):
    round_of(times)
write_long(f'{HISTORY}.long')
long_message(f'{HISTORY}.long')
cat.close()


def most(values):
    """What 99 of 100 do not pass."""
    return sorted(values)[min(len(values) - 1, len(values) * 99 // 100)]


frame = FRAME + most(times['key, cat beside it'])
print(f'{SIZE}, {ROUNDS} rounds, ms')
print(f'{"":24}{"median":>9}{"99 %":>9}{"largest":>9}')
over = False
for name in names:
    values, high, middle = times[name], most(times[name]), statistics.median(times[name])
    bad = (name.startswith('key') and high > frame) or (name == 'first screen' and SIZE == '100M' and middle > FIRST)
    over = over or bad
    print(f'{name:24}{middle:9.2f}{high:9.2f}{max(values):9.2f}{"  over the bar" if bad else ""}')
print(f'memory {max(memory):.1f} MB; with a message of {MESSAGE} MB {max(memory_long):.1f} MB')
sys.exit(over)
