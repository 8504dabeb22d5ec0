/*
 * query - the language in which people say what they look for, as in hist-search --query
 * (chathist/search/query.h has its rules). tests/fixtures/query has cases for both.
 *
 * A term is { field, value, not }; a word or phrase has the field 'words' and an expression, and `word`, which is
 * empty if it has quotes or is an expression itself. `at` and `n` say where it is in the query.
 */
class QueryError extends Error {}

class Query {
    static FIELDS = { role: 'role', since: 'since', after: 'since', until: 'until', before: 'until', model: 'model',
        from: 'from', file: 'file', tool: 'tool', title: 'title', repo: 'repo', in: 'repo', session: 'session',
        id: 'id' };
    static LIMITS = ['since', 'until']; /* each of them must be met, not just one */
    static hasRepositories = false; /* does the page name those of its sessions? */
    static NEEDS = ['model', 'file', 'tool']; /* any message of a session may meet these */
    static DAY = 86400000;
    static UNITS = [
        [1, 'ms msec msecs millisecond milliseconds'],
        [1000, 's sec secs second seconds'],
        [60000, 'm min mins minute minutes'],
        [3600000, 'h hr hrs hour hours'],
        [Query.DAY, 'd day days'],
        [7 * Query.DAY, 'w week weeks'],
        [30.44 * Query.DAY, 'M month months'],
        [365.25 * Query.DAY, 'y year years'],
    ];
    static WEEKDAYS = 'sunday monday tuesday wednesday thursday friday saturday'.split(' ');

    /* Throws a QueryError for an unknown field, a field without a value, a bad time, and a bad expression. */
    constructor(text, now = Date.now()) {
        this.text = text;
        this.terms = [];
        for (let rest = text.replace(/^[ \t\r\n]+/, ''); rest;) {
            const [term, n] = Query.term(rest, now);
            const at = text.length - rest.length;
            const source = text.slice(at, at + n);
            if (term) this.terms.push({ ...term, at, n, word: term.value === source ? source : '' });
            rest = rest.slice(n).replace(/^[ \t\r\n]+/, '');
        }
        this.wanted = this.terms.filter((t) => t.field === 'words' && !t.not);
        this.words = this.wanted.map((t) => t.expression);
        this.refused = this.terms.filter((t) => t.field === 'words' && t.not).map((t) => t.expression);
        this.fields = this.terms.filter((t) => t.field !== 'words');
        this.needs = this.fields.filter((t) => Query.NEEDS.includes(t.field));
        this.needed = new Set(this.needs.filter((t) => !t.not).map((t) => t.field));
        this.others = this.fields.filter((t) => !Query.NEEDS.includes(t.field));
        const sources = this.words.map((word) => word.source);
        /* Any of the words, to mark them; the longest of those that begin at the same place. */
        this.any = sources.length ?
            new RegExp(sources.sort((a, b) => b.length - a.length).join('|'), 'gimu') : null;
    }

    /* ---- parsing ---- */

