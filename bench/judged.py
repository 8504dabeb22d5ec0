#!/usr/bin/env python3
"""judged: how often the wanted session is among the first five, for queries as people remember

usage: judged.py [--list] [--box] HIST_SEARCH

bench/judged.tsv holds 100 conversations and, for each, two queries of a person who wants it again. 59 of
the second ones are wrong by a letter, have a word in another form, or lack an accent. They lie among 3,000 other conversations of the last 400 days, in the histories of five repositories. The
others are made here of the words below, which are the subjects of the 100 and of work like theirs, so
that most words of a query stand in many sessions, also newer ones. No other session has the text of a
wanted one.

Each query is given to
  message     hist-search -l --sort=best --query QUERY: the words in one message
  session     hist-search -l --in-session --query QUERY: the words in one session
  nearly      the same with --nearly: if no session has all words, one may be missing
  box         what the box of hist-browse, /search and the HTML page do: message; if that finds nothing, nearly
  grep        grep -iF over the lines, with the words of the query in their order
  grep words  one grep -iF after the other, one for each word: all words in one line
  fzf         fzf --filter over the lines, the best ones first
All of them search all five histories. The last three get the values of file:, tool: and model: as
words, because the lines hold them, and not since:, which they cannot do. For each program the sessions
are taken in the order in which it gives them, for grep the newest first as in hist-search, and a query
counts if the wanted one is among the first five.

--list also prints the queries that were not found; --box leaves out what the box does not need. Exit status 1
if the box finds fewer than 190 of the 200.
"""

import datetime
import json
import os
import random
import re
import subprocess
import sys
import tempfile

FIRST = 5
OTHERS = 3000
REPOSITORIES = ['alpha', 'webshop', 'thesis', 'home', 'infra']
MODELS = ['claude-opus-4', 'claude-sonnet-4-5', 'gpt-5', 'gpt-5-mini']
TOOLS = ['bash', 'read_file', 'edit_file', 'web_search']

TECHNOLOGY = """nginx postgres docker redis terraform kubernetes ansible grafana prometheus haproxy ssh git make gcc gdb
valgrind bats python ruby javascript css latex matplotlib dplyr zfs rsync vault etcd certbot systemd""".split()
THINGS = """retry backoff timeout cache index migration certificate log header buffer parser tokenizer queue lock stack
leak pool hash table file title test pipe regex address session cookie price order cart invoice mail photo backup disk
image memory alert panel latency p99 policy secret cluster node ticket dns column row page figure legend bibliography
paragraph sample household survey interview abstract recipe birthday letter contract printer light roof week name
upload path signal interrupt socket websocket webhook token limit default database connection""".split()
ACTIONS = """configure rotate rename delete shorten explain test measure cache log parse move split merge translate
describe retry restart upgrade find compare sort group encrypt restore print copy check""".split()
TROUBLES = ['fails', 'hangs', 'is slow', 'loops forever', 'is empty', 'is killed', 'leaks memory', 'prints nothing',
            'is refused', 'is wrong', 'vanishes at night', 'doubles', 'jumps', 'never stops', 'is not ready']
QUESTIONS = ['How do I {act} the {thing} in {tech}?', 'Why does the {thing} of {tech} say that it {trouble}?',
             'The {thing} {trouble} when I {act} the {thing2}', 'Explain the {thing} and the {thing2} of {tech}',
             'Write a script that can {act} every {thing}', 'Is it safe to {act} the {thing} with {tech}?',
             'Can {tech} {act} a {thing} without the {thing2}?', 'What is a good {thing} for the {thing2}?']
ANSWERS = ['Set the {thing} before the {thing2}; {tech} can {act} it then.', 'The {thing} {trouble} because of the {thing2}.',
           'Yes: {act} the {thing} first, then look at the {thing2} of {tech}.', 'I changed the {thing}; the {thing2} stays.',
           'Do not {act} it. Use the {thing2} of {tech} and a smaller {thing}.', 'It depends on the {thing} and on {tech}.']


def when(days, seconds):
    start = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=days)
    return (start + datetime.timedelta(seconds=seconds)).strftime('%Y-%m-%dT%H:%M:%S.000000+00:00')


class Histories:
    """The lines of all repositories; each session is a list of them."""

    def __init__(self):
        self.lines = []

    def add(self, session, repository, days, model, messages):
        for n, (role, content, more) in enumerate(messages):
            line = {'id': f'{session}-{n}', 'session_id': session, 'timestamp': when(days, 20 * n), 'role': role,
                    'content': content, **more}
            if role == 'assistant':
                line.update(model=model, provider='anthropic' if model.startswith('claude') else 'openai')
            self.lines.append((line['timestamp'], repository, json.dumps(line, ensure_ascii=False)))

    def write(self, folder):
        """Returns the files, the last written one first."""
        self.lines.sort()
        newest = {}
        for stamp, repository, _ in self.lines:
            newest[repository] = stamp
        for repository in newest:
            os.makedirs(os.path.join(folder, repository))
            with open(os.path.join(folder, repository, 'history.jsonl'), 'w', encoding='utf-8') as out:
                out.writelines(line + '\n' for _, r, line in self.lines if r == repository)
        return [os.path.join(folder, r, 'history.jsonl') for r in sorted(newest, key=newest.get, reverse=True)]


