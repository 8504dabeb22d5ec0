"""oracles: what the oracles of this folder share, which compare programs with a few lines of Python on random histories"""

import os
import random
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
