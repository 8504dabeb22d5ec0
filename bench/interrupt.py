"""For bench/interrupt.sh: CHAT TESTS ROUNDS BAR, in an empty working directory with a separate HOME."""

import json
import os
import pty
import re
import select
import signal
import statistics
import subprocess
import sys
import time

CHAT, TESTS, ROUNDS, BAR = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
PROMPT = re.compile(rb'bench[^\n]*> ')
PATIENCE = 20


class Chat:
    """chat on a terminal of its own."""

    def __init__(self, args, env):
        self.output = b''
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # A job in the background of a script has it ignored.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execvpe(CHAT, [CHAT, *args], env)

    def pump(self, wait=0.0005):
        if not select.select([self.fd], [], [], wait)[0]:
            return
        try:
            self.output += os.read(self.fd, 65536)
        except OSError:     # its end
            time.sleep(wait)

    def until(self, condition):
        """Waits for it; returns when it was so."""
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f'bench/interrupt.sh: waited in vain; chat said {self.output[-2000:]!r}')
            self.pump()
        return time.monotonic()

    def type(self, text):
        os.write(self.fd, text)

    def ended(self):
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def close(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def interrupt(chat, done):
    """Milliseconds from Ctrl-C on."""
    began = time.monotonic()
    chat.type(b'\x03')
    return (chat.until(done) - began) * 1000


class State:
    """What chat is interrupted in."""

    def __init__(self, name, steps, begun, options=(), env=None, line=b'hello\r'):
        self.name, self.steps, self.begun = name, steps, begun
        self.options, self.env, self.line = list(options), env or {}, line

    def environment(self, port, interactive):
        env = dict(os.environ, OPENAI_BASE_URL=f'http://127.0.0.1:{port}/v1', OPENAI_API_KEY='bench',
                   CHAT_MODEL='openai:bench')
        if not interactive:
            env.update(self.env)
        return {name: value for name, value in env.items() if value}

    def one_shot(self, port):
        chat = Chat(['--no-store', *self.options, 'hello'], self.environment(port, False))
        begun = self.begun(chat)
        chat.until(begun)
        took = interrupt(chat, chat.ended)
        chat.close()
        return took

    def interactive(self, port):
        chat = Chat(['--no-store', '-s', 'bench', *self.options], self.environment(port, True))
        chat.until(lambda: PROMPT.search(chat.output))
        times = []
        for _ in range(ROUNDS):
            chat.output = b''
            begun = self.begun(chat)
            chat.type(self.line)
            chat.until(begun)
            chat.output = b''
            times.append(interrupt(chat, lambda: b'interrupted' in chat.output and
                                   PROMPT.search(chat.output)))
        chat.close()
        return times

    def measure(self):
        """(times of one-shot use, of interactive use)"""
        with open('llm.log', 'wb') as log:
            llm = subprocess.Popen([f'{TESTS}/tools/fake-llm', '--port-file', 'port', '--record', 'record',
                                    *self.steps], stdout=log, stderr=log)
        while not os.path.exists('port'):
            if llm.poll() is not None:
                raise SystemExit(f'bench/interrupt.sh: no server for "{self.name}"')
            time.sleep(0.01)
        with open('port', encoding='ascii') as file:
            port = file.read().strip()
        os.unlink('port')
        times = [self.one_shot(port) for _ in range(ROUNDS)], self.interactive(port)
        llm.kill()
        llm.wait()
        return times


def after(seconds):
    """So much later."""
    def begun(_):
        end = time.monotonic() + seconds
        return lambda: time.monotonic() > end
    return begun


def another_request(_):
    def count():
        return sum(name.endswith('.json') for name in os.listdir('record'))

    seen = count()
    return lambda: count() > seen


def said(text):
    return lambda chat: lambda: text in chat.output


def grown(path, by=1):
    """Has the file become so much longer?"""
    def size():
        return os.path.getsize(path) if os.path.exists(path) else 0

    def begun(_):
        before = size()
        return lambda: size() >= before + by
    return begun


def called(path):
    """Has the server been called once more?"""
    def count():
        if not os.path.exists(path):
            return 0
        with open(path, 'rb') as file:
            return file.read().count(b'"tools/call"')

    def begun(_):
        before = count()
        return lambda: count() > before
    return begun


def prepare():
    with open('tool', 'w', encoding='ascii') as file:
        file.write('#!/bin/sh\n[ "$1" != --schema ] || { echo \'{"name":"tool"}\'; exit; }\n'
                   'echo >>tool.on; sleep 100\n')
    os.chmod('tool', 0o755)
    with open('deaf', 'w', encoding='ascii') as file:
        file.write('#!/bin/sh\n[ "$1" != --schema ] || { echo \'{"name":"deaf"}\'; exit; }\n'
                   'trap "" TERM\necho >>deaf.on\nwhile :; do sleep 1; done\n')
    os.chmod('deaf', 0o755)
    calls = [{'index': i, 'id': f'call_{i}', 'type': 'function',
              'function': {'name': 'deaf', 'arguments': '{}'}} for i in range(16)]
    with open('calls.http', 'w', encoding='ascii') as file:
        file.write('status: 200\n\n')
        for choice in {'delta': {'tool_calls': calls}}, {'delta': {}, 'finish_reason': 'tool_calls'}:
            file.write(f'data: {json.dumps({"choices": [dict(choice, index=0)]})}\n\n')
        file.write('data: [DONE]\n\n')
    with open(os.path.expanduser('~/.config/chathist/config'), 'w', encoding='ascii') as file:
        file.write('api_key_command.groq = echo >>key.on; exec sleep 100\n')
    with open('busy.http', 'w', encoding='ascii') as file:
        file.write('status: 503\nheader: Retry-After: 60\n\nbusy')


def main():
    prepare()
    key = {'OPENAI_API_KEY': '', 'CHAT_API_KEY_COMMAND': 'echo >>key.on; exec sleep 100'}
    mcp = f'mcp={TESTS}/tools/fake-mcp --log log'
    states = [
        State('connecting', ['--no-accept'], after(0.2)),
        State('before the first byte', ['--accept-silent'], another_request),
        State('streaming', ['--set', 'delay: 20ms', '--reply', 'word ' * 5000], said(b'word word')),
        State('before another try', ['./busy.http'], said(b'trying again')),
        State('in a tool', ['--call', 'tool {}'], grown('tool.on'), ['--yes', '-T', './tool']),
        State('in 16 deaf tools', ['./calls.http'],
              grown('deaf.on', 16), ['--yes', '-T', './deaf']),
        State('in an MCP call', ['--call', 'mcp__hang {}'], called('log'), ['--yes', '--mcp', mcp]),
        State('same, server stays', ['--call', 'mcp__hang {}'], called('log'),
              ['--yes', '--mcp', mcp + ' --stubborn']),
        State('in a key command', ['--reply', 'x'], grown('key.on'), env=key, line=b'/model groq:x\r'),
    ]
    print(f'{"ms, of " + str(ROUNDS):<22} {"one-shot":>17} {"interactive":>17}')
    print(f'{"":<22} {"median":>8} {"max":>8} {"median":>8} {"max":>8}')
    worst = 0
    for state in states:
        columns = [f(times) for times in state.measure() for f in (statistics.median, max)]
        print(f'{state.name:<22} ' + ' '.join(f'{ms:8.1f}' for ms in columns) +
              (f'  over {BAR:.0f}' if max(columns) > BAR else ''), flush=True)
        worst = max(worst, *columns)
    return worst > BAR


sys.exit(main())
