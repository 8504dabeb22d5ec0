"""find-history FILE: writes the history in which bench/find-tasks looks for things.

400 conversations of a programmer, one a day, the same each time. The 20 that are looked for are among them: their
words occur elsewhere, too, one by one. Prints for each task, with tabs between: the id of its session, its day,
what a person types, and the task.
"""

import datetime
import json
import random
import sys

# What is looked for: the task, what a person remembers of it and types, the question, and the answer.
TASKS = [
    ("the talk that suggested exponential backoff", "exponential backoff", "My uploads fail every few minutes. What do I do?",
     "Repeat the request after a pause that doubles each time: exponential backoff, with some random jitter."),
    ("how to undo the last commit and keep the files", "undo commit", "How do I undo the last commit but keep my changes?",
     "`git reset --soft HEAD~1` moves the branch back and leaves the index as it is."),
    ("the nginx setting for large uploads", "nginx body size", "Why does the server answer 413?",
     "nginx refuses bodies over 1 MB; raise `client_max_body_size`, the limit of the body size, to 50m."),
    ("why the goroutines leaked", "goroutine leak", "Memory grows by 10 MB an hour, see the profile.",
     "That is a goroutine leak: each request starts one that waits for ever on an unbuffered channel."),
    ("the regular expression for dates", "regex date", "I need a regex for an ISO date",
     "Use `^[0-9]{4}-[0-9]{2}-[0-9]{2}$` as the regex; it accepts a date like 2026-02-30, too."),
    ("the postgres query that was slow for want of an index", "slow query index", "EXPLAIN shows a sequential scan, why?",
     "The slow query filters by lower(email); create an index on that expression."),
    ("how to mount a disk image", "mount image", "I have a file disk.img with two partitions.",
     "`losetup -P -f --show disk.img`, then mount the second partition of the image read-only."),
    ("what SIGPIPE does to a script", "sigpipe", "Why does my script end when I use head?",
     "head closes the pipe, and the next write raises SIGPIPE, which ends the writer."),
    ("the recipe for sourdough", "sourdough", "Something else: bread without yeast?",
     "For sourdough feed the starter in the evening, and bake after 14 hours."),
    ("the letter to the landlord", "landlord letter", "Write a polite letter to my landlord about the heating.",
     "Dear Ms. Keller, since Monday the heating of our flat has been cold."),
    ("the difference between TCP and QUIC", "quic tcp", "Compare QUIC with TCP for a mobile client.",
     "QUIC keeps the connection when the address changes; TCP has to begin again."),
    ("how to pin a version in apt", "apt pin version", "A new release of the driver broke it. How do I stay with the old one?",
     "Pin the version in /etc/apt/preferences.d with a priority of 1001."),
    ("the bug with daylight saving time", "daylight saving", "The job ran twice on Sunday, in October.",
     "At the end of daylight saving time 02:30 comes twice; run it by UTC."),
    ("the CSS to centre a div", "center div", "How do I center a div in its parent?",
     "`display: grid; place-items: center` on the parent of the div does it."),
    ("how to find which process holds a port", "port in use", "bind: address already in use, who has it?",
     "`ss -ltnp 'sport = :8080'` shows the process that has the port in use."),
    ("the borrow checker error about a mutable reference", "borrow mutable", "error[E0499]: what does it want?",
     "You borrow the map as mutable twice; end the first borrow in a block of its own."),
    ("how kubernetes restarts a pod that is out of memory", "oomkilled pod", "The pod restarts every night.",
     "Its status is OOMKilled: raise the memory limit of the pod, or cut the cache."),
    ("the script that renames photos", "rename photos", "All my photos have names like DSC0001.",
     "Rename the photos by the date they were taken: exiftool '-FileName<DateTimeOriginal' -d %Y%m%d."),
    ("what a bloom filter costs", "bloom filter", "A cheap test whether I have seen a URL?",
     "A bloom filter: ten bits for each URL give one error in a hundred."),
    ("the explanation of a deadlock in the pool", "deadlock pool", "Two workers hang. Here are the stacks.",
     "Both wait for a task that the pool would have to run: a deadlock, since no worker of the pool is free."),
]
SUBJECTS = """the retry of uploads|exponential growth of the log|a backoff in the client|nginx as a proxy|the size of the body
the commit message|a date in the header|regex in sed|the slow build|an index in the table|the query of the report
a leak of file handles|goroutine names|how to mount a share|an image of the logo|pipes in scripts|a letter to the bank
tcp timeouts|the apt cache|a version number|saving a file|daylight in the picture|center of the map|a div with a border
the port of the printer|who borrows a book|mutable state|the pod in the test cluster|renaming a branch|photos of the office
a filter for mail|bloom of the cherry tree|a deadlock in the database|the pool of connections|memory of the worker
undo in the editor|a commit hook|which disk is full|the cache of the compiler|tests that fail on Monday|a table in Markdown""".replace("\n", "|").split("|")
ASK = ["What about {}?", "Can you explain {}?", "I have a problem with {}.", "Is there a better way for {}?", "Look at {} again, please."]
SAY = ["With {} it depends: first measure, then change one thing.", "Most people begin with {} and stop there.",
       "Here is how {} works: a small program reads it and prints what it found.", "That is normal for {}; it can be left as it is.",
       "In short, {} needs a name, a place and an owner."]


def main():
    rng = random.Random(19)
    start = datetime.datetime(2025, 10, 20, 8, tzinfo=datetime.timezone.utc)
    wanted = dict(zip(rng.sample(range(400), len(TASKS)), TASKS))
    count = 0
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        for number in range(400):
            at = start + datetime.timedelta(days=number, minutes=number * 7 % 480)
            session = f"sess_{int(at.timestamp() * 1000)}_{rng.randrange(1 << 24):06x}"
            turns = []
            about = rng.choice(SUBJECTS)
            for _ in range(rng.randrange(2, 7)):
                if rng.random() < 0.2:
                    about = rng.choice(SUBJECTS)
                turns.append((rng.choice(ASK).format(about), " ".join(s.format(about) for s in rng.sample(SAY, 2))))
            if number in wanted:
                task, words, question, answer = wanted[number]
                turns[0] = (question, answer)
                print(session, at.date(), words, task, sep="\t")
            for turn in turns:
                for role, content in zip(("user", "assistant"), turn):
                    count += 1
                    at += datetime.timedelta(seconds=20)
                    line = {"id": f"{int(at.timestamp() * 1000)}-{count:08x}", "session_id": session,
                            "timestamp": at.strftime("%Y-%m-%dT%H:%M:%S.000000+00:00"), "role": role, "content": content}
                    out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


main()
