#!/usr/bin/env python3
"""clients: chat beside other clients on one scripted server

usage: clients.py CHAT [ROUNDS [TOKENS]]

Each round runs every client once, in an order of its own, because a client starts faster after one that
loads the same libraries: CHAT, curl, and llm and aichat if they are on the PATH (or named by the variables
LLM and AICHAT). A server on a loopback port answers with TOKENS (100)
pieces of a stream of OpenAI's chat completions, 4 ms apart. Prints, as medians of ROUNDS (11) in
microseconds, each with its ratio to that of CHAT:

  request  from the start of the client to the first byte of its request
  token    from the sending of a piece to its arrival on the client's standard output
  exit     from the last byte of the stream to the end of the client

curl and aichat store nothing, so `chat -n`, which is chat --no-store, is the client to compare with them. The exit of
chat is later by one fdatasync of the answer; CHAT_FSYNC=0 shows it without.
"""
import json
import os
import random
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PAUSE = 0.004


def chunk(delta, finish=None):
    return b'data: %s\n\n' % json.dumps(
        {'id': 'c', 'object': 'chat.completion.chunk', 'created': 1, 'model': 'm',
         'choices': [{'index': 0, 'delta': delta, 'finish_reason': finish}]}).encode()


def read_request(conn):
    """Reads one request. Returns the time of its first byte."""
    data = conn.recv(65536)
    first = time.monotonic()
    while b'\r\n\r\n' not in data:
        data += conn.recv(65536)
    head, _, body = data.partition(b'\r\n\r\n')
    length = next((int(line.split(b':')[1]) for line in head.split(b'\r\n')
                   if line.lower().startswith(b'content-length:')), 0)
    while len(body) < length:
        body += conn.recv(65536)
    return first


def wait_for(out, token, seen):
    """Reads standard output until it has the token. Returns when it came, or None at the end."""
    while token not in seen:
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            if not selector.select(10):
                return None
        piece = os.read(out.fileno(), 65536)
        if not piece:
            return None
        seen += piece
    return time.monotonic()


def run(listener, command, tokens):
    """One answer. Returns the three times in microseconds."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
    listener.settimeout(30)
    conn, _ = listener.accept()
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    first = read_request(conn)
    conn.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n' +
                 chunk({'role': 'assistant', 'content': ''}))
    seen, delays = bytearray(), []
    for i in range(tokens):
        token = b'token%d.' % i
        time.sleep(PAUSE)
        sent = time.monotonic()
        conn.sendall(chunk({'content': token.decode() + ' '}))
        came = wait_for(child.stdout, token, seen)
        if came is None:
            break
        delays.append(came - sent)
    conn.sendall(chunk({}, 'stop') + b'data: [DONE]\n\n')
    conn.close()
    last = time.monotonic()
    child.stdout.read()
    child.wait()
    ended = time.monotonic()
    if child.returncode or len(delays) < tokens:
        sys.exit(f'{command[0]}: status {child.returncode}, {len(delays)} of {tokens} tokens')
    return [1e6 * (first - start), 1e6 * statistics.median(delays), 1e6 * (ended - last)]


def clients(chat, url, home):
    """The commands, each for this server alone."""
    found = {'chat -n': [chat, '--no-store', '--no-stdin', 'hello'],
             'chat': [chat, '--no-stdin', '-N', '--history', f'{home}/h.jsonl', 'hello'],
             'curl -N': ['curl', '-sN', '--json', '{}', f'{url}/chat/completions']}
    llm = shutil.which(os.environ.get('LLM', 'llm'))
    aichat = shutil.which(os.environ.get('AICHAT', 'aichat'))
    if llm:
        os.environ['LLM_USER_PATH'] = f'{home}/llm'
        os.makedirs(f'{home}/llm')
        with open(f'{home}/llm/extra-openai-models.yaml', 'w') as file:
            file.write(f'- model_id: bench\n  model_name: bench\n  api_base: {url}\n')
        found['llm'] = [llm, '-m', 'bench', '--key', 'k', 'hello']
    if aichat:
        os.environ['AICHAT_CONFIG_DIR'] = f'{home}/aichat'
        os.makedirs(f'{home}/aichat')
        with open(f'{home}/aichat/config.yaml', 'w') as file:
            file.write('model: bench:m\nclients:\n- type: openai-compatible\n  name: bench\n'
                       f'  api_base: {url}\n  api_key: bench\n  models:\n  - name: m\n')
        found['aichat'] = [aichat, 'hello']
    for name, path in ('llm', llm), ('aichat', aichat):
        if not path:
            print(f'{name} is not installed')
    return found


def main():
    chat = os.path.abspath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 11
    tokens = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    with tempfile.TemporaryDirectory() as home, socket.create_server(('127.0.0.1', 0)) as listener:
        url = f'http://127.0.0.1:{listener.getsockname()[1]}/v1'
        os.environ.update(HOME=home, OPENAI_API_KEY='bench', OPENAI_BASE_URL=url, CHAT_MODEL='openai:bench')
        for name in 'CHAT_PROVIDER', 'CHAT_BASE_URL', 'CHAT_API_KEY', 'CHAT_SESSION', 'CHAT_HISTORY':
            os.environ.pop(name, None)
        commands = clients(chat, url, home)
        times = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in random.sample(list(commands.items()), len(commands)):
                times[name].append(run(listener, command, tokens))
    medians = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in times.items()}
    print(f'{"":10}' + ''.join(f'{title:>12} {"ratio":>7}' for title in ('request', 'token', 'exit')))
    for name, row in medians.items():
        print(f'{name:10}' + ''.join(f'{value:12.0f} {value / own:7.2f}'
                                     for value, own in zip(row, medians['chat -n'])))


main()
