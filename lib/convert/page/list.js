/*
 * list - a long list that makes its items when they come near the window.
 *
 * The items are parted into chunks. A chunk out of sight is one empty element with a height that was
 * guessed; once made it stays. So opening costs one element for `size` items, whatever their number.
 */
class ChunkedList {
    /*
     * scroller: what scrolls. holder: where the chunks go. make(item, index) gives an element;
     * guess is its height in pixels; made(elements) hears of those that are new.
     */
    constructor({ scroller, holder, size, guess, make, made = () => {} }) {
        Object.assign(this, { scroller, holder, size, guess, make, made });
        this.items = [];
        this.chunks = [];
        this.observer = new IntersectionObserver((entries) => {
            for (const entry of entries)
                if (entry.isIntersecting) this.build(this.chunks.indexOf(entry.target));
        }, { root: scroller, rootMargin: '1000px 0px' });
        /* Elsewhere the browser keeps what is in sight where it is. */
        this.anchors = !CSS.supports('overflow-anchor', 'auto');
    }

    fill(items) {
        this.observer.disconnect();
        this.items = items;
        this.chunks = [];
        const all = document.createDocumentFragment();
        for (let from = 0; from < items.length; from += this.size) {
            const chunk = document.createElement('div');
            chunk.className = 'chunk';
            chunk.setAttribute('role', 'presentation');
            chunk.style.minHeight = `${Math.min(this.size, items.length - from) * this.guess}px`;
            this.chunks.push(chunk);
            all.append(chunk);
        }
        this.holder.replaceChildren(all);
        for (const chunk of this.chunks) this.observer.observe(chunk);
        this.build(0);
    }

    build(number) {
        const chunk = this.chunks[number];
        if (!chunk || chunk.firstChild) return;
        const above = chunk.getBoundingClientRect().bottom < this.scroller.getBoundingClientRect().top;
        const before = this.anchors && above ? chunk.offsetHeight : 0;
        const from = number * this.size;
        const elements = this.items.slice(from, from + this.size)
            .map((item, i) => this.make(item, from + i));
        chunk.append(...elements);
        chunk.style.minHeight = '';
        if (this.anchors && above) this.scroller.scrollTop += chunk.offsetHeight - before;
        this.observer.unobserve(chunk);
        this.made(elements);
    }

    /* The element of an item, made if need be, with its neighbours, so that it does not move when
     * they come into sight. undefined when there is none. */
    at(index) {
        const number = Math.floor(index / this.size);
        for (const near of [number - 1, number, number + 1]) this.build(near);
        return this.chunks[number]?.children[index % this.size];
    }

    built() {
        return this.chunks.flatMap((chunk) => [...chunk.children]);
    }

    buildAll() {
        for (let i = 0; i < this.chunks.length; i++) this.build(i);
    }

    /* The first item in sight and how far its top is from the window's, or null. */
    anchor() {
        const top = this.scroller.getBoundingClientRect().top;
        for (let i = 0; i < this.chunks.length; i++) {
            const box = this.chunks[i].getBoundingClientRect();
            if (box.bottom <= top) continue;
            const children = [...this.chunks[i].children];
            const n = children.findIndex((child) => child.getBoundingClientRect().bottom > top);
            if (n < 0) continue;
            return { index: i * this.size + n, offset: top - children[n].getBoundingClientRect().top };
        }
        return null;
    }

    scrollTo({ index, offset }) {
        const element = this.at(index);
        if (!element) return;
        const top = this.scroller.getBoundingClientRect().top;
        this.scroller.scrollTop += element.getBoundingClientRect().top - top + offset;
    }
}