def calls(file, tool):
    if tool == '-':
        return []
    args = {'path': file} if file != '-' else {'command': 'true'}
    call = {'tool_calls': [{'id': 'c1', 'name': tool, 'args': args}]}
    return [('assistant', '', call), ('tool', 'ok', {'tool_call_id': 'c1'})]


def add_others(histories, r):
    def sentence(forms):
        thing, thing2 = r.sample(THINGS, 2)
        return r.choice(forms).format(thing=thing, thing2=thing2, act=r.choice(ACTIONS), tech=r.choice(TECHNOLOGY),
                                      trouble=r.choice(TROUBLES))

    for n in range(OTHERS):
        messages = []
        for _ in range(r.choice([1, 1, 2, 3, 5])):
            messages.append(('user', sentence(QUESTIONS), {}))
            if r.random() < 0.4:
                messages += calls(f'src/{r.choice(THINGS)}.{r.choice(["c", "py", "rb", "conf", "yml"])}', r.choice(TOOLS))
            messages.append(('assistant', ' '.join(sentence(ANSWERS) for _ in range(r.randint(1, 4))), {}))
        histories.add(f'other-{n:04}', r.choice(REPOSITORIES), r.random() * 400, r.choice(MODELS), messages)


def read_talks(path):
    with open(path, encoding='utf-8') as lines:
        for line in lines:
            if not line.startswith('#'):
                yield line.strip().split(' | ')


def words_of(query):
    """The words that a program without fields can use."""
    words = []
    for term in query.split():
        field, colon, value = term.partition(':')
        if not colon:
            words.append(term)
        elif field in ('file', 'tool', 'model'):
            words.append(value)
    return words


def run(command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False).stdout


def sessions(lines):
    found = {}
    for line in lines:
        match = re.search(r'"session_id": "([^"]*)"', line)
        if match:
            found.setdefault(match[1])
    return list(found)


class Programs:
    def __init__(self, program, files):
        self.program = program
        self.files = [part for file in files for part in ('--history', file)]
        self.lines = []
        for file in files:
            with open(file, encoding='utf-8') as text:
                self.lines += reversed(text.read().splitlines())

    def ours(self, query, *options):
        out = run([self.program, *self.files, '-l', *options, '--query', query])
        return [line.split('\t')[0] for line in out.splitlines()]

    def grep(self, words):
        found = '\n'.join(self.lines)
        for word in words:
            found = run(['grep', '-iF', '--', word], found)
        return sessions(found.splitlines())

    def fzf(self, words):
        return sessions(run(['fzf', '-i', '--filter', ' '.join(words)], '\n'.join(self.lines)).splitlines())

    def all(self, query, box_alone):
        words = words_of(query)
        message = self.ours(query, '--sort=best')
        nearly = [] if box_alone and message else self.ours(query, '--sort=best', '--in-session', '--nearly')
        if box_alone:
            return {'box': message or nearly}
        return {
            'message': message,
            'session': self.ours(query, '--in-session'),
            'nearly': nearly,
            'box': message or nearly,
            'grep': self.grep([' '.join(words)]),
            'grep words': self.grep(words),
            'fzf': self.fzf(words),
        }


def main():
    wanted = list(read_talks(os.path.join(os.path.dirname(__file__), 'judged.tsv')))
    histories = Histories()
    add_others(histories, random.Random(19))
    for n, (days, repository, model, file, tool, question, answer, *_) in enumerate(wanted):
        messages = [('user', question, {}), *calls(file, tool), ('assistant', answer, {}), ('user', 'Thanks!', {})]
        histories.add(f'wanted-{n:03}', repository, int(days) - 0.5, model, messages)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(os.path.abspath(sys.argv[-1]), histories.write(folder))
        for query, n in [(talk[which], n) for which in (-2, -1) for n, talk in enumerate(wanted)]:
            for name, ids in programs.all(query, '--box' in sys.argv).items():
                good = f'wanted-{n:03}' in ids[:FIRST]
                found.setdefault(name, []).append(good)
                if '--list' in sys.argv and not good and name in ('message', 'session', 'nearly', 'box'):
                    print(f'{name}: {query}: {len(ids)} sessions, the wanted one is '
                          f'{ids.index(f"wanted-{n:03}") + 1 if f"wanted-{n:03}" in ids else "not among them"}')
    for name, good in found.items():
        print(f'{name:10} {sum(good):3} of {len(good)}, {sum(good[:len(wanted)])} of the first queries')
    return int(sum(found['box']) < 0.95 * len(found['box']))


sys.exit(main())
