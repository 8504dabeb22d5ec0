/*
 * search - looks for the messages that match a query, in slices, so that the page answers meanwhile.
 *
 * The newest comes first. Only the last search that was begun reports; one that it overtook stops in
 * silence.
 */
class Search {
    static SLICE = 8; /* milliseconds of work before the browser gets a turn */

    /* batches() gives arrays of messages, each with the newest first: objects with text, role and what
     * Query.newestFirst compares. A search ends when it has `most` hits. */
    constructor(batches, most) {
        this.batches = batches;
        this.most = most;
        this.running = 0;
    }

    stop() {
        this.running++;
    }

    /* report(hits, done, lack, forms) is called after each slice with all that was found until then. If no message
     * holds everything, the hits are in the end those of sessions that do, with `lack` 0, or 1 if they
     * hold all words but one. `forms` is what Forms.find has found, if that was asked in place of the query. */
    async run(query, wanted, report) {
        const run = ++this.running;
        let asked = query;
        let forms = null;
        let hits = [];
        let held = new Map();
        const scan = async (see) => {
            let until = performance.now() + Search.SLICE;
            for await (const batch of this.batches()) {
                if (run !== this.running) return false;
                for (const message of batch) {
                    if (wanted(message) && see(message) === Forms.ENOUGH) return true;
                    if (performance.now() < until) continue;
                    report(asked.best(hits), false, undefined, forms);
                    await Search.pause();
                    if (run !== this.running) return false;
                    until = performance.now() + Search.SLICE;
                }
            }
            return true;
        };
        /* Resolves to null if the search was overtaken, else to whether something was found, which it reports. */
        const ask = async () => {
            hits = [];
            held = new Map();
            const add = (message) => (hits.push(message) >= this.most ? Forms.ENOUGH : null);
            if (!await scan((message) => asked.matches(message) && add(message))) return null;
            hits.sort(Query.newestFirst);
            if (hits.length) report(asked.best(hits), true, undefined, forms);
            if (hits.length || !asked.helpsInSession(0)) return hits.length > 0;
            if (!await scan((message) => asked.look(message, held))) return null;
            const all = asked.together(held, 0);
            if (all.length) report(all, true, 0, forms);
            return all.length > 0;
        };
        let found = await ask();
        if (found !== false) return;
        forms = await Forms.find(query, true, scan);
        if (forms === false) return;
        if (forms) {
            asked = forms.query;
            found = await ask();
        }
        if (found === false) report(asked.helpsInSession(1) ? asked.together(held, 1) : [], true, 1, forms);
    }

    static pause() {
        if (globalThis.scheduler?.yield) return scheduler.yield();
        return new Promise((resolve) => setTimeout(resolve));
    }

    /* What is round the first match in these texts, on one line, as [text, is it a match] pairs. */
    static snippet(texts, query) {
        const text = query.any && texts.find((one) => one.search(query.any) >= 0);
        if (!text) return [[texts[0].slice(0, 160), false]];
        const first = text.search(query.any);
        const from = first > 50 ? first - 40 : 0;
        const part = (from > 0 ? '…' : '') + text.slice(from, first + 180).toWellFormed();
        const pieces = [];
        let at = 0;
        for (const match of part.matchAll(query.any)) {
            pieces.push([part.slice(at, match.index), false], [match[0], true]);
            at = match.index + match[0].length;
        }
        pieces.push([part.slice(at), false]);
        return pieces;
    }

    /* Where the words of a query stand in what an element shows, also across its elements. */
    static ranges(element, query) {
        if (!query.any) return [];
        const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
        const nodes = [];
        const starts = [];
        let text = '';
        while (walker.nextNode()) {
            nodes.push(walker.currentNode);
            starts.push(text.length);
            text += walker.currentNode.data;
        }
        const ranges = [];
        let n = 0;
        const place = (offset) => {
            while (n + 1 < nodes.length && starts[n + 1] <= offset) n++;
            return [nodes[n], offset - starts[n]];
        };
        for (const match of text.matchAll(query.any)) {
            const range = new Range();
            range.setStart(...place(match.index));
            const [last, offset] = place(match.index + match[0].length - 1);
            range.setEnd(last, offset + 1);
            ranges.push(range);
        }
        return ranges;
    }
}
