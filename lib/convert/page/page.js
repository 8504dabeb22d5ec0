/*
 * page - the browser of a history: sessions or hits on the left, messages on the right.
 *
 * What is shown is told by the address, `#session/message&q=query`, and by what an entry of the
 * browser's history holds: the query, the roles that are hidden, the places that were scrolled to. Nothing of
 * a message becomes markup: every node is made here or in markdown.js, its text a text node.
 */
(() => {
    const DEBOUNCE = 300; /* milliseconds */
    const SHOWN_AT_ONCE = 20000; /* characters of a message before "Show all" */
    const MARKDOWN_UP_TO = 200000; /* above it a message is plain text */
    const MOST_RANGES = 5000;
    const ROLES = { user: 'User', assistant: 'Assistant', tool: 'Tools', system: 'System' };
    const NAMES = { user: 'You', assistant: 'Assistant', tool: 'Tool', system: 'System' };

    const $ = (id) => document.getElementById(id);

    function element(name, className, ...children) {
        const e = document.createElement(name);
        if (className) e.className = className;
        e.append(...children);
        return e;
    }

    function button(className, label, onClick) {
        const b = element('button', className, label);
        b.type = 'button';
        b.addEventListener('click', onClick);
        return b;
    }

    const plural = (n, one, many) => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
    const onOneLine = (text, most) => {
        const line = text.slice(0, most * 4).replace(/\s+/g, ' ').trim();
        return line.length > most ? `${line.slice(0, most).toWellFormed()}…` : line;
    };

    /* ---- the history ---- */

    /* The object that is written into a string, or else the value. */
    function unpacked(value) {
        if (typeof value !== 'string' || !/^\s*\{/.test(value)) return value;
        try {
            return JSON.parse(value);
        } catch {
            return value;
        }
    }

    /* The tool calls of a message, also as OpenAI's and Anthropic's clients write them. */
    function callsOf(data) {
        if (!Array.isArray(data.tool_calls)) return [];
        return data.tool_calls.filter((call) => call && typeof call === 'object').map((call) => {
            const name = call.name ?? call.function?.name;
            const args = call.args ?? call.input ?? unpacked(call.function?.arguments);
            return { id: call.id, name: typeof name === 'string' ? name : 'tool', args: args ?? '' };
        });
    }

    /* When a message or a session counts as written, in milliseconds since 1970 with a fraction. The export
     * tells it where it is not the timestamp. */
    function writtenAt({ time, timestamp }) {
        if (time !== undefined) return time / 1000;
        const micros = /\.\d{3}(\d{3})\+00:00$/.exec(timestamp)?.[1] ?? 0;
        return (Date.parse(timestamp) + micros / 1000) || -Infinity;
    }

    class Message {
        #time;

        constructor(data, session) {
            this.data = data;
            this.session = session;
            this.role = data.role;
            this.index = session.messages.length;
            this.written = writtenAt(data);
        }

        /* Milliseconds since 1970; 0 when it is no time. */
        get time() {
            return this.#time ??= Date.parse(this.data.timestamp) || 0;
        }

        get content() {
            return this.data.content ?? '';
        }

        get calls() {
            return callsOf(this.data);
        }

        /* What is searched: the content, and the names and arguments of tool calls, one by one. */
        get texts() {
            const calls = this.calls;
            if (!calls.length) return [this.content];
            return [this.content, ...calls.flatMap((c) => [c.name, ...Query.leaves(c.args)])];
        }

        get address() {
            return `#${encodeURIComponent(this.session.id)}/${encodeURIComponent(this.data.id)}`;
        }
    }

    class Session {
        constructor(id) {
            this.id = id;
            this.name = ''; /* the title that it was given */
            this.used = undefined; /* when it was used last, as `written` of a message */
            this.messages = [];
            this.tools = new Map(); /* name by id of the call */
        }

        add(data) {
            const message = new Message(data, this);
            this.messages.push(message);
            for (const call of callsOf(data)) this.tools.set(call.id, call.name);
            return message;
        }

        get latest() {
            return this.messages.reduce((a, b) => (b.written >= a.written ? b : a));
        }

        /* What title: looks at, as in hist-search. */
        get label() {
            if (this.name) return this.name;
            const asked = this.messages.find((m) => m.role === 'user' && m.content.trim());
            return [...(asked ?? this.messages[0]).content.slice(0, 200)].slice(0, 100).join('');
        }

        get title() {
            if (this.name) return onOneLine(this.name, 200);
            const first = this.messages.find((m) => m.role === 'user') ?? this.messages[0];
            return onOneLine(first.content.split('```', 1)[0], 90) || onOneLine(first.content, 90) || this.id;
        }

        get address() {
            return `#${encodeURIComponent(this.id)}`;
        }
    }

    function readHistory() {
        const sessions = new Map();
        const messages = [];
        for (const line of $('history').textContent.split('\n')) {
            if (!line) continue;
            const data = JSON.parse(line);
            let session = sessions.get(data.session_id);
            if (!session) sessions.set(data.session_id, session = new Session(data.session_id));
            if (data.role === 'session') session.used = writtenAt(data);
            else if (data.role === 'title') session.name = data.content.trim();
            else messages.push(session.add(data));
        }
        $('history').remove();
        for (const [id, session] of sessions) {
            if (session.messages.length) session.used ??= session.latest.written;
            else sessions.delete(id);
        }
        /* The session that was used last stands last in the export, also of the same time. */
        const newestFirst = [...sessions.values()].reverse().sort((a, b) => b.used - a.used);
        return { sessions, messages, newestFirst };
    }

    /* A JSON value as text; a string that holds JSON likewise. */
    function shownValue(value) {
        if (typeof value !== 'string') return JSON.stringify(value ?? null, null, 2);
        if (value.length > MARKDOWN_UP_TO || !/^\s*[{[]/.test(value)) return value;
        try {
            return JSON.stringify(JSON.parse(value), null, 2);
        } catch {
            return value;
        }
    }

    const { sessions, messages, newestFirst } = readHistory();
    const search = new Search(messages);

    /* ---- times ---- */

    const dayFormat = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full' });
    const shortDay = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });
    const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
    const whole = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'medium', hourCycle: 'h23' });

    function timeElement(message, format) {
        const stamp = String(message.data.timestamp);
        const time = element('time', '', message.time ? format.format(message.time) : stamp);
        if (message.time) {
            time.dateTime = stamp;
            time.title = whole.format(message.time);
        }
        return time;
    }

    const sameDay = (a, b) => new Date(a.time).toDateString() === new Date(b.time).toDateString();

    /* ---- state ---- */

    const state = {
        session: null,
        message: null, /* the one that the address names */
        query: '', /* as it was typed */
        asked: null, /* what it means; null without one, and for one with an error */
        hidden: new Set(), /* roles */
        hits: [],
    };

    const roleOf = (message) => (message.role in ROLES ? message.role : 'other');
    const wanted = (message) => !state.hidden.has(roleOf(message));

    /* ---- a message ---- */

    async function copy(text, control) {
        const label = control.textContent;
        let done = true;
        try {
            await navigator.clipboard.writeText(text);
        } catch {
            const area = element('textarea', 'away', text);
            document.body.append(area);
            area.select();
            done = document.execCommand('copy');
            area.remove();
            control.focus({ preventScroll: true });
        }
        control.textContent = done ? 'Copied' : 'Not copied';
        say(done ? 'Copied' : 'The browser does not let this page copy');
        setTimeout(() => { control.textContent = label; }, 1500);
    }

    function codeBlock(code, language) {
        const pre = element('pre', '', Code.add(code, language, element('code')));
        pre.tabIndex = 0;
        const caption = element('div', 'code-head', element('span', '', language),
            button('quiet', 'Copy', (event) => copy(code, event.currentTarget)));
        caption.lastChild.setAttribute('aria-label', 'Copy this code');
        return element('div', 'code', caption, pre);
    }

    /* Characters that change the direction of a text, and controls but tab, newline and CR: they
     * have no effect here, and are written like <U+202E>, as on a terminal. */
    const UNSEEN = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

    function visible(text) {
        return text.replace(UNSEEN, (c) =>
            `<U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}>`);
    }

    /* The buttons still copy the characters themselves. */
    function makeVisible(parent) {
        const walker = document.createTreeWalker(parent, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const shown = visible(walker.currentNode.data);
            if (shown !== walker.currentNode.data) walker.currentNode.data = shown;
        }
    }

    function addText(text, parent, plain) {
        if (plain || text.length > MARKDOWN_UP_TO) parent.append(element('pre', 'plain', text));
        else Markdown.render(text, parent, codeBlock);
        makeVisible(parent);
    }

    /* Where to cut a long text: at the end of a line when there is one in reach. */
    function cutAt(text) {
        const line = text.lastIndexOf('\n', SHOWN_AT_ONCE);
        return line > SHOWN_AT_ONCE / 2 ? line : SHOWN_AT_ONCE;
    }

    function size(text) {
        return text.length < 1e6 ? `${Math.round(text.length / 1e3)} thousand characters` :
            `${(text.length / 1e6).toFixed(1)} million characters`;
    }

    function body(text, plain = false) {
        const node = element('div', 'text');
        if (text.length <= SHOWN_AT_ONCE * 1.2) {
            addText(text, node, plain);
            return node;
        }
        addText(text.slice(0, cutAt(text)).toWellFormed(), node, plain);
        node.append(button('button more', `Show all, ${size(text)}`, () => {
            node.replaceChildren();
            addText(text, node, plain);
            node.tabIndex = -1;
            node.focus({ preventScroll: true });
            highlight();
        }));
        return node;
    }

    function card(kind, name, hint, ...content) {
        const summary = element('summary', '', element('span', 'kind', kind), element('b', '', visible(name)),
            element('span', 'hint', visible(hint)));
        return element('details', 'card', summary, ...content);
    }

    function valueCard(kind, name, value) {
        const text = shownValue(value);
        return card(kind, name, onOneLine(text.replace(/^\s*[{[]|[}\]]\s*$/g, ''), 100), body(text, true));
    }

    function resultCard(message) {
        const name = message.session.tools.get(message.data.tool_call_id) ?? message.data.tool_call_id;
        return valueCard('Result', name ?? 'tool', message.content);
    }

    const strings = (value) => (Array.isArray(value) ? value.map(String) : []);

    function notes(data) {
        const all = [];
        if (data.images) all.push(plural(Number(data.images) || 1, 'image', 'images'));
        for (const file of strings(data.files)) all.push(element('code', '', file));
        for (const file of strings(data.files_modified)) all.push(element('code', '', file), 'changed');
        if (data.finish_reason && !['stop', 'tool_calls'].includes(data.finish_reason))
            all.push(element('strong', '', `ended: ${data.finish_reason}`));
        if (!all.length) return [];
        return [element('p', 'notes', ...all.map((note) => element('span', '', note)))];
    }

    function sources(data) {
        const links = strings(data.sources).map((address) => element('li', '', Markdown.webLink(address) ?? address));
        const list = element('ul', 'notes sources', ...links);
        makeVisible(list);
        return links.length ? [list] : [];
    }

    function messageHead(message, id) {
        const { data } = message;
        const name = element('h2', 'who', NAMES[message.role] ?? String(message.role));
        const link = element('a', 'when', timeElement(message, clock));
        name.id = `${id}-who`;
        link.id = `${id}-when`;
        link.href = message.address;
        link.title = 'Link to this message';
        const tools = element('span', 'tools', button('quiet', 'Copy',
            (event) => copy(message.content, event.currentTarget)));
        tools.firstChild.setAttribute('aria-label', 'Copy this message');
        const model = data.model ? [element('span', 'model', String(data.model))] : [];
        const used = data.usage?.output_tokens;
        if (used > 0) model.push(element('span', 'model', plural(used, 'token', 'tokens')));
        return element('header', 'head', name, link, ...model, tools);
    }

    function messageElement(message, position) {
        const id = `m${position}`;
        const { data } = message;
        const bubble = element('div', 'bubble');
        if (message.role === 'tool') bubble.append(resultCard(message));
        else if (message.content) bubble.append(body(message.content));
        for (const call of callsOf(data)) bubble.append(valueCard('Call', call.name, call.args));
        if (Array.isArray(data.edit_results) && data.edit_results.length)
            bubble.append(valueCard('Edits', '', data.edit_results));
        bubble.append(...sources(data), ...notes(data));
        if (!bubble.hasChildNodes()) bubble.append(element('p', 'empty', 'empty'));

        const article = element('article', `message ${roleOf(message)}`);
        const before = messageList.items[position - 1];
        if (message.time && (!before || !sameDay(before, message)))
            article.append(element('p', 'day', dayFormat.format(message.time)));
        article.append(messageHead(message, id), bubble);
        article.tabIndex = -1;
        article.dataset.position = position;
        article.setAttribute('aria-posinset', position + 1);
        article.setAttribute('aria-setsize', messageList.items.length);
        article.setAttribute('aria-labelledby', `${id}-who ${id}-when`);
        article.classList.toggle('named', message === state.message);
        return article;
    }

    /* ---- the two lists ---- */

    const feed = element('div', 'feed');
    $('messages').append(feed);
    const messageList = new ChunkedList({
        scroller: $('messages'),
        holder: feed,
        size: 20,
        guess: 160,
        make: messageElement,
        made: () => highlight(),
    });

    function sideItem(address, current, ...children) {
        const link = element('a', 'entry', ...children);
        link.href = address;
        if (current) link.setAttribute('aria-current', 'true');
        const item = element('div', 'item', link);
        item.setAttribute('role', 'listitem');
        return item;
    }

    function sessionItem(session) {
        return sideItem(session.address, session === state.session,
            element('span', 'entry-title', visible(session.title)),
            element('span', 'entry-facts', timeElement(session.latest, shortDay), ' · ',
                plural(session.messages.length, 'message', 'messages')));
    }

    function hitItem(message) {
        const snippet = element('span', 'entry-snippet');
        for (const [text, match] of Search.snippet(message.texts, state.asked))
            snippet.append(match ? element('mark', '', visible(text)) : visible(text));
        return sideItem(message.address, message === state.message,
            element('span', 'entry-facts', NAMES[message.role] ?? String(message.role), ' · ',
                timeElement(message, shortDay)),
            snippet, element('span', 'entry-facts', visible(message.session.title)));
    }

    const sideHolder = element('div', 'entries');
    sideHolder.setAttribute('role', 'list');
    $('side-list').append(sideHolder);
    const sideList = new ChunkedList({
        scroller: $('side-list'),
        holder: sideHolder,
        size: 50,
        guess: 72,
        make: (item) => (item instanceof Session ? sessionItem(item) : hitItem(item)),
    });

    function markCurrent() {
        const current = state.query ? state.message : state.session;
        sideList.built().forEach((item, i) => {
            const link = item.firstChild;
            if (sideList.items[i] === current) link.setAttribute('aria-current', 'true');
            else link.removeAttribute('aria-current');
        });
    }

    function say(text) {
        $('status').textContent = text;
    }

    function showSide() {
        $('side-list').setAttribute('aria-label', state.query ? 'Hits' : 'Sessions');
        sideList.fill(state.query ? state.hits : newestFirst);
        if (!state.query)
            say(`${plural(newestFirst.length, 'session', 'sessions')}, ` +
                plural(messages.length, 'message', 'messages'));
    }

    /* ---- the messages of a session ---- */

    function showHead(session) {
        $('title').textContent = visible(session.title);
        document.title = `${visible(session.title)} – Conversations`;
        const [first, last] = [session.messages[0], session.latest];
        const days = [timeElement(first, shortDay)];
        if (!sameDay(first, last)) days.push(' – ', timeElement(last, shortDay));
        $('facts').replaceChildren(element('span', '', ...days),
            element('span', '', plural(session.messages.length, 'message', 'messages')),
            element('span', '', element('code', '', session.id)));
    }

    function showMessages() {
        const shown = state.session?.messages.filter(wanted) ?? [];
        if (shown.length) feed.setAttribute('role', 'feed');
        else feed.removeAttribute('role');
        messageList.fill(shown);
        if (!shown.length)
            feed.append(element('p', 'nothing', state.session ?
                'No message of this session is of a role that is shown.' : 'This page holds no messages.'));
    }

    function showSession(session) {
        if (session === state.session) return;
        state.session = session;
        showHead(session);
        showMessages();
        $('messages').scrollTop = 0;
    }

    /* Into sight with it, and with its first match when it is longer than the window. */
    function reveal(message, focus) {
        const position = messageList.items.indexOf(message);
        const article = position < 0 ? undefined : messageList.at(position);
        if (!article) return;
        for (const other of feed.querySelectorAll('.named')) other.classList.remove('named');
        article.classList.add('named');
        article.scrollIntoView({ block: 'start' });
        if (state.asked) revealMatch(article);
        if (focus) article.focus({ preventScroll: true });
    }

    function revealMatch(article) {
        let [range] = Search.ranges(article, state.asked);
        if (!range) {
            article.querySelector('.more')?.click();
            [range] = Search.ranges(article, state.asked);
        }
        const folded = range?.startContainer.parentElement.closest('details');
        if (folded) folded.open = true;
        const box = range?.getBoundingClientRect();
        const window = $('messages').getBoundingClientRect();
        if (box && box.bottom > window.bottom)
            $('messages').scrollTop += box.top - window.top - window.height / 3;
    }

    /* Matches are painted, not put into the document: CSS Custom Highlight API, level 1. */
    function highlight() {
        if (!globalThis.Highlight) return;
        const all = new Highlight();
        if (state.asked) {
            for (const article of messageList.built()) {
                if (all.size > MOST_RANGES) break;
                for (const bubble of article.getElementsByClassName('bubble'))
                    for (const range of Search.ranges(bubble, state.asked)) all.add(range);
            }
        }
        CSS.highlights.set('match', all);
    }

    /* ---- addresses ---- */

    function entryState() {
        return {
            query: state.query,
            hidden: [...state.hidden],
            anchor: messageList.anchor(),
            side: $('side-list').scrollTop,
            pane: document.body.dataset.pane,
        };
    }

    /* An address without its query, and with the one that is asked now. */
    const withoutQuery = (hash) => hash.replace(/(?:^#|&)q=.*$/s, '');

    function withQuery(hash) {
        const place = withoutQuery(hash);
        if (!state.query) return place;
        return `${place || '#'}${place.length > 1 ? '&' : ''}q=${encodeURIComponent(state.query)}`;
    }

    function remember() {
        history.replaceState(entryState(), '', location.href.split('#', 1)[0] + withQuery(location.hash));
    }

    function parseAddress(hash) {
        const place = withoutQuery(hash).slice(1);
        let query = '';
        try {
            query = decodeURIComponent(/(?:^#|&)q=(.*)$/s.exec(hash)?.[1] ?? '');
            const [session, message] = place.split('/').map(decodeURIComponent);
            return { session: sessions.get(session), id: message, named: session, query };
        } catch {
            return { session: undefined, id: undefined, named: place, query };
        }
    }

    /* Shows what an address names; entry: what the browser's history holds of it, or null. */
    function show(hash, entry, focus) {
        const { session, id, named, query } = parseAddress(hash);
        state.message = session?.messages.find((m) => m.data.id === id) ?? null;
        if (entry) restoreFilters(entry);
        else if (query !== state.query) askFor(query, () => {});
        if (state.message && !wanted(state.message)) {
            state.hidden.delete(roleOf(state.message));
            showRoles();
            state.session = null;
        }
        if (newestFirst.length) showSession(session ?? newestFirst[0]);
        else showMessages();
        document.body.dataset.pane = entry?.pane ?? (session ? 'messages' : 'sessions');
        if (entry?.anchor) messageList.scrollTo(entry.anchor);
        else if (state.message) reveal(state.message, focus);
        else if (focus) $('messages').focus({ preventScroll: true });
        if (entry) $('side-list').scrollTop = entry.side ?? 0;
        markCurrent();
        if (named && !session) say(`No session ${named} is in this page`);
        else if (id !== undefined && !state.message) say(`No message ${id} is in this session`);
    }

    function restoreFilters(entry) {
        const hidden = new Set(entry.hidden);
        if (hidden.symmetricDifference(state.hidden).size) {
            state.hidden = hidden;
            showRoles();
            state.session = null;
        }
        if (entry.query !== state.query)
            askFor(entry.query, () => { $('side-list').scrollTop = entry.side ?? 0; });
    }

    function askFor(query, done) {
        $('query').value = query;
        runSearch(query, done);
    }

    function visit(address) {
        remember();
        const whole = withQuery(address);
        if (whole !== location.hash) history.pushState(null, '', whole);
        show(whole, null, true);
        remember();
    }

    /* ---- searching ---- */

    let timer = 0;

    /* Sets what a query means. Returns what is wrong with it, or ''. */
    function readQuery(query) {
        state.asked = null;
        try {
            if (query) state.asked = new Query(query);
        } catch (error) {
            if (!(error instanceof QueryError)) throw error;
            return error.message;
        }
        return '';
    }

    function runSearch(query, done = () => {}) {
        clearTimeout(timer);
        state.query = query;
        state.hits = [];
        const problem = readQuery(query);
        highlight();
        if (!state.asked) {
            search.stop();
            showSide();
            if (problem) say(problem);
            done();
            return;
        }
        say('Searching…');
        let shown = false;
        search.run(state.asked, wanted, (hits, finished, lack, forms) => {
            state.hits = hits;
            if (forms && state.asked !== forms.query) {
                state.asked = forms.query;
                highlight();
            }
            if (finished || (!shown && hits.length)) showSide();
            shown = shown || hits.length > 0;
            if (!finished) return;
            const among = new Set(hits.map((m) => m.session)).size;
            const sessions = plural(among, 'session', 'sessions');
            const fit = lack === 0 ? `No message has all words; together they are in ${sessions}` :
                lack ? `No session has all words; all but one are in ${sessions}` :
                    `${plural(hits.length, 'message', 'messages')} in ${sessions}`;
            const said = forms ? `${forms.said[0].toUpperCase()}${forms.said.slice(1)}: ` : '';
            say(hits.length ? said + fit : `Nothing matches “${onOneLine(query, 40)}”`);
            done();
        });
    }

    function queryChanged() {
        clearTimeout(timer);
        timer = setTimeout(() => {
            if ($('query').value === state.query) return;
            runSearch($('query').value, remember);
        }, DEBOUNCE);
    }

    function endSearch() {
        $('query').value = '';
        runSearch('', remember);
        document.body.dataset.pane = state.message ? 'messages' : document.body.dataset.pane;
    }

    function stepHit(step) {
        if (!state.hits.length) return;
        const now = state.hits.indexOf(state.message);
        const next = now < 0 ? (step > 0 ? 0 : state.hits.length - 1) : now + step;
        if (!state.hits[next]) return;
        visit(state.hits[next].address);
        sideList.at(next)?.scrollIntoView({ block: 'nearest' });
    }

    /* ---- roles ---- */

    function showRoles() {
        for (const box of $('roles').querySelectorAll('input'))
            box.checked = !state.hidden.has(box.name);
    }

    function roleChanged(event) {
        const { name, checked } = event.target;
        if (checked) state.hidden.delete(name);
        else state.hidden.add(name);
        const at = messageList.items[messageList.anchor()?.index];
        showMessages();
        const near = messageList.items.findIndex((m) => m.index >= (at?.index ?? 0));
        if (near > 0) messageList.scrollTo({ index: near, offset: 0 });
        if (state.query) runSearch(state.query, remember);
        else remember();
    }

    function addRoles() {
        const present = new Set(messages.map(roleOf));
        for (const [role, label] of Object.entries({ ...ROLES, other: 'Other' })) {
            if (!present.has(role)) continue;
            const box = element('input');
            box.type = 'checkbox';
            box.name = role;
            box.checked = true;
            $('roles').append(element('label', `role ${role}`, box, label));
        }
        $('roles').addEventListener('change', roleChanged);
        $('roles').hidden = present.size < 2;
    }

    /* ---- colours ---- */

    const THEMES = { auto: 'like the system', light: 'light', dark: 'dark' };

    function setTheme(theme) {
        document.documentElement.dataset.theme = theme;
        const label = `Colours: ${THEMES[theme]}`;
        $('theme').setAttribute('aria-label', label);
        $('theme').title = `${label} (t)`;
        try {
            localStorage.setItem('chathist-theme', theme);
        } catch {
            /* A page that may keep nothing is shown like the system next time. */
        }
    }

    function storedTheme() {
        try {
            const theme = localStorage.getItem('chathist-theme');
            return theme in THEMES ? theme : 'auto';
        } catch {
            return 'auto';
        }
    }

    function nextTheme() {
        const names = Object.keys(THEMES);
        setTheme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
    }

    /* ---- keys ---- */

    function focusedMessage() {
        const article = document.activeElement.closest?.('article');
        return article ? Number(article.dataset.position) : -1;
    }

    function stepMessage(step) {
        const focused = focusedMessage();
        const from = messageList.anchor();
        let next = focused + step;
        if (focused < 0) next = from ? from.index + (step > 0 && from.offset > 8 ? 1 : 0) : 0;
        const article = messageList.at(next);
        if (next < 0 || !article) return;
        article.focus({ preventScroll: true });
        article.scrollIntoView({ block: 'start' });
    }

    function stepSession(step) {
        const next = newestFirst[newestFirst.indexOf(state.session) + step];
        if (next) visit(next.address);
    }

    /* The arrows in the list on the left. */
    function stepEntry(step) {
        const entries = sideList.built();
        const now = entries.findIndex((item) => item.contains(document.activeElement));
        if (now + step < 0) $('query').focus();
        else sideList.at(now + step)?.firstChild.focus();
    }

    const copyFocused = () => document.activeElement.closest?.('article')
        ?.querySelector('.tools button').click();

    const KEYS = {
        '/': () => $('query').select() ?? $('query').focus(),
        j: () => stepMessage(1),
        k: () => stepMessage(-1),
        n: () => stepHit(1),
        p: () => stepHit(-1),
        ']': () => stepSession(1),
        '[': () => stepSession(-1),
        c: copyFocused,
        t: nextTheme,
        '?': () => $('keys').showModal(),
        Escape: endSearch,
    };

    function keyInQuery(event) {
        if (event.key === 'Escape') endSearch();
        else if (event.key === 'ArrowDown') stepEntry(1);
        else if (event.key === 'Enter') searchAndStep(event.shiftKey ? -1 : 1);
        else return;
        event.preventDefault();
    }

    function searchAndStep(step) {
        if ($('query').value === state.query) stepHit(step);
        else runSearch($('query').value, () => stepHit(step));
    }

    function keyPressed(event) {
        if (event.ctrlKey || event.altKey || event.metaKey || $('keys').open) return;
        if (event.target === $('query')) {
            keyInQuery(event);
            return;
        }
        const arrow = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (arrow && $('side-list').contains(event.target)) stepEntry(arrow);
        else if (arrow && event.target.matches('article')) stepMessage(arrow);
        else if (Object.hasOwn(KEYS, event.key)) KEYS[event.key]();
        else return;
        event.preventDefault();
    }

    /* ---- all together ---- */

    function clicked(event) {
        const link = event.target.closest('a');
        if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        const address = link.getAttribute('href') ?? '';
        if (!address.startsWith('#')) return;
        event.preventDefault();
        if (link.className === 'skip') $('messages').focus();
        else visit(address);
    }

    function listen() {
        let scrolled = 0;
        const rememberSoon = () => {
            clearTimeout(scrolled);
            scrolled = setTimeout(remember, 200);
        };
        $('messages').addEventListener('scroll', rememberSoon, { passive: true });
        $('side-list').addEventListener('scroll', rememberSoon, { passive: true });
        $('query').addEventListener('input', queryChanged);
        $('theme').addEventListener('click', nextTheme);
        $('help').addEventListener('click', () => $('keys').showModal());
        $('keys-close').addEventListener('click', () => $('keys').close());
        $('back').addEventListener('click', () => {
            document.body.dataset.pane = 'sessions';
            remember();
        });
        document.addEventListener('click', clicked);
        document.addEventListener('keydown', keyPressed);
        addEventListener('popstate', (event) => {
            clearTimeout(scrolled);
            show(location.hash, event.state, false);
        });
        addEventListener('pagehide', remember);
        addEventListener('beforeprint', () => messageList.buildAll());
    }

    history.scrollRestoration = 'manual';
    setTheme(storedTheme());
    addRoles();
    showSide();
    listen();
    $('query').disabled = false;
    if (!messages.length) $('title').textContent = 'No messages';
    show(location.hash, history.state, false);
})();
