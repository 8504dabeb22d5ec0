"""For bench/scale.sh: TMP OUT ROUNDS SIZE..."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys

TMP, OUT, ROUNDS, SIZES = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
BUILD, BIN = os.environ['BUILD'], os.environ['BIN']
RARE, COMMON, NONE = 'zanzibarquartz', 'because', 'retentively'
SEARCHES = 32  # each for a rare word adds a part of the history to the skip index
FTS_MOST = 10**8   # it takes minutes, and twice the size
UNITS = {'K': 10**3, 'M': 10**6, 'G': 10**9}


def bytes_of(size):
    return int(size[:-1]) * UNITS[size[-1]]


class Row:
    """A command at each size."""

    def __init__(self, name, argv, most='1T', rounds=None, prepare=None, alone=False, count=None):
        self.name, self.argv, self.count = name, argv, count
        # Larger histories would take too long.
        self.most = 10**12 if most == '1T' else bytes_of(most)
        self.rounds = rounds or ROUNDS
        # Done before each run, untimed; such a run is not in turns with others.
        self.prepare = prepare
        self.alone = alone or prepare is not None
        self.cost = {}      # by size: (ms, KiB)


class Place:
    """A history of one size, and what belongs to it."""

    def __init__(self, size):
        self.size = size
        self.dir = os.path.join(TMP, size)
        os.mkdir(self.dir)
        self.history = self.path('history')
        subprocess.run([f'{BUILD}/bench/corpus', size, self.history], check=True)
        # Each program that writes gets a separate copy.
        self.grown = self.path('grown')
        shutil.copy(self.history, self.grown)
        # Searches of the first one read all of it, those of this one what its skip index leaves.
        os.mkdir(self.history + '.skip')
        self.searched = self.path('searched')
        shutil.copy(self.history, self.searched)
        for _ in range(SEARCHES):
            subprocess.run([f'{BIN}/hist-search', '-c', RARE, '--history', self.searched],
                           stdout=subprocess.DEVNULL, check=False)  # status 1: no match
        listed = self.said(f'{BIN}/hist-sessions', '--limit', 'all', '--history', self.history)
        self.session = listed.split('\n')[listed.count('\n') // 2].split('\t')[0]
        self.said(f'{BIN}/hist-sessions', '--history', self.grown)

    def path(self, name):
        return os.path.join(self.dir, name)

    @staticmethod
    def said(*argv):
        return subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True,
                              stdin=subprocess.DEVNULL).stdout

    def words(self, argv):
        names = {'HISTORY': self.history, 'GROWN': self.grown, 'SEARCHED': self.searched, 'SESSION': self.session,
                 'DB': self.path('db'), 'COPY': self.path('copy'), 'NEW': self.path('new'), 'OUT': self.path('out')}
        return [names.get(word, word) for word in argv]

    def fresh_copy(self):
        for name in ('copy', 'copy.idx', 'copy.skip', 'copy.session'):
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))
        shutil.copy(self.history, self.path('copy'))

    def fresh_new(self):
        for name in os.listdir(self.dir):
            if name.startswith('new'):
                os.unlink(self.path(name))

    def make_db(self):
        db = sqlite3.connect(self.path('db'))
        db.execute('create table message (content text)')
        with open(self.history, 'rb') as file:
            db.executemany('insert into message values (?)',
                           ((json.loads(line)['content'],) for line in file))
        if bytes_of(self.size) <= FTS_MOST:
            db.execute("create virtual table word using fts5 (content, tokenize='trigram')")
            db.execute('insert into word select content from message')
        db.commit()
        db.close()


def search(*argv):
    return [f'{BIN}/hist-search', '--history', 'HISTORY', *argv]


def program(name, *argv, history='HISTORY'):
    return [f'{BIN}/{name}', '--history', history, *argv]


def into_file(name, *argv):
    return ['sh', '-c', 'exec "$@" >"$0"', 'OUT', *program(name, *argv)]


def rows():
    found = [
        Row('does nothing', [f'{BUILD}/bench/nothing']),
        Row('floor', [f'{BUILD}/bench/floor', 'HISTORY']),
        Row('hist-search -c, rare, 1 thread', search('-j', '1', '-c', RARE), count=RARE),
        Row('hist-search -c, rare, 2 threads', search('-j', '2', '-c', RARE), count=RARE),
        Row('hist-search -c, common, 1 thread', search('-j', '1', '-c', COMMON), count=COMMON),
        Row('hist-search -c, none, 1 thread', search('-j', '1', '-c', NONE), count=NONE),
        Row('hist-search -c, rare, skip index', program('hist-search', '-j', '1', '-c', RARE, history='SEARCHED'),
            count=RARE),
        Row('hist-search -c, none, skip index', program('hist-search', '-j', '1', '-c', NONE, history='SEARCHED'),
            count=NONE),
        Row('hist-search --limit 1, rare', search('--limit', '1', RARE)),
        Row('hist-search -E -c, rare', search('-E', '-c', 'zanz+ibarquart[z]'), rounds=3, count=RARE),
        Row('rg -iF -c, rare', ['rg', '-j1', '-iF', '-c', RARE, 'HISTORY'], count=RARE),
        Row('rg -iF -c, common', ['rg', '-j1', '-iF', '-c', COMMON, 'HISTORY'], count=COMMON),
        Row('rg -iF -c, none', ['rg', '-j1', '-iF', '-c', NONE, 'HISTORY'], count=NONE),
        # Writing to /dev/null it would stop at the first match.
        Row('grep -iF -c, rare', ['sh', '-c', f'grep -iF -c {RARE} "$1" | cat', 'sh', 'HISTORY'],
            rounds=5, count=RARE),
        Row('jq, rare', ['jq', '-n', '[inputs | select(.content | ascii_downcase | '
                         f'contains("{RARE}"))] | length', 'HISTORY'],
            most='10M', rounds=1, count=RARE),
        Row('sqlite3 LIKE, rare', ['sqlite3', 'DB', 'select count(*) from message where content '
                                   f"like '%{RARE}%'"], rounds=5, count=RARE),
        Row('sqlite3 FTS5, rare', ['sqlite3', 'DB', "select count(*) from word where word match "
                                   f"'{RARE}'"], most='100M', count=RARE),
        Row('hist-sessions --limit 50', program('hist-sessions', '--limit', '50')),
        Row('hist-sessions --limit all', program('hist-sessions', '--limit', 'all')),
        Row('hist-load of a session', program('hist-load', '-q', 'SESSION')),
        Row('hist-show last', program('hist-show', 'last')),
        Row('hist-new', program('hist-new', history='GROWN')),
        Row('hist-append', program('hist-append', 'a line', history='GROWN')),
        Row('chat (echo), a turn', program('chat', '--no-stdin', 'hello', history='GROWN')),
        Row('hist-stats', program('hist-stats'), rounds=3),
        Row('hist-check', program('hist-check'), rounds=3),
        Row('cp', ['cp', 'HISTORY', 'OUT'], rounds=3),
        Row('hist-export -f jsonl', into_file('hist-export', '--all-sessions', '-f', 'jsonl'), rounds=3),
        Row('hist-export -f md', into_file('hist-export', '--all-sessions', '-f', 'md'), rounds=3),
        Row('hist-export -f html', into_file('hist-export', '--all-sessions', '-f', 'html'), rounds=3),
        Row('hist-import of our lines', program('hist-import', '-q', 'HISTORY', history='NEW'),
            rounds=3, prepare=Place.fresh_new),
        Row('hist-delete of a session', program('hist-delete', '-q', '--force', 'SESSION',
                                                history='COPY'),
            rounds=3, prepare=Place.fresh_copy),
    ]
    return [row for row in found if ('/' in row.argv[0] or shutil.which(row.argv[0]))
            and re.search(os.environ.get('ROWS', ''), row.name)]


def timed(commands, rounds):
    """(ms, KiB) of each."""
    argv = [f'{BUILD}/bench/spawn', '-m', str(rounds), '1']
    for i, command in enumerate(commands):
        argv += ['--'] * (i > 0) + command
    lines = Place.said(*argv).strip().split('\n')
    return [(float(line.split()[0]) / 1000, int(line.split()[1])) for line in lines]


def check_counts(place, asked):
    counts = {}
    for row in asked:
        got = subprocess.run(place.words(row.argv), stdout=subprocess.PIPE, text=True, check=False)
        counts.setdefault(row.count, {})[row.name] = got.stdout.strip() or '0'
    for word, by in counts.items():
        if len(set(by.values())) > 1:
            print(f'bench/scale.sh: {place.size}: counts of "{word}" differ: {by}', file=sys.stderr)
            sys.exit(2)


def measure(place, all_rows):
    rows_here = [row for row in all_rows if bytes_of(place.size) <= row.most]
    if any('DB' in row.argv for row in rows_here):
        place.make_db()
    check_counts(place, [row for row in rows_here if row.count])
    for rounds in sorted({row.rounds for row in rows_here}):
        together = [row for row in rows_here if row.rounds == rounds and not row.alone]
        if together:
            commands = [place.words(row.argv) for row in together]
            for row, cost in zip(together, timed(commands, rounds)):
                row.cost[place.size] = cost
    for row in rows_here:
        if row.alone:
            runs = []
            for _ in range(row.rounds):
                row.prepare(place)
                runs += timed([place.words(row.argv)], 1)
            row.cost[place.size] = sorted(runs)[len(runs) // 2]
    shutil.rmtree(place.dir)


def number(value):
    return f'{value:,.2f}' if value < 10 else f'{value:,.0f}'


def table(all_rows):
    largest = SIZES[-1]
    floor = next(row for row in all_rows if row.name == 'floor').cost[largest][0]
    lines = ['| ms | ' + ' | '.join(SIZES) + f' | x floor | growth | MiB at {largest} |',
             '|---|' + '--:|' * (len(SIZES) + 3)]
    for row in all_rows:
        ms = [row.cost[size][0] if size in row.cost else None for size in SIZES]
        cells = [number(value) if value is not None else '' for value in ms]
        whole = ms[-1] is not None
        cells.append(f'{ms[-1] / floor:.2f}' if whole else '')
        cells.append(f'{ms[-1] / ms[0]:.1f}' if whole and len(SIZES) > 1 else '')
        cells.append(number(row.cost[largest][1] / 1024) if whole else '')
        lines.append(f'| {row.name} | ' + ' | '.join(cells) + ' |')
    return '\n'.join(lines) + '\n'


PLOTTED = ['does nothing', 'floor', 'hist-search -c, rare, 1 thread', 'hist-search -c, rare, skip index',
           'hist-search --limit 1, rare', 'rg -iF -c, rare', 'grep -iF -c, rare', 'jq, rare', 'sqlite3 LIKE, rare',
           'hist-sessions --limit 50', 'hist-load of a session', 'chat (echo), a turn', 'hist-check',
           'hist-delete of a session']


def plot(all_rows):
    """Milliseconds over size, both logarithmic."""
    import math
    width, height, left, top, right = 640, 440, 80, 20, 230
    sizes = [bytes_of(size) for size in SIZES]
    chosen = [row for row in all_rows if row.name in PLOTTED and row.cost]
    low = math.floor(math.log10(min(c[0] for row in chosen for c in row.cost.values())))
    high = math.ceil(math.log10(max(c[0] for row in chosen for c in row.cost.values())))

    def x(size):
        span = math.log10(sizes[-1] / sizes[0]) or 1
        return left + width * math.log10(size / sizes[0]) / span

    def y(ms):
        return top + height * (high - math.log10(ms)) / (high - low)

    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + right}" '
           f'height="{top + height + 40}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>']
    for power in range(low, high + 1):
        label = f'{10.0 ** power:g} ms'
        svg.append(f'<path d="M{left} {y(10.0 ** power):.1f}h{width}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{y(10.0 ** power) + 4:.1f}" text-anchor="end">{label}</text>')
    for size, name in zip(sizes, SIZES):
        svg.append(f'<text x="{x(size):.1f}" y="{top + height + 20}" text-anchor="middle">{name}</text>')
    ends = []
    for i, row in enumerate(chosen):
        points = [(x(bytes_of(size)), y(row.cost[size][0])) for size in SIZES if size in row.cost]
        color = f'hsl({i * 360 // len(chosen)} 70% 40%)'
        path = ' '.join(f'{px:.1f},{py:.1f}' for px, py in points)
        svg.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        ends.append([points[-1][1], row.name, color])
    at = 0
    for py, name, color in sorted(ends):
        at = max(py + 4, at + 14)
        svg.append(f'<text x="{left + width + 8}" y="{at:.1f}" fill="{color}">{name}</text>')
    return '\n'.join(svg + ['</svg>']) + '\n'


def main():
    all_rows = rows()
    for size in SIZES:
        measure(Place(size), all_rows)
    text = table(all_rows)
    print(text, end='')
    for name, content in ('scale.md', text), ('scale.svg', plot(all_rows)):
        with open(os.path.join(OUT, name), 'w', encoding='utf-8') as file:
            file.write(content)


main()
