/*
 * calendar - the days of a month, those with conversations as buttons.
 */
class Calendar {
    static MONTH = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric' });
    static DAY = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full' });
    static SHORT = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

    /* The day of a time in milliseconds, as 2024-06-27, by the reader's clock. */
    static day(time) {
        const date = new Date(time);
        const two = (n) => String(n).padStart(2, '0');
        return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
    }

    static date(day) {
        const [year, month, date] = day.split('-').map(Number);
        return new Date(year, month - 1, date);
    }

    /* details: the element. chosen(day) hears which day is to be shown, '' for all. */
    constructor(details, element, button, chosen) {
        Object.assign(this, { details, element, button, chosen });
        this.counts = new Map();
        this.day = '';
        this.month = '';
        details.addEventListener('toggle', () => this.draw());
        details.querySelector('.earlier').addEventListener('click', () => this.step(-1));
        details.querySelector('.later').addEventListener('click', () => this.step(1));
    }

    /* counts: the number of conversations by day. */
    show(counts, day) {
        const days = [...counts.keys()].sort();
        this.counts = counts;
        this.day = day;
        this.months = [...new Set(days.map((one) => one.slice(0, 7)))];
        if (day) this.month = day.slice(0, 7);
        else if (!this.months.includes(this.month)) this.month = this.months.at(-1) ?? '';
        this.details.querySelector('summary').textContent = day ? Calendar.SHORT.format(Calendar.date(day)) : 'Calendar';
        this.draw();
    }

    /* To the next month with conversations. */
    step(by) {
        const at = this.months.indexOf(this.month);
        this.month = this.months[at + by] ?? this.month;
        this.draw();
    }

    draw() {
        if (!this.details.open || !this.month) return;
        const { element } = this;
        const first = Calendar.date(`${this.month}-01`);
        const last = new Date(first.getFullYear(), first.getMonth() + 1, 0).getDate();
        const cells = ['Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa', 'Su'].map((name) => element('span', 'weekday', name));
        for (let n = 1; n <= last; n++) cells.push(this.cell(`${this.month}-${String(n).padStart(2, '0')}`, n));
        /* Monday is the first column. */
        cells[7].style.gridColumnStart = (first.getDay() + 6) % 7 + 1;
        const focused = this.details.querySelector('.days :focus')?.dataset.day;
        this.details.querySelector('.days').replaceChildren(...cells);
        this.details.querySelector('.month').textContent = Calendar.MONTH.format(first);
        this.details.querySelector('.earlier').disabled = this.month === this.months[0];
        this.details.querySelector('.later').disabled = this.month === this.months.at(-1);
        if (focused) this.details.querySelector(`[data-day="${focused}"]`)?.focus();
    }

    cell(day, n) {
        const count = this.counts.get(day);
        if (!count) return this.element('span', '', String(n));
        const pressed = day === this.day;
        const cell = this.button('', String(n), () => this.chosen(pressed ? '' : day));
        cell.dataset.day = day;
        cell.dataset.level = Math.min(3, Math.ceil(Math.log2(count + 1)));
        cell.setAttribute('aria-pressed', pressed);
        cell.setAttribute('aria-label', `${Calendar.DAY.format(Calendar.date(day))}: ${count} ` +
            (count === 1 ? 'conversation' : 'conversations'));
        return cell;
    }
}
