#!/usr/bin/env python3
"""roles.py [ROLES [MESSAGES [DIR]]]: 100 roles of one PostgreSQL database, each with a history of 100,000 messages,
push all at once. Prints what that costs; then what a pull and 1,000 new lines of one role cost; then, for ten more
roles whose clients are killed and ten whose connections the server ends, how much their second push sends.

Works in DIR (a new directory below TMPDIR), which needs three times the size of the histories. As root every user
must be able to enter it. BUILD (build/release) has hist-sync and bench/corpus. The server syncs to the disk.
Exit status 1 if a message was lost, sent twice or seen by another role.
"""
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get('BUILD', TOP + '/build/release')
ROLES, MESSAGES = (int(a) for a in (sys.argv[1:3] + ['100', '100000'][len(sys.argv[1:3]):]))
DIR = sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp()
STOPPED = 20    # half of them are killed, the connections of the others are ended
SOCKET = DIR + '/server/socket'
TICK = os.sysconf('SC_CLK_TCK')
ENV = {k: v for k, v in os.environ.items() if not k.startswith(('PG', 'CHAT_', 'XDG_'))} | {'LC_ALL': 'C'}


def sql(text, role='postgres', database='roles'):
    return subprocess.run(['psql', '-qXAt', '-h', SOCKET, '-U', role, '-d', database, '-v', 'ON_ERROR_STOP=1', '-c', text],
                          env=ENV, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def row(name, value, unit=''):
    print(f'{name:60} {value:>14,.{0 if value >= 100 or value == int(value) else 2}f} {unit}', flush=True)


def server_time():
    """Seconds of processor time of the server's processes, those that have ended included."""
    total = 0
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/stat', encoding='ascii') as f:
                stat = f.read().rpartition(')')[2].split()
        except OSError:
            continue
        if int(pid) == SERVER or int(stat[1]) == SERVER:
            total += sum(map(int, stat[11:15] if int(pid) == SERVER else stat[11:13]))
    return total / TICK


class Role:
    def __init__(self, number):
        self.name, self.home = f'role{number}', f'{DIR}/home{number}'
        self.history = self.home + '/h'
        os.mkdir(self.home)

    def write(self, base):
        with open(base, encoding='utf-8') as lines, open(self.history, 'w', encoding='utf-8') as out:
            for line in lines:
                line = re.sub(r'"id": *"', rf'\g<0>{self.name}-', line, count=1)
                out.write(re.sub(r'"session_id": *"', rf'\g<0>{self.name}-', line, count=1))

    def start(self, verb='push', before=(), history=None):
        self.out = open(self.home + '/out', 'w+', encoding='utf-8')
        self.process = subprocess.Popen(
            [*before, BUILD + '/hist-sync', '--json', '--name', 'own', '--history', history or self.history, verb,
             f'postgresql://{self.name}@/roles?host={SOCKET}'], env=ENV | {'HOME': self.home}, stdout=self.out,
            stderr=subprocess.STDOUT)

    def wait(self):
        """Returns the status and what the process used."""
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.out.seek(0)
        self.said = self.out.read()
        return self.process.returncode, used

    def sent(self):
        return json.loads(self.said.split('\n')[0])['sent']

    def pushed(self):
        return int(sql(f"SELECT coalesce(sum(pushed), 0) FROM chathist.cursors WHERE owner = '{self.name}'"))


def run_all(roles):
    """Pushes them at once. Returns the seconds that it took and what the clients used, added and at most."""
    begin, server = time.monotonic(), server_time()
    for r in roles:
        r.start()
    used = []
    for r in roles:
        status, u = r.wait()
        if status != 0:
            sys.exit(f'{r.name}: {status}: {r.said}')
        used.append(u)
    return (time.monotonic() - begin, server_time() - server, sum(u.ru_utime + u.ru_stime for u in used),
            max(u.ru_maxrss for u in used) / 1024)


def resume(stopped):
    """Stops pushes in the middle, repeats them, and compares what the second ones sent."""
    for r in stopped:
        r.start()
    left = {r: MESSAGES * random.uniform(0.1, 0.7) for r in stopped}
    while left:
        for r in list(left):
            if r.pushed() > left[r] or os.waitid(os.P_PID, r.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if stopped.index(r) % 2:
                    sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{r.name}'")
                else:
                    os.kill(r.process.pid, signal.SIGKILL)
                del left[r]
    wrong, count, before, after, length = 0, 0, 0, 0, 0
    for r in stopped:
        if r.wait()[0] == 0:
            continue    # it had ended before
        count += 1
        while sql(f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{r.name}'") != '0':
            time.sleep(0.1)
        done = r.pushed()
        r.start(before=['strace', '-qq', '-e', 'trace=sendto', '-o', r.home + '/trace'])
        again, _ = r.wait()
        with open(r.home + '/trace', encoding='utf-8') as f:
            size = sum(int(n) for n in re.findall(r'= (\d+)$', f.read(), re.M))
        with open(r.history, 'rb') as f:
            rest = sum(map(len, f.readlines()[done:]))
        before, after, length = before + done, after + size, length + rest
        # Beside each line its folded text and its ids are sent.
        if again != 0 or r.sent() != MESSAGES - done or size > 3 * rest + 100000:
            wrong += 1
            print(f'{r.name}: {done} were stored; again: {again}, {size} bytes, {r.said}')
    row(f'{count} more roles, half killed, half disconnected: were stored', before, 'messages')
    row('  sent by their second pushes', MESSAGES * count - before, 'messages')
    row('  bytes of the connection for each byte of these lines', after / length)
    return wrong


def main():
    subprocess.run([BUILD + '/bench/corpus', str(MESSAGES * 1300), DIR + '/all'], check=True)
    with open(DIR + '/base', 'wb') as f:
        subprocess.run(['head', '-n', str(MESSAGES), DIR + '/all'], stdout=f, check=True)
    os.unlink(DIR + '/all')
    sql('CREATE DATABASE roles', database='postgres')
    subprocess.run([BUILD + '/hist-sync', 'init', f'postgresql://postgres@/roles?host={SOCKET}'], env=ENV, check=True)
    roles = [Role(i) for i in range(ROLES + STOPPED)]
    sql(''.join(f'CREATE ROLE {r.name} LOGIN;' for r in roles))
    for r in roles:
        r.write(DIR + '/base')
    stopped, roles = roles[ROLES:], roles[:ROLES]
    count = ROLES * MESSAGES

    took, server, client, memory = run_all(roles)
    row(f'{ROLES} roles push {MESSAGES} messages each, at once', took, 's')
    row('  messages in a second', count / took)
    row('  processor time of the server, for a million', server * 1e6 / count, 's')
    row('  processor time of the clients, for a million', client * 1e6 / count, 's')
    row('  memory of a client, at most', memory, 'MiB')
    row('  the lines, for a message', sum(os.path.getsize(r.history) for r in roles) / count, 'bytes')
    row('  the database, for a message', int(sql("SELECT pg_database_size('roles')")) / count, 'bytes')

    wrong = 0
    for r in roles:
        seen = sql("SELECT count(*), count(*) FILTER (WHERE owner <> current_user) FROM chathist.messages", r.name)
        wrong += seen != f'{MESSAGES}|0'
    wrong += int(sql('SELECT count(*) FROM chathist.messages')) != count
    row('roles that see another number of messages than their own', wrong)

    one = roles[ROLES // 2]
    begin = time.monotonic()
    one.start('pull', history=one.home + '/pulled')
    status, used = one.wait()
    row(f'one of them pulls into an empty history', time.monotonic() - begin, 's')
    row('  memory', used.ru_maxrss / 1024, 'MiB')
    texts = [sorted(open(f, 'rb').readlines()) for f in (one.history, one.home + '/pulled')]
    wrong += status != 0 or texts[0] != texts[1]
    with open(one.history, 'ab') as f:
        f.writelines(re.sub(rb'"id": *"', rb'\g<0>new-', line, count=1) for line in texts[0][:1000])
    for name, new in (('1,000 new lines of one role', 1000), ('nothing new', 0)):
        begin = time.monotonic()
        one.start()
        status, _ = one.wait()
        row(name, time.monotonic() - begin, 's')
        wrong += status != 0 or one.sent() != new

    wrong += resume(stopped)
    wrong += int(sql('SELECT count(*) FROM chathist.messages')) != count + len(stopped) * MESSAGES + 1000
    print('nothing was lost, sent twice or seen by another role' if wrong == 0 else f'{wrong} wrong')
    return wrong != 0


resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
os.makedirs(DIR, exist_ok=True)
os.chmod(DIR, 0o755)
with subprocess.Popen([TOP + '/tests/tools/postgres', DIR + '/server', *(f'-c{o}' for o in (
        'fsync=on', 'full_page_writes=on', f'max_connections={ROLES + STOPPED + 10}', 'shared_buffers=1GB',
        'max_wal_size=8GB'))], stdout=subprocess.PIPE, text=True) as postgres:
    try:
        if postgres.stdout.readline() != 'ready\n':
            sys.exit('the server does not start')
        with open(DIR + '/server/data/postmaster.pid', encoding='ascii') as pid:
            SERVER = int(pid.readline())
        failed = main()
    finally:
        postgres.terminate()
        postgres.wait()
shutil.rmtree(DIR)
sys.exit(failed)