    /* The term that a text begins with, or null if it is empty, and its length. */
    static term(text, now) {
        const hyphens = text.startsWith('--');
        const not = !hyphens && /^-[^ \t\r\n]/.test(text);
        let at = not ? 1 : 0;
        let field = 'words';
        const name = hyphens ? null : /^([a-z]+):/i.exec(text.slice(at));
        if (name && Object.hasOwn(Query.FIELDS, name[1].toLowerCase())) {
            field = Query.FIELDS[name[1].toLowerCase()];
            at += name[0].length;
        } else if (name && (/^\d/.test(text.slice(at + name[0].length)) && Query.isNearField(name[1].toLowerCase()) ||
            /^[a-z]{2,}:(?!\d*(?:[ \t\r\n]|$))(?:[a-z0-9"]|[^\0-\x7f])/i.test(text.slice(at)))) {
            const all = Object.keys(Query.FIELDS).join(': ');
            throw new QueryError(`No field “${name[0]}” (${all}:); a text with a colon needs quotes`);
        }
        const expression = field === 'words' && /^\/([^ \t\r\n]+)\/(?=[ \t\r\n]|$)/.exec(text.slice(at));
        if (expression) return [{ field, not, expression: Query.regular(expression[1]) }, at + expression[0].length];
        const [read, end] = Query.value(text, at, field === 'words');
        const value = read.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '');
        if (!value && field !== 'words') throw new QueryError(`“${field}:” needs a value`);
        if (!value) return [null, end];
        if (field === 'repo' && !Query.hasRepositories) throw new QueryError('“repo:” does not work here: the page does not name repositories');
        if (field === 'words') return [{ field, not, value, expression: Query.expression(value) }, end];
        if (!Query.LIMITS.includes(field)) return [{ field, not, value: Query.key(value) }, end];
        if (not) throw new QueryError(`“-${field}:” is not possible`);
        const time = Query.time(value, now);
        if (!time) throw new QueryError(`Bad time “${value}” for ${field}: a date, yesterday or 7d is expected`);
        return [{ field, not, value: field === 'since' ? time[0] : time[1] }, end];
    }

    /* Does a name miss that of a field whose values begin with digits by one letter, or by two that changed places? */
    static isNearField(name) {
        const numbered = ['since', 'until', 'session'];
        return Object.keys(Query.FIELDS).filter((field) => numbered.includes(Query.FIELDS[field])).some((field) => {
            const most = Math.max(name.length, field.length);
            const least = Math.min(name.length, field.length);
            let same = 0;
            let end = 0;
            while (same < least && name[same] === field[same]) same++;
            while (end < least - same && name.at(-1 - end) === field.at(-1 - end)) end++;
            return most - same - end <= 1 || (most === least && most - same - end === 2 &&
                name[same] === field[same + 1] && name[same + 1] === field[same]);
        });
    }

    /* The rest of a term without its quotes and backslashes, and where it ends. */
    static value(text, at, begins) {
        let value = '';
        let quoted = false;
        if (begins && /^\\[^ \t\r\n"\\]/.test(text.slice(at, at + 2))) at++;
        for (; at < text.length && (quoted || !/[ \t\r\n]/.test(text[at])); at++) {
            if (text[at] === '\\' && (text[at + 1] === '"' || text[at + 1] === '\\')) value += text[++at];
            else if (text[at] === '"') quoted = !quoted;
            else value += text[at];
        }
        return [value, at];
    }

    /* Perl's expressions in C; here those of the browser, which are nearly the same. */
    static regular(source) {
        try {
            return new RegExp(`(?:${source})`, 'imu');
        } catch {
            throw new QueryError(`Bad regular expression “${source}”`);
        }
    }

    /* As add_expression in C: markup may stand beside white space, and a character with an
     * accent is one character or two. */
    static expression(value) {
        let source = '';
        for (const [part] of value.toWellFormed().normalize('NFC').matchAll(/[\t-\r ]+|.\p{M}*/gsu)) {
            const apart = part.normalize('NFD');
            if (/^[\t-\r ]/.test(part)) source += '[*_`~]*[\\t-\\r ][*_`~\\t-\\r ]*';
            else if (part !== apart) source += `(?:${part}|${apart})`;
            else source += part.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
        }
        return new RegExp(`${source}(?![\\u0300-\\u036f])`, 'iu');
    }

    /* ---- times ---- */

    /* The first and the last millisecond of a time as people write it, or null. */
    static time(text, now) {
        const word = text.toLowerCase();
        if (word === 'now') return [now, now];
        const ago = Query.span(text);
        if (ago !== null) return [now - ago, now - ago];
        const day = Query.dayBefore(word, now);
        if (day !== null) {
            const today = new Date(now);
            const midnight = (n) => new Date(today.getFullYear(), today.getMonth(), today.getDate() - n).getTime();
            return [midnight(day), midnight(day - 1) - 1];
        }
        return Query.date(text);
    }

    /* The milliseconds of `7d` or `1h 30min ago`, or null. */
    static span(text) {
        let sum = 0;
        let rest = text.replace(/(?:\. *| *)ago$/i, '');
        if (!rest) return null;
        while (rest) {
            const found = /^(\d+(?:\.\d+)?)(?:\.(?=[a-z])| +)?([a-z]+)(?:\.(?=\d)| +(?=\d))?/i.exec(rest);
            /* m is a minute and M a month; the case of longer names does not matter. */
            const name = found?.[2].length > 1 ? found[2].toLowerCase() : found?.[2];
            const unit = Query.UNITS.find(([, names]) => names.split(' ').includes(name));
            if (!unit) return null;
            sum += Math.floor(Number(found[1]) * unit[0]);
            rest = rest.slice(found[0].length);
        }
        return sum;
    }

    /* How many days before today `yesterday`, `monday` or `last monday` is, or null. */
    static dayBefore(word, now) {
        if (word === 'today') return 0;
        if (word === 'yesterday') return 1;
        const [, last, name] = /^(last[. ] *)?([a-z]+)$/.exec(word) ?? [];
        const weekday = Query.WEEKDAYS.findIndex((day) => day === name || day.slice(0, 3) === name);
        if (weekday < 0) return null;
        return (new Date(now).getDay() - weekday + 7) % 7 || (last ? 7 : 0);
    }

    /* A date, or a date and a time; local unless it has a zone. */
    static date(text) {
        const found = new RegExp('^(\\d{4})-(\\d\\d)-(\\d\\d)(?:[Tt ](\\d\\d):(\\d\\d)(?::(\\d\\d)(?:[.,](\\d+))?)?' +
            '(Z|z|[+-]\\d\\d(?::?\\d\\d)?)?)?$').exec(text);
        if (!found) return null;
        const [year, month, day, hour, minute, second] = found.slice(1, 7).map((n) => Number(n ?? 0));
        const days = new Date(Date.UTC(2000, month, 0)).getUTCDate();
        const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
        if (year < 1 || month < 1 || month > 12 || day < 1 || day > (month === 2 && !leap ? 28 : days) ||
            hour > 23 || minute > 59 || second > 60) return null;
        const ms = Math.floor(Number(`0.${found[7] ?? 0}`) * 1000);
        const at = (n, ...more) => {
            const date = new Date(2000, 0, 1);
            if (found[8] === undefined) {
                date.setFullYear(year, month - 1, day + n);
                date.setHours(...more);
            } else {
                date.setUTCFullYear(year, month - 1, day + n);
                date.setUTCHours(...more);
            }
            return date.getTime() - (found[8] === undefined ? 0 : Query.zone(found[8]));
        };
        const first = at(0, hour, minute, second, ms);
        if (found[4] === undefined) return [at(0, 0, 0, 0, 0), at(1, 0, 0, 0, 0) - 1];
        if (found[7] !== undefined) return [first, first];
        return [first, first + (found[6] === undefined ? 60000 : 1000) - 1];
    }

    static zone(text) {
        if (text.toLowerCase() === 'z') return 0;
        const [, sign, hours, minutes = 0] = /^([+-])(\d\d):?(\d\d)?$/.exec(text);
        return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60000;
    }

    /* ---- a message ---- */

    /* A text in the form in which the values of fields are compared. */
    static key(text) {
        return new RegExp(String(text).normalize('NFC').replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'iu');
    }

    static holds(value, text) {
        return typeof text === 'string' && value.test(text.normalize('NFC'));
    }

    static atAnEnd(value, text) {
        return Query.holds(new RegExp(`^(?:${value.source})|(?:${value.source})$`, 'iu'), text);
    }

    /* The strings, numbers and words inside a JSON value of any depth. */
    static* leaves(value) {
        if (value !== null && typeof value === 'object')
            for (const part of Object.values(value)) yield* Query.leaves(part);
        else if (value !== null && value !== undefined) yield String(value);
    }

    static has(value, list) {
        for (const leaf of Query.leaves(list)) if (Query.holds(value, leaf)) return true;
        return false;
    }

    static isFileOfCall(value, args) {
        return args !== null && typeof args === 'object' && !Array.isArray(args) &&
            Object.entries(args).some(([key, files]) => /file|path/i.test(key) && Query.has(value, files));
    }

    static isMet({ field, value }, message) {
        const { data, session } = message;
        switch (field) {
        case 'role': return Query.holds(new RegExp(`^(?:${value.source})$`, 'iu'), data.role);
        case 'since': return message.time !== 0 && message.time >= value;
        case 'until': return message.time !== 0 && message.time <= value;
        case 'model':
            return typeof data.model === 'string' && Query.holds(value,
                typeof data.provider === 'string' ? `${data.provider}:${data.model}` : data.model);
        case 'from': {
            const [session] = typeof data.origin === 'string' ? data.origin.split('/') : [''];
            return Query.holds(value, session ? session.split(':')[0] : 'chathist');
        }
        case 'file':
            return Query.has(value, data.files) || Query.has(value, data.files_modified) ||
                message.calls.some((call) => Query.isFileOfCall(value, call.args));
        case 'tool': return message.calls.some((call) => Query.holds(value, call.name));
        case 'repo': return Query.holds(value, session.repository);
        case 'title': return Query.holds(value, session.label);
        case 'session': return Query.atAnEnd(value, session.id);
        case 'id': return Query.atAnEnd(value, data.id) || Query.atAnEnd(value, session.id);
        default: return false;
        }
    }

    accepts(message, fields = this.fields) {
        const wanted = new Set();
        const met = new Set();
        for (const term of fields) {
            const limit = Query.LIMITS.includes(term.field);
            if (!term.not && !limit) wanted.add(term.field);
            const holds = Query.isMet(term, message);
            if (holds ? term.not : limit) return false;
            if (holds && !limit) met.add(term.field);
        }
        return wanted.size === met.size;
    }

    /* Does the message hold what is wanted and nothing that is not? */
    matches(message) {
        if (!this.accepts(message)) return false;
        const { texts } = message;
        const isIn = (expression) => texts.some((text) => expression.test(text));
        return this.words.every(isIn) && !this.refused.some(isIn);
    }

    /* ---- a session ---- */

    /* Can sessions hold what no message holds: all words and fields, or with `lack` 1 all words but one? */
    helpsInSession(lack) {
        return this.words.length + (lack === 0 ? this.needed.size : 0) > 1;
    }

    /* Adds to `held`, a map from sessions, what a message holds; of the messages with a word, the first counts. */
    look(message, held) {
        if (!this.accepts(message, this.others)) return;
        const { words, fields, hits, refused } = held.get(message.session) ??
            { words: new Set(), fields: new Set(), hits: [], refused: false };
        const isIn = (expression) => message.texts.some((text) => expression.test(text));
        const before = words.size + fields.size;
        this.words.forEach((word, i) => !words.has(i) && isIn(word) && words.add(i));
        const met = this.needs.filter((term) => Query.isMet(term, message));
        for (const term of met) if (!term.not) fields.add(term.field);
        if (words.size + fields.size > before) hits.push(message);
        held.set(message.session, { words, fields, hits,
            refused: refused || met.some((term) => term.not) || this.refused.some(isIn) });
    }

    /* Compares two messages for sort: by the time when they count as written, then by their places in the
     * history. */
    static newestFirst(a, b) {
        return b.written - a.written || b.data.at - a.data.at || 0;
    }

    /* Prompts and answers before results of tools, if several words are asked. */
    best(hits) {
        const isResult = (message) => message.data.role === 'tool';
        return this.words.length < 2 ? hits : [...hits.filter((m) => !isResult(m)), ...hits.filter(isResult)];
    }

    /* The hits of the sessions that hold everything but `lack` words. Sessions that lack a common word are first,
     * then those with a prompt or an answer, then the one with the newest hit. */
    together(held, lack) {
        const common = this.words.map((_, i) => [...held.values()].filter(({ words }) => words.has(i)).length);
        const rank = ({ words, hits }) => {
            const lacked = this.words.findIndex((_, i) => !words.has(i));
            return 2 * common.filter((n) => n > (common[lacked] ?? n)).length + (hits[0].data.role === 'tool');
        };
        return [...held.values()].filter(({ words, fields, hits, refused }) => hits.length && !refused &&
            words.size + lack >= this.words.length && fields.size === this.needed.size)
            .map((one) => ({ ...one, hits: this.best(one.hits) })).map((one) => ({ ...one, rank: rank(one) }))
            .sort((a, b) => a.rank - b.rank || Query.newestFirst(a.hits[0], b.hits[0])).flatMap(({ hits }) => hits);
    }
}

/*
 * Forms - other forms of the words of a query that found nothing, as in C (chathist/search/forms.h).
 */
class Forms {
    static ENOUGH = Symbol('enough');
    static WORD_MOST = 64;
    static WORDS_MOST = 8;
    static LOOKED_AT = 100;
    static ASKED_MOST = 8;
    static SAID_MOST = 3;
    static COMPOSED = [[0xc0, 0x24f], [0x370, 0x52f], [0x1e00, 0x1fff]];
    static WORD = '[\\p{L}\\p{N}_]';
    static MARK = '[\\u0300-\\u036f]';
    static marked = null; /* a map from letters to the same with marks */

    /*
     * scan(see) calls `see` with each message, the newest first, until it returns ENOUGH, and resolves to false if
     * the search was overtaken. `together`: sessions were asked, too. Resolves to { query, said }, to null if there
     * are no other forms, or to false if the search was overtaken.
     */
    static async find(query, together, scan) {
        const words = query.wanted;
        if (words.length > Forms.WORDS_MOST) return null;
        for (const joining of [false, true]) {
            const others = [];
            let absent = false;
            for (const [i, term] of words.entries()) {
                const other = await Forms.ofWord(query, i, joining, scan);
                if (other === false) return false;
                absent ||= other.absent;
                if (other.asked) others.push({ ...other, ...term });
            }
            if (others.length) return Forms.put(query.text, others, joining);
            if (absent || !together || words.length < 2) return null;
        }
        return null;
    }

    static put(text, others, joining) {
        let asked = '';
        let from = 0;
        for (const { at, n, asked: form } of others) {
            asked += text.slice(from, at) + form;
            from = at + n;
        }
        const shown = others.map(({ said }) => said).join(', ');
        const absent = others.map(({ word }) => `'${word}'`).join(', ');
        return { query: new Query(asked + text.slice(from)), asked: asked + text.slice(from), said: joining ?
            `no session has all words; showing ${shown}, too` : `no ${absent}; showing ${shown}` };
    }

    /* What is asked in place of a word: { asked, said, absent }, or false. */
    static async ofWord(query, number, joining, scan) {
        const { word, expression } = query.wanted[number];
        const other = { asked: '', said: '', absent: false };
        const texts = [];
        const said = [];
        for (const [form, pattern] of word ? Forms.patterns(word, expression, joining) : []) {
            const found = new Map();
            const most = form === 'marks' || form === 'edit' ? Forms.LOOKED_AT : 1;
            let sum = 0;
            const scanned = await scan((message) => {
                const held = (form === 'id' || query.accepts(message, query.others)) && pattern(message);
                if (!held) return null;
                const text = Forms.folded(held);
                found.set(text, (found.get(text) ?? 0) + 1);
                return ++sum >= most ? Forms.ENOUGH : null;
            });
            if (!scanned) return false;
            other.absent ||= form === 'same' && !found.size;
            if (form === 'same' && found.size) break;
            const some = [...found].sort((a, b) => b[1] - a[1]).slice(0, Forms.ASKED_MOST)
                .map(([text]) => (form === 'id' ? `id:${text}` : text));
            texts.push(...some);
            said.push(...some.slice(0, Forms.SAID_MOST).map((text) => `'${text}'`));
            if (some.length && !joining) break;
        }
        if (!texts.length) return other;
        if (joining) texts.unshift(word);
        return { ...other, said: said.join(', '), asked: texts.length > 1 ? `/${texts.join('|')}/` : texts[0] };
    }

    /* The forms of a word, in order, each with a function that returns what a message holds of it. */
    static* patterns(word, same, joining) {
        const holds = (expression) => ({ texts }) => {
            const text = texts.find((one) => expression.test(one));
            return text === undefined ? null : expression.exec(text)[0];
        };
        const plain = (source) => holds(new RegExp(source, 'iu'));
        const letters = [...word];
        if (!joining) {
            yield ['same', holds(same)];
            if (/^[A-Za-z0-9._:-]{4,}$/.test(word) && /\d/.test(word)) yield ['id', (message) => Forms.id(word, message)];
        }
        if (letters.length > Forms.WORD_MOST || !/^[\p{L}\p{N}\p{M}_]+$/u.test(word)) return;
        if (letters.length >= 3) yield ['marks', plain(`(?!${word}(?!${Forms.MARK}))${Forms.anyMarks(word)}`)];
        const stems = [1, 2, 3].filter((cut) => letters.length >= 5 + cut)
            .map((cut) => letters.slice(0, letters.length - cut).join(''));
        for (const stem of joining ? stems.slice(-1) : stems) yield ['stem', plain(`(?<!${Forms.WORD})${stem}`)];
        if (letters.length >= 6) yield ['edit', plain(Forms.edited(letters, stems.at(-1)))];
    }

    static id(text, { data, session }) {
        const message = /^[0-9a-f-]{8,}$/.test(text);
        const value = Query.key(text);
        return session.id.startsWith(text) || session.id.endsWith(text) ||
            (message && Query.atAnEnd(value, data.id)) ? text : null;
    }

    /* Folded as in C, letter by letter; a dotted or dotless i stays as it is. */
    static folded(text) {
        return [...text].map((letter) => {
            const lower = letter.toUpperCase().toLowerCase();
            return lower.length === letter.length && !'\u0130\u0131'.includes(letter) ? lower : letter;
        }).join('');
    }

    static unmarked(text) {
        return text.normalize('NFD').replace(/\p{M}/gu, '');
    }

    static anyMarks(word) {
        if (!Forms.marked) {
            Forms.marked = new Map();
            for (const [from, to] of Forms.COMPOSED) {
                for (let cp = from; cp <= to; cp++) {
                    const letter = String.fromCodePoint(cp);
                    const bare = Forms.unmarked(letter);
                    if (letter === letter.toLowerCase() && bare !== letter)
                        Forms.marked.set(bare, (Forms.marked.get(bare) ?? '') + letter);
                }
            }
        }
        return [...Forms.unmarked(Forms.folded(word))]
            .map((letter) => `[${letter}${Forms.marked.get(letter) ?? ''}]${Forms.MARK}*`).join('');
    }

    /* The words that begin with this one but for one edit. */
    static edited(letters, stem) {
        const middle = Math.floor(letters.length / 2);
        const [half, rest] = [letters.slice(0, middle), letters.slice(middle)];
        const edits = (part) => `(?:${part.flatMap((letter, i) => {
            const before = part.slice(0, i).join('');
            const after = part.slice(i + 1).join('');
            const swapped = i + 1 < part.length ? [before + part[i + 1] + letter + part.slice(i + 2).join('')] : [];
            return [`${before}${Forms.WORD}?${after}`, `${before}${Forms.WORD}${letter}${after}`, ...swapped];
        }).join('|')}|${part.join('')}${Forms.WORD})`;
        const exchanged = [...half.slice(0, -1), rest[0], half.at(-1), ...rest.slice(1)].join('');
        return `(?<!${Forms.WORD})(?!${stem})(?:${half.join('')}${edits(rest)}|${edits(half)}${rest.join('')}|` +
            `${exchanged})${Forms.WORD}{0,3}(?!${Forms.WORD})`;
    }
}
