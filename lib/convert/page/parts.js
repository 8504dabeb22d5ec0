/*
 * parts - the files of a folder that have the messages of its page. Each is a script that hands its lines to
 * part(): a page that was opened from a file may not read other files, but load scripts.
 */
class Parts {
    static NAME = /^parts\/[0-9a-z-]+\.js$/;
    static MOST_HITS = 5000; /* messages that a search keeps */

    constructor(sessions) {
        this.of = new Map(); /* sessions by id, by file */
        for (const session of sessions) {
            const { file } = session.facts;
            if (!file) continue;
            if (!this.of.has(file)) this.of.set(file, new Map());
            this.of.get(file).set(session.id, session);
        }
        this.shown = []; /* the sessions whose messages are in memory */
        this.text = null;
        if (!this.some) return;
        globalThis.part = (text) => { this.text = text; };
        const rules = { createScriptURL: (name) => (Parts.NAME.test(name) ? name : '') };
        /* Only this page is allowed to make such a policy. A browser that knows none takes a text. */
        this.policy = globalThis.trustedTypes?.createPolicy('parts', rules) ?? rules;
    }

    get some() {
        return this.of.size > 0;
    }

    /* Those with a session that passes, in the order of their newest ones. */
    files(passes) {
        return [...this.of].filter(([, sessions]) => [...sessions.values()].some(passes)).map(([file]) => file);
    }

    sessionsOf(file) {
        return [...this.of.get(file).values()];
    }

    session(file, id) {
        return this.of.get(file).get(id);
    }

    /* Resolves to the lines of a file. The script is run just before its event, so that `text` is its own. */
    load(file) {
        return new Promise((resolve, reject) => {
            const script = document.createElement('script');
            script.src = this.policy.createScriptURL(file);
            script.onload = () => {
                resolve(this.text);
                this.text = null;
                script.remove();
            };
            script.onerror = () => {
                reject(new Error(`${file} is missing: export the folder again`));
                script.remove();
            };
            document.head.append(script);
        });
    }
}
