'use strict';

/*
 * markdown - the Markdown of a message as nodes of the document.
 *
 * Text becomes text nodes and nothing else: HTML in a message is shown as it was written, an image
 * is a link to it, and a link is one only when it goes to http, https or mailto. Reads what models
 * write: headings, emphasis, code, lists, quotes, tables, rules, links. Takes time in proportion to
 * the text whatever it holds: no expression here can backtrack over more than a few characters,
 * nesting has a limit, and what was looked for in vain is not looked for again.
 */
const Markdown = (() => {
    const DEEPEST_BLOCK = 12;
    const DEEPEST_INLINE = 24;
    const LONGEST_ROW = 4000;
    const SCHEMES = new Set(['http:', 'https:', 'mailto:']);

    const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$/;
    const HEADING = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
    const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
    const QUOTE = /^ {0,3}> ?/;
    const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}(?=\S)| |$)/;
    const INDENTED = /^(?: {4}|\t)/;
    const TABLE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

    function element(name, className, ...children) {
        const e = document.createElement(name);
        if (className) e.className = className;
        e.append(...children);
        return e;
    }

    /* The address of a link when it may be one, else null. */
    function safeAddress(text) {
        try {
            const url = new URL(text);
            return SCHEMES.has(url.protocol) ? url.href : null;
        } catch {
            return null;
        }
    }

    function setLink(a, address) {
        a.href = address;
        a.target = '_blank';
        a.rel = 'noopener noreferrer';
        return a;
    }

    /* ---- within a line ---- */

    const SPECIAL = /[\\`*_~[\]<!]|https?:\/\//g;
    const BARE = /https?:\/\/[^\s<>"'`]+/y;
    const ANGLED = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y;
    const TICKS = /`+/y;
    const MARKS = /\*+|_+|~+/y;
    const TARGET = /\(\s{0,9}<?([^\s()<>]{0,2000}(?:\([^\s()<>]{0,2000}\)[^\s()<>]{0,2000}){0,9})>?(?:\s{1,9}"[^"]{0,500}")?\s{0,9}\)/y;
    const ESCAPED = /[!-/:-@[-`{-~]/;
    const PUNCTUATION = /[\p{P}\p{S}]/u;

    const isSpace = (c) => c === undefined || c === '' || /\s/.test(c);
    const isPunctuation = (c) => PUNCTUATION.test(c);

    function matchAt(expression, text, at) {
        expression.lastIndex = at;
        return expression.exec(text);
    }

    /* A frame is an element whose end is still to come: its mark as written, and the element. */
    class Inline {
        constructor(text, parent) {
            this.text = text;
            this.stack = [{ mark: '', node: parent }];
            this.plain = '';
            this.noTicks = new Set();
        }

        get top() {
            return this.stack[this.stack.length - 1];
        }

        flush() {
            if (this.plain) this.top.node.append(this.plain);
            this.plain = '';
        }

        push(mark, node) {
            if (this.stack.length >= DEEPEST_INLINE) {
                this.plain += mark;
                return;
            }
            this.flush();
            this.stack.push({ mark, node });
        }

        /* The frames from `index` on were no elements: their marks are text. */
        flatten(index) {
            this.flush();
            while (this.stack.length > index) {
                const { mark, node } = this.stack.pop();
                this.top.node.append(mark, ...node.childNodes);
            }
        }

        close(index) {
            this.flatten(index + 1);
            const { node } = this.stack.pop();
            this.top.node.append(node);
        }

        run() {
            let at = 0;
            while (at < this.text.length) {
                const special = matchAt(SPECIAL, this.text, at);
                const next = special ? special.index : this.text.length;
                this.plain += this.text.slice(at, next);
                at = special ? this.special(next) : next;
            }
            this.flatten(1);
            this.flush();
        }

        /* What begins at `at`; returns where it ends. */
        special(at) {
            switch (this.text[at]) {
            case '\\': return this.escape(at);
            case '`': return this.code(at);
            case '[': this.push('[', element('a')); return at + 1;
            case '!': return this.image(at);
            case ']': return this.link(at);
            case '<': return this.angled(at);
            case 'h': return this.bare(at);
            default: return this.emphasis(at);
            }
        }

        escape(at) {
            const next = this.text[at + 1];
            const escaped = next !== undefined && ESCAPED.test(next);
            this.plain += escaped ? next : '\\';
            return at + (escaped ? 2 : 1);
        }

        code(at) {
            const ticks = matchAt(TICKS, this.text, at)[0];
            const from = at + ticks.length;
            const end = this.noTicks.has(ticks.length) ? -1 : this.closingTicks(from, ticks.length);
            if (end < 0) {
                this.noTicks.add(ticks.length);
                this.plain += ticks;
                return from;
            }
            let code = this.text.slice(from, end).replace(/\n/g, ' ');
            if (code.startsWith(' ') && code.endsWith(' ') && code.trim()) code = code.slice(1, -1);
            this.flush();
            this.top.node.append(element('code', '', code));
            return end + ticks.length;
        }

        closingTicks(from, length) {
            for (let at = this.text.indexOf('`', from); at >= 0; at = this.text.indexOf('`', at)) {
                const ticks = matchAt(TICKS, this.text, at)[0];
                if (ticks.length === length) return at;
                at += ticks.length;
            }
            return -1;
        }

        image(at) {
            if (this.text[at + 1] !== '[') {
                this.plain += '!';
                return at + 1;
            }
            this.push('![', element('a', 'picture'));
            return at + 2;
        }

        link(at) {
            let index = this.stack.length - 1;
            while (index > 0 && !this.stack[index].mark.endsWith('[')) index--;
            const target = index > 0 && !this.stack[index].dead && this.text[at + 1] === '(' &&
                matchAt(TARGET, this.text, at + 1);
            if (!target) {
                if (index > 0) this.flatten(index);
                this.plain += ']';
                return at + 1;
            }
            const node = this.stack[index].node;
            const address = safeAddress(target[1]);
            if (address !== null) {
                this.close(index);
                setLink(node, address);
                if (!node.hasChildNodes()) node.append(address);
                for (const frame of this.stack) frame.dead = frame.mark.endsWith('[');
            } else {
                /* Not somewhere to go: the text, and where it would have led. */
                this.flatten(index + 1);
                this.stack.pop();
                this.top.node.append(...node.childNodes);
                this.top.node.append(element('span', 'target', ` (${target[1]})`));
            }
            return at + 1 + target[0].length;
        }

        angled(at) {
            const match = matchAt(ANGLED, this.text, at);
            const address = match && safeAddress(match[1]);
            if (!address) {
                this.plain += '<';
                return at + 1;
            }
            this.flush();
            this.top.node.append(setLink(element('a', '', match[1]), address));
            return at + match[0].length;
        }

        bare(at) {
            const match = matchAt(BARE, this.text, at)?.[0];
            if (!match) {
                this.plain += 'h';
                return at + 1;
            }
            let end = match.length;
            while (end > 0 && /[.,;:!?*_~)\]]/.test(match[end - 1])) {
                if (match[end - 1] === ')' && match.length < 2000 && match.slice(0, end).includes('(')) break;
                end--;
            }
            const link = match.slice(0, end);
            const inLink = this.stack.some((frame) => frame.mark.endsWith('['));
            const address = !inLink && link.length < 2000 ? safeAddress(link) : null;
            if (address === null) {
                this.plain += link;
                return at + end;
            }
            this.flush();
            this.top.node.append(setLink(element('a', '', link), address));
            return at + end;
        }

        /* Which side a mark may stand on: CommonMark 0.31, 6.2. */
        emphasis(at) {
            const run = matchAt(MARKS, this.text, at)[0];
            const c = run[0];
            const end = at + run.length;
            const before = this.text[at - 1], after = this.text[end];
            const left = !isSpace(after) &&
                (!isPunctuation(after) || isSpace(before) || isPunctuation(before));
            const right = !isSpace(before) &&
                (!isPunctuation(before) || isSpace(after) || isPunctuation(after));
            const opens = left && (c !== '_' || !right || isPunctuation(before));
            const closes = right && (c !== '_' || !left || isPunctuation(after));
            let rest = run.length;
            if (rest > 3 || (c === '~' && rest !== 2)) {
                this.plain += run;
                return end;
            }
            while (closes && rest > 0) {
                const index = this.stack.findLastIndex(
                    ({ mark }) => mark[0] === c && mark.length <= rest);
                if (index < 1) break;
                rest -= this.stack[index].mark.length;
                this.close(index);
            }
            while (opens && rest > 0) {
                const size = Math.min(rest, 2);
                const name = c === '~' ? 'del' : size === 2 ? 'strong' : 'em';
                this.push(c.repeat(size), element(name));
                rest -= size;
            }
            this.plain += c.repeat(rest);
            return end;
        }
    }

    function inline(text, parent) {
        new Inline(text, parent).run();
        return parent;
    }

    /* ---- lines ---- */

    /* Can this line begin something else than a paragraph? */
    function beginsBlock(line) {
        return FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || RULE.test(line) ||
            (ITEM.test(line) && !/^ {0,3}(?:[-*+]|\d+[.)]) *$/.test(line));
    }

    function fence(lines, i, parent, make) {
        const [, open, info] = FENCE.exec(lines[i]);
        const indent = lines[i].indexOf(open[0]);
        const code = [];
        for (i++; i < lines.length; i++) {
            const end = FENCE.exec(lines[i]);
            if (end && end[1][0] === open[0] && end[1].length >= open.length && !end[2].trim()) {
                i++;
                break;
            }
            let skip = 0;
            while (skip < indent && lines[i][skip] === ' ') skip++;
            code.push(lines[i].slice(skip));
        }
        parent.append(make.code(code.join('\n'), info.trim().split(/\s/, 1)[0]));
        return i;
    }

    function indented(lines, i, parent, make) {
        const code = [];
        for (; i < lines.length && (INDENTED.test(lines[i]) || !lines[i].trim()); i++)
            code.push(lines[i].replace(INDENTED, ''));
        parent.append(make.code(code.join('\n').trimEnd(), ''));
        return i;
    }

    function heading(lines, i, parent, make) {
        const [mark, signs] = HEADING.exec(lines[i]);
        const text = lines[i].slice(mark.length).trim().replace(/(?:^|[ \t])#{1,9}$/, '');
        /* Below the heading of the message, and none left out, whatever the message leaves out. */
        make.level = Math.min(signs.length + 2, make.level + 1, 6);
        const h = element(`h${make.level}`, `level${signs.length}`);
        parent.append(inline(text, h));
        return i + 1;
    }

    function quote(lines, i, parent, make, depth) {
        const inner = [];
        for (; i < lines.length && QUOTE.test(lines[i]); i++)
            inner.push(lines[i].replace(QUOTE, ''));
        const node = element('blockquote');
        blocks(inner, node, make, depth + 1);
        parent.append(node);
        return i;
    }

    function cells(row) {
        const parts = row.trim().replace(/^\|/, '').split(/(?<!\\)\|/);
        if (parts.length > 1 && !parts[parts.length - 1].trim()) parts.pop();
        return parts.map((part) => part.trim().replace(/\\\|/g, '|'));
    }

    function isTable(lines, i) {
        const rule = lines[i + 1];
        return lines[i].includes('|') && lines[i].length < LONGEST_ROW && rule !== undefined &&
            rule.length < LONGEST_ROW && rule.includes('-') && TABLE.test(rule) &&
            cells(lines[i]).length === cells(rule).length;
    }

    function table(lines, i, parent) {
        const sides = cells(lines[i + 1]).map((rule) => rule.endsWith(':') ?
            (rule.startsWith(':') ? 'centre' : 'right') : '');
        const row = (line, name) => {
            const tr = element('tr');
            const parts = cells(line);
            sides.forEach((side, n) => tr.append(inline(parts[n] ?? '', element(name, side))));
            return tr;
        };
        const body = element('tbody');
        const node = element('table', '', element('thead', '', row(lines[i], 'th')), body);
        for (i += 2; i < lines.length && lines[i].includes('|') && lines[i].length < LONGEST_ROW; i++)
            body.append(row(lines[i], 'td'));
        const frame = element('div', 'table', node);
        frame.tabIndex = 0;
        parent.append(frame);
        return i;
    }

    /* Takes the lines of one item off: its own, those below it that are indented as far, and those
     * that go on with its paragraph. */
    function item(lines, i, inner) {
        const [marker] = ITEM.exec(lines[i]);
        const width = marker.length + (marker.endsWith(' ') ? 0 : 1);
        inner.push(lines[i].slice(marker.length));
        for (i++; i < lines.length; i++) {
            const line = lines[i];
            if (!line.trim()) {
                const next = lines[i + 1];
                if (next === undefined || next.search(/\S/) < width) break;
                inner.push('');
            } else if (line.search(/\S/) >= width) {
                inner.push(line.slice(width));
            } else if (lines[i - 1].trim() && !beginsBlock(line) && !ITEM.test(line)) {
                inner.push(line);
            } else {
                break;
            }
        }
        return i;
    }

    function list(lines, i, parent, make, depth) {
        const kind = (line) => {
            const mark = ITEM.exec(line)?.[2];
            return mark && (mark.length > 1 ? mark[mark.length - 1] : mark);
        };
        const first = ITEM.exec(lines[i])[2];
        const node = element(first.length > 1 ? 'ol' : 'ul');
        if (first.length > 1 && parseInt(first, 10) !== 1) node.start = parseInt(first, 10);
        const sort = kind(lines[i]);
        let after = i;
        while (after < lines.length && kind(lines[after]) === sort && !RULE.test(lines[after])) {
            const inner = [];
            i = item(lines, after, inner);
            const li = element('li');
            const task = /^\[([ xX])\] /.exec(inner[0]);
            if (task) {
                inner[0] = inner[0].slice(4);
                li.className = 'task';
                li.append(task[1] === ' ' ? '☐ ' : '☑ ');
            }
            blocks(inner, li, make, depth + 1, !inner.includes(''));
            node.append(li);
            for (after = i; after < lines.length && !lines[after].trim();) after++;
        }
        parent.append(node);
        return i;
    }

    function paragraph(lines, i, parent, tight) {
        const from = i;
        for (i++; i < lines.length && lines[i].trim() && !beginsBlock(lines[i]); i++)
            if (isTable(lines, i)) break;
        const text = lines.slice(from, i).map((line) => line.trimEnd()).join('\n');
        inline(text, tight ? parent : parent.appendChild(element('p')));
        return i;
    }

    /* tight: what it makes stands in a list without blank lines, where text is no paragraph. */
    function blocks(lines, parent, make, depth, tight = false) {
        for (let i = 0; i < lines.length;) {
            const line = lines[i];
            if (!line.trim()) i++;
            else if (depth > DEEPEST_BLOCK) i = paragraph(lines, i, parent, tight);
            else if (FENCE.test(line)) i = fence(lines, i, parent, make);
            else if (HEADING.test(line)) i = heading(lines, i, parent, make);
            else if (QUOTE.test(line)) i = quote(lines, i, parent, make, depth);
            else if (RULE.test(line)) i = (parent.append(element('hr')), i + 1);
            else if (ITEM.test(line)) i = list(lines, i, parent, make, depth);
            else if (INDENTED.test(line)) i = indented(lines, i, parent, make);
            else if (isTable(lines, i)) i = table(lines, i, parent);
            else i = paragraph(lines, i, parent, tight);
        }
    }

    /* Adds the text to parent, below a heading of level 2. code(text, language) makes the element of
     * a block of code. */
    function render(text, parent, code) {
        blocks(text.split(/\r\n?|\n/), parent, { code, level: 2 }, 0);
    }

    /* A link to an address of http or https, else null. */
    function webLink(text) {
        const address = /^https?:/i.test(text) ? safeAddress(text) : null;
        return address && setLink(element('a', '', text), address);
    }

    return { render, webLink };
})();
