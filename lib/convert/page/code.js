/*
 * code - marks comments, strings, numbers and keywords in code, and the lines of a diff that were
 * added and removed. LANGUAGES is the table of lib/terminal/languages.def.
 */
const Code = (() => {
    /* Longer code stays in one colour. */
    const LONGEST = 100000;
    const KINDS = ['comment', 'string', 'number', 'word'];

    const words = (list) => list.split(' ').filter(Boolean);
    const quoted = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
    const languages = new Map();
    const span = (className, textContent) =>
        Object.assign(document.createElement('span'), { className, textContent });

    function string(quote) {
        const q = quoted(quote);
        return quote.length > 1 || quote === '`' ? `${q}(?:\\\\[^]|(?!${q})[^\\\\])*(?:${q}|$)` :
            `${q}(?:\\\\.|[^${q}\\\\\\n])*${q}?`;
    }

    /* An expression with a group for each of KINDS, and the keywords. */
    function make([names, line, block, quotes, keywords]) {
        const [open, close] = words(block).map(quoted);
        const comments = words(line).map((mark) =>
            `${mark.length === 1 ? '(?<!\\S)' : ''}${quoted(mark)}.*`);
        if (open) comments.unshift(`${open}[^]*?(?:${close}|$)`);
        const groups = [comments, words(quotes).map(string), ['\\d[\\p{L}\\w.]*'], ['[\\p{L}\\w]+']];
        return {
            anyCase: names.startsWith('sql'),
            keywords: new Set(words(keywords)),
            expression: new RegExp(groups.map((g) => `(${g.join('|') || '(?!)'})`).join('|'), 'gu'),
        };
    }

    function find(name) {
        if (!languages.has(name)) {
            const row = LANGUAGES.find(([names]) => words(names).includes(name));
            languages.set(name, row && make(row));
        }
        return languages.get(name);
    }

    /* Returns the kind of a match, or undefined for a word that is none. */
    function kindOf(match, language) {
        const kind = KINDS[match.slice(1).findIndex((group) => group !== undefined)];
        if (kind !== 'word') return kind;
        const word = language.anyCase ? match[0].toLowerCase() : match[0];
        return language.keywords.has(word) ? 'keyword' : undefined;
    }

    function addDiff(text, parent) {
        const kinds = { '+': 'added', '-': 'removed', '@': 'comment' };
        for (const line of text.split(/(?<=\n)/))
            parent.append(kinds[line[0]] ? span(kinds[line[0]], line) : line);
    }

    /* Adds code to parent. */
    function add(text, name, parent) {
        const language = find(name.toLowerCase());
        let at = 0;
        if (text.length > LONGEST) parent.append(text);
        else if (/^(?:diff|patch)$/i.test(name)) addDiff(text, parent);
        else if (!language) parent.append(text);
        else {
            for (const match of text.matchAll(language.expression)) {
                const kind = kindOf(match, language);
                if (!kind) continue;
                parent.append(text.slice(at, match.index), span(kind, match[0]));
                at = match.index + match[0].length;
            }
            parent.append(text.slice(at));
        }
        return parent;
    }

    return { add };
})();
