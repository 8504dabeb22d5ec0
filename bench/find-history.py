"""find-history FILE [remembered]: writes the history in which bench/find-tasks looks for things.

400 conversations of a programmer, one a day, the same each time. The 20 that are looked for, or the 25 that are
remembered as people do, also wrongly, are among them: their words occur elsewhere, too, one by one. Prints for each
task, with tabs between: the id of its session, its day, what a person types, and the task.
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
# The queries of a person who found 20 of these 25 with the first version of the box.
REMEMBERED = [
    ("the talk that suggested exponential backoff", "exponential backoff", "My uploads fail every few minutes. What do I do?",
     "Repeat the request after a pause that doubles each time: exponential backoff, with some random jitter."),
    ("why the goroutines leaked", "goroutine leak", "Memory grows by 10 MB an hour, see the profile.",
     "That is a goroutine leak: each request starts one that waits for ever on an unbuffered channel."),
    ("the pod that was killed at night", "oomkill night", "The worker restarts every night at two.",
     "The kernel's OOMKill took it: the nightly report needs more memory than its limit."),
    ("the decision between two protocols", "grpc vs rest", "Which protocol between the two services?",
     "gRPC has the schema and streams; REST is what the browser can call. For the rest use gRPC inside."),
    ("how keys for tokens are changed", "jwt key rotation", "How do I change the signing key without logging everybody out?",
     "Publish both keys, sign new JWT with the second one, and end the rotation after the longest lifetime."),
    ("the tests that took nine minutes", "slow tests makefile", "The tests take 9 minutes, look at the Makefile.",
     "They run one after the other: -j4 in the Makefile, and the three that sleep first."),
    ("the race between two signals", "hapens before", "Is this read allowed to see the old value?",
     "Yes: nothing happens before it that publishes the write; use an atomic with release order."),
    ("which status to send when busy", "429 or 503", "What do I answer when the queue is full?",
     "429 if this client sent too much, 503 if the service is overloaded whoever asks."),
    ("the record about paging", "cursor pagination adr", "Write an ADR: how do we page through orders?",
     "Decision: pagination with an opaque cursor, because offsets shift while rows are added."),
    ("the cart that flickers", "cart flicker", "The cart shows zero and then three items.",
     "The flicker comes from the first render without the stored cart: read it before mounting."),
    ("the emoji in the shop", "emoji out of stock", "Products with an emoji in the name are out of stock.",
     "The import counts bytes: an emoji has four, so that the row is cut and the stock is 0."),
    ("the yellow fields", "safari autofill yellow", "Fields turn yellow in Safari only.",
     "That is the colour of autofill: set box-shadow inset for :-webkit-autofill."),
    ("the page that scrolls behind the menu", "overscroll", "The page behind the menu moves, too.",
     "overscroll-behavior: contain on the menu."),
    ("the flag of the new checkout", "newCheckout checkoutV2", "Which flag turns it on?",
     "newCheckout in staging, checkoutV2 in production; remove the first one."),
    ("the size of the bundle", "bundle size d3", "The first page loads 900 kB.",
     "Import only d3-scale and d3-shape: the bundle loses 240 kB, a quarter of its size."),
    ("the German question about centring", "div zentrieren", "Wie zentriere ich ein div in seinem Vater?",
     "Mit display: grid und place-items: center auf dem Vater."),
    ("wide and narrow letters", "全角 半角", "全角の英数字を半角にしたい", "NFKC で正規化すると全角の英数字は半角になります。"),
    ("the bars of the plot", "bootstrap error bars", "How do I get intervals without a normal distribution?",
     "Resample: 2,000 bootstrap samples, the 2.5 and 97.5 percentiles are the ends of the error bars."),
    ("the box that is too full", "overfull hbox", "TeX says Overfull \\hbox (12pt too wide).",
     "Allow a break in the long name with \\allowbreak, or rephrase the line."),
    ("what not to write of p-values", "marginally significant", "The reviewer dislikes a sentence of mine.",
     "Do not write marginally significant: give p = 0.06 and the interval."),
    ("the French abstract", "resume francais abstract", "Traduis l'abstract en français, s'il te plaît.",
     "Résumé : nous étudions la mémoire des files d'attente sous une charge variable."),
    ("the join that doubles rows", "left_join duplicate rows", "After left_join I have more rows than before.",
     "The key is not unique on the right: a duplicate there repeats the rows of the left."),
    ("the words for grandma", "dedication grandma", "I want to thank my grandma at the beginning.",
     "A dedication of one line: For Rosa, who asked every Sunday whether it is finished."),
    ("the export of the bibliography", "zotero online bibtex", "How does the bibliography get to the others?",
     "Zotero exports BibTeX by itself if the library is online and the plug-in keeps it updated."),
    ("the price from right to left", "shekel bdi", "The price stands on the wrong side of the name.",
     "Wrap the name in <bdi>: the shekel sign then stays with its number."),
]
SUBJECTS = """the retry of uploads|exponential growth of the log|a backoff in the client|nginx as a proxy|the size of the body
the commit message|a date in the header|regex in sed|the slow build|an index in the table|the query of the report
a leak of file handles|goroutine names|how to mount a share|an image of the logo|pipes in scripts|a letter to the bank
tcp timeouts|the apt cache|a version number|saving a file|daylight in the picture|center of the map|a div with a border
the port of the printer|who borrows a book|mutable state|the pod in the test cluster|renaming a branch|photos of the office
a filter for mail|bloom of the cherry tree|a deadlock in the database|the pool of connections|memory of the worker
undo in the editor|a commit hook|which disk is full|the cache of the compiler|tests that fail on Monday|a table in Markdown""".replace("\n", "|").split("|")
MORE = """the rest of the night|an error before the backup|how a test makes rows|abstract classes|online tests
duplicate keys|the size of a row|what happens in between|key bindings|a slow query|stock photos""".replace("\n", "|").split("|")
ASK = ["What about {}?", "Can you explain {}?", "I have a problem with {}.", "Is there a better way for {}?", "Look at {} again, please."]
SAY = ["With {} it depends: first measure, then change one thing.", "Most people begin with {} and stop there.",
       "Here is how {} works: a small program reads it and prints what it found.", "That is normal for {}; it can be left as it is.",
       "In short, {} needs a name, a place and an owner."]


def main():
    rng = random.Random(19)
    start = datetime.datetime(2025, 10, 20, 8, tzinfo=datetime.timezone.utc)
    remembered = "remembered" in sys.argv
    tasks, subjects = (REMEMBERED, SUBJECTS + MORE) if remembered else (TASKS, SUBJECTS)
    wanted = dict(zip(rng.sample(range(400), len(tasks)), tasks))
    count = 0
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        for number in range(400):
            at = start + datetime.timedelta(days=number, minutes=number * 7 % 480)
            session = f"sess_{int(at.timestamp() * 1000)}_{rng.randrange(1 << 24):06x}"
            turns = []
            about = rng.choice(subjects)
            for _ in range(rng.randrange(2, 7)):
                if rng.random() < 0.2:
                    about = rng.choice(subjects)
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
