/*
 * page - the browser of a history: sessions or hits on the left, messages on the right.
 *
 * What is shown is told by the address, `#session/message&q=query`, and by what an entry of the
 * browser's history holds: the query, the filters, the roles that are hidden, the places that were scrolled to.
 * Nothing of a message becomes markup: every node is made here or in markdown.js, its text a text node.
 *
 * The page of a folder has one line for each session, and parts.js loads the messages.
 */
(() => {
    const DEBOUNCE = 300; /* milliseconds */
    const SHOWN_AT_ONCE = 20000; /* characters of a message before "Show all" */
    const MARKDOWN_UP_TO = 200000; /* above it a message is plain text */
    const MOST_RANGES = 5000;
    const BEGUN_HERE = 'begun here'; /* in place of a program */
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

        constructor(data, session, index = 0) {
            this.data = data;
            this.session = session;
            this.role = data.role;
            this.index = index;
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
            return `${this.session.address}/${encodeURIComponent(this.data.id)}`;
        }
    }

    class Session {
        #days;

        /* key: its name in addresses, the id unless a session of another repository has it, too. */
        constructor(id, repository, key) {
            Object.assign(this, { id, repository, key });
            this.name = ''; /* the title that it was given */
            this.facts = {}; /* what the export says of it */
            this.used = undefined; /* when it was used last, as `written` of a message */
            this.messages = []; /* none while they are in a part that was not loaded */
            this.tools = new Map(); /* name by id of the call */
        }

        add(data) {
            const message = new Message(data, this, this.messages.length);
            this.messages.push(message);
            for (const call of callsOf(data)) this.tools.set(call.id, call.name);
            return message;
        }

        get count() {
            return this.facts.count ?? this.messages.length;
        }

        get loaded() {
            return !this.facts.file || this.messages.length > 0;
        }

        get first() {
            return this.facts.file ? new Message({ timestamp: this.facts.first }, this) : this.messages[0];
        }

        get latest() {
            if (this.facts.file) return new Message({ timestamp: this.facts.last }, this);
            return this.messages.reduce((a, b) => (b.written >= a.written ? b : a));
        }

        /* The programs that it was imported from. */
        get programs() {
            if (this.facts.file) return new Set(this.facts.programs ?? [BEGUN_HERE]);
            const origins = this.messages.map((m) => m.data.origin).filter((origin) => typeof origin === 'string');
            const programs = origins.map((origin) => /^[^:/]*/.exec(origin)[0]).filter(Boolean);
            return new Set(programs.length ? programs : [BEGUN_HERE]);
        }

        /* The days on which it has messages, by the reader's clock. */
        get days() {
            const times = () => this.facts.active?.map((quarter) => quarter * 900000) ??
                this.messages.map((m) => m.time).filter(Boolean);
            return this.#days ??= new Set(times().map(Calendar.day));
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
            return `#${encodeURIComponent(this.key)}`;
        }
    }

    function* parsed(text) {
        for (const line of text.split('\n')) if (line) yield JSON.parse(line);
    }

    /* A line without an id is no message: it describes a session, or names the repository of the sessions after it. */
    function readHistory() {
        const sessions = new Map();
        const messages = [];
        let repository = '';
        let own = new Map(); /* sessions of this repository by id */
        const sessionOf = (id) => {
            let session = own.get(id);
            if (!session) {
                session = new Session(id, repository, sessions.has(id) ? `${id}@${repository}` : id);
                own.set(id, session);
                sessions.set(session.key, session);
            }
            return session;
        };
        for (const data of parsed($('history').textContent)) {
            if (data.id === undefined && data.role === 'repository') {
                repository = data.content;
                own = new Map();
            } else if (data.id === undefined) {
                const session = sessionOf(data.session_id);
                session.facts = data;
                session.name = data.title ?? '';
                session.used = writtenAt(data);
            } else if (data.role === 'title') sessionOf(data.session_id).name = data.content.trim();
            else messages.push(sessionOf(data.session_id).add(data));
        }
        $('history').remove();
        for (const [key, session] of sessions) {
            if (session.messages.length) session.used ??= session.latest.written;
            else if (!session.count) sessions.delete(key);
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
    const parts = new Parts(newestFirst);
    const total = newestFirst.reduce((sum, session) => sum + session.count, 0);
    const search = new Search(parts.some ? partsNewestFirst : () => [messagesNewestFirst()],
        parts.some ? Parts.MOST_HITS : Infinity);
    let ordered = null;
    Query.hasRepositories = newestFirst.some((session) => session.repository);

    function messagesNewestFirst() {
        return ordered ??= messages.slice().reverse().sort(Query.newestFirst);
    }

    /* The messages of one part after the other. They are forgotten unless they are among the hits. */
    async function* partsNewestFirst() {
        const files = parts.files(passes);
        for (const [i, file] of files.entries()) {
            say(`Searching, file ${(i + 1).toLocaleString('en')} of ${files.length.toLocaleString('en')}…`);
            const batch = [];
            for (const data of parsed(await parts.load(file))) {
                const session = parts.session(file, data.session_id);
                if (session && data.role !== 'title') batch.push(new Message(data, session));
            }
            yield batch.reverse().sort(Query.newestFirst);
        }
    }

    /* Loads the messages of a session, and forgets those of the part that was shown before. */
    async function loadMessages(session) {
        const { file } = session.facts;
        const text = await parts.load(file);
        for (const other of parts.shown) Object.assign(other, { messages: [], tools: new Map() });
        parts.shown = parts.sessionsOf(file);
        for (const data of parsed(text))
            if (data.role !== 'title') parts.session(file, data.session_id)?.add(data);
    }

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
        address: '', /* what is shown, or is being loaded */
        query: '', /* as it was typed */
        asked: null, /* what it means; null without one, and for one with an error */
        hidden: new Set(), /* roles */
        filters: { repository: '', program: '', day: '' }, /* '' shows all */
        hits: [],
    };

    function passes(session) {
        const { repository, program, day } = state.filters;
        return (!repository || session.repository === repository) && (!program || session.programs.has(program)) &&
            (!day || session.days.has(day));
    }

    const filtered = () => Object.values(state.filters).some(Boolean);
    const shownSessions = () => (filtered() ? newestFirst.filter(passes) : newestFirst);

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
        const facts = element('span', 'entry-facts', timeElement(session.latest, shortDay), ' · ',
            plural(session.count, 'message', 'messages'));
        if (repositories.length > 1) facts.append(' · ', visible(session.repository));
        return sideItem(session.address, session === state.session,
            element('span', 'entry-title', visible(session.title)), facts);
    }

    function hitItem(message) {
        const snippet = element('span', 'entry-snippet');
        for (const [text, match] of Search.snippet(message.texts, state.asked))
            snippet.append(match ? element('mark', '', visible(text)) : visible(text));
        const facts = element('span', 'entry-facts', NAMES[message.role] ?? String(message.role), ' · ',
            timeElement(message, shortDay));
        if (repositories.length > 1) facts.append(' · ', visible(message.session.repository));
        return sideItem(message.address, message.address === state.message?.address, facts, snippet, element('span', 'entry-facts', visible(message.session.title)));
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
        const current = (state.query ? state.message : state.session)?.address;
        sideList.built().forEach((item, i) => {
            const link = item.firstChild;
            if (sideList.items[i].address === current) link.setAttribute('aria-current', 'true');
            else link.removeAttribute('aria-current');
        });
    }

    function say(text) {
        $('status').textContent = text;
    }

    function showSide() {
        $('side-list').setAttribute('aria-label', state.query ? 'Hits' : 'Sessions');
        const shown = shownSessions();
        sideList.fill(state.query ? state.hits : shown);
        if (state.query) return;
        if (filtered()) say(`${shown.length.toLocaleString('en')} of ${plural(newestFirst.length, 'session', 'sessions')}`);
        else say(`${plural(newestFirst.length, 'session', 'sessions')}, ${plural(total, 'message', 'messages')}`);
    }

    /* ---- the messages of a session ---- */

    function showHead(session) {
        $('title').textContent = visible(session.title);
        document.title = `${visible(session.title)} – Conversations`;
        const { first, latest } = session;
        const days = [timeElement(first, shortDay)];
        if (!sameDay(first, latest)) days.push(' – ', timeElement(latest, shortDay));
        $('facts').replaceChildren(element('span', '', ...days),
            element('span', '', plural(session.count, 'message', 'messages')),
            element('span', '', element('code', '', visible(session.id))));
        if (session.repository) $('facts').append(element('span', '', visible(session.repository)));
        if (session.facts.came) $('facts').append(element('span', '', 'came with the repository'));
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

    /* Loads the messages of a session and then shows its place, unless another one is to be shown meanwhile. */
    let loading = 0;
    async function loadAndShow(session, ...place) {
        const ticket = ++loading;
        if (place[2]) $('messages').focus({ preventScroll: true });
        $('title').textContent = 'Loading…';
        try {
            await loadMessages(session);
        } catch (error) {
            if (ticket === loading) $('title').textContent = 'Not there';
            say(error.message);
            return;
        }
        state.session = null;
        if (ticket !== loading) return;
        show(...place);
        remember();
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
            filters: state.filters,
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
            const found = sessions.get(session) ?? newestFirst.find((one) => `${one.id}@${one.repository}` === session);
            return { session: found, id: message, named: session, query };
        } catch {
            return { session: undefined, id: undefined, named: place, query };
        }
    }

    /* Shows what an address names; entry: what the browser's history holds of it, or null. */
    function show(hash, entry, focus) {
        const { session, id, named, query } = parseAddress(hash);
        state.address = withoutQuery(hash);
        const target = session ?? newestFirst[0];
        if (target && !target.loaded) {
            loadAndShow(target, hash, entry, focus);
            return false; /* not yet */
        }
        state.message = session?.messages.find((m) => m.data.id === id) ?? null;
        if (entry) restoreFilters(entry);
        else if (query !== state.query) askFor(query, () => {});
        if (state.message && !wanted(state.message)) {
            state.hidden.delete(roleOf(state.message));
            showRoles();
            state.session = null;
        }
        if (target) showSession(target);
        else showMessages();
        document.body.dataset.pane = entry?.pane ?? (session ? 'messages' : 'sessions');
        if (entry?.anchor) messageList.scrollTo(entry.anchor);
        else if (state.message) reveal(state.message, focus);
        else if (focus) $('messages').focus({ preventScroll: true });
        if (entry) $('side-list').scrollTop = entry.side ?? 0;
        markCurrent();
        if (named && !session) say(`No session ${named} is in this page`);
        else if (id !== undefined && !state.message) say(`No message ${id} is in this session`);
        return true;
    }

    function restoreFilters(entry) {
        const hidden = new Set(entry.hidden);
        if (hidden.symmetricDifference(state.hidden).size) {
            state.hidden = hidden;
            showRoles();
            state.session = null;
        }
        const before = JSON.stringify(state.filters);
        Object.assign(state.filters, { repository: '', program: '', day: '' }, entry.filters);
        if (before !== JSON.stringify(state.filters)) {
            showFilters();
            if (entry.query === state.query) showSide();
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
        if (show(whole, null, true)) remember();
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
        const among = (message) => wanted(message) && passes(message.session);
        search.run(state.asked, among, (hits, finished, lack, forms) => {
            state.hits = hits;
            if (forms && state.asked !== forms.query) {
                state.asked = forms.query;
                highlight();
            }
            if (finished || (!shown && hits.length)) showSide();
            shown = shown || hits.length > 0;
            if (!finished) return;
            const sessions = plural(new Set(hits.map((m) => m.session)).size, 'session', 'sessions');
            const fit = lack === 0 ? `No message has all words; together they are in ${sessions}` :
                lack ? `No session has all words; all but one are in ${sessions}` :
                    `${plural(hits.length, 'message', 'messages')} in ${sessions}`;
            const most = hits.length >= search.most ? ', the newest; more match' : '';
            const said = forms ? `${forms.said[0].toUpperCase()}${forms.said.slice(1)}: ` : '';
            say(hits.length ? said + fit + most : `Nothing matches “${onOneLine(query, 40)}”`);
            done();
        }).catch((error) => say(error.message));
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
        const now = state.hits.findIndex((hit) => hit.address === state.address);
        const next = now < 0 ? (step > 0 ? 0 : state.hits.length - 1) : now + step;
        if (!state.hits[next]) return;
        visit(state.hits[next].address);
        sideList.at(next)?.scrollIntoView({ block: 'nearest' });
    }

    /* ---- repository, program and day ---- */

    const repositories = [...new Set(newestFirst.map((session) => session.repository))].sort();
    const programs = [...new Set(newestFirst.flatMap((session) => [...session.programs]))].sort();
    const calendar = new Calendar($('calendar'), element, button, (day) => setFilter('day', day));

    function setFilter(name, value) {
        state.filters = { ...state.filters, [name]: value };
        showFilters();
        if (state.query) runSearch(state.query, remember);
        else {
            showSide();
            remember();
        }
    }

    /* The days of the sessions that pass the other filters. */
    function countDays() {
        const counts = new Map();
        for (const session of newestFirst.filter((one) => passes(one))) {
            for (const day of session.days) counts.set(day, (counts.get(day) ?? 0) + 1);
        }
        return counts;
    }

    function showFilters() {
        const { repository, program, day } = state.filters;
        $('repository').value = repository;
        $('program').value = program;
        state.filters = { repository, program, day: '' };
        calendar.show(countDays(), day);
        state.filters.day = day;
        $('all').hidden = !filtered();
    }

    function addChoice(name, all, values) {
        $(name).append(new Option(all, ''), ...values.map((value) => new Option(visible(value), value)));
        $(name).addEventListener('change', (event) => setFilter(name, event.target.value));
        $(name).hidden = values.length < 2;
    }

    function addFilters() {
        addChoice('repository', 'All repositories', repositories);
        addChoice('program', 'All programs', programs);
        $('all').addEventListener('click', () => {
            state.filters = { repository: '', program: '', day: '' };
            setFilter('day', '');
            $('query').focus();
        });
        showFilters();
        $('calendar').hidden = calendar.counts.size < 2;
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
        const present = new Set(parts.some ? [...Object.keys(ROLES), 'other'] : messages.map(roleOf));
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
        const shown = shownSessions();
        const next = shown[shown.indexOf(state.session) + step];
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
    addFilters();
    showSide();
    listen();
    $('query').disabled = false;
    if (!total) $('title').textContent = 'No messages';
    show(location.hash, history.state, false);
})();
