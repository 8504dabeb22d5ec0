#include "chathist/history/prices.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"

/* The words of a line, in their order. The words up to CURRENCY that are numbers are prices, and
 * so are these kinds, which a line may name after it. */
enum { MODEL, INPUT, CACHE_READ, CACHE_WRITE, OUTPUT, CURRENCY, WORDS };
enum { LONG_CACHE = WORDS, REASONING, SEARCH, KINDS };

/* The price of a kind that the file does not have. */
#define UNPRICED UINT64_MAX
/* How many searches the price of SEARCH in a line of the file is for. */
#define SEARCHES 1000
#define MILLION 1000000

struct price {
    char *pattern;
    bool exact;         /* it is `provider:model` and no pattern */
    char tier[16];      /* empty: the standard one */
    uint64_t above;     /* only for a larger input */
    uint64_t of[KINDS]; /* the price of a million of the kind (base/amount), or UNPRICED */
    size_t currency;    /* a number of prices_currency */
};

/* ---- the file ---- */

/* Returns the place of a currency, and adds a new one, or PRICES_UNKNOWN if the
 * text is not a code of ISO 4217. */
static size_t find_or_add_currency(struct prices *p, struct str code)
{
    size_t i;

    for (i = 0; i < code.n && code.p[i] >= 'A' && code.p[i] <= 'Z'; i++)
        continue;
    if (i != 3 || code.n != 3)
        return PRICES_UNKNOWN;
    for (i = PRICES_REPORTED; i < prices_currencies(p); i++)
        if (str_eq_c(code, prices_currency(p, i)))
            return i;
    p->currencies =
        mem_grow(p->currencies, &p->currencies_cap, p->currencies_count + 1, sizeof *p->currencies);
    memcpy(p->currencies[p->currencies_count], code.p, code.n);
    p->currencies[p->currencies_count++][code.n] = '\0';
    return i;
}

/* fnmatch takes a bracket that is not closed for an ordinary character, which no model's name
 * has. */
static bool is_pattern(struct str pattern)
{
    const char *open = memchr(pattern.p, '[', pattern.n);
    const char *end = pattern.p + pattern.n;

    while (open && end - open > 2) {
        const char *close = memchr(open + 2, ']', (size_t)(end - open - 2));

        if (!close)
            return false;
        open = memchr(close, '[', (size_t)(end - close));
    }
    return !open;
}

static struct price *add_price(struct prices *p, const struct price *price, struct str pattern)
{
    p->at = mem_grow(p->at, &p->cap, p->count + 1, sizeof *p->at);
    p->at[p->count] = *price;
    p->at[p->count].pattern = mem_copy(pattern.p, pattern.n);
    return &p->at[p->count++];
}

static void price_init(struct price *price)
{
    *price = (struct price){.currency = PRICES_REPORTED};
    for (size_t i = 0; i < KINDS; i++)
        price->of[i] = UNPRICED;
}

/* Sets the tier, in the words of the servers. Those that charge the usual price have an empty name:
 * `auto` is the request, `on_demand` is Groq's word. */
static void set_tier(char tier[16], struct str name)
{
    static const char *const usual[] = {"default", "standard", "auto", "on_demand"};

    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (str_eq_c(name, usual[i]))
            name.n = 0;
    snprintf(tier, 16, "%.*s", (int)name.n, name.n > 0 ? name.p : "");
}

/* Reads a word after the currency: a condition of the line, or the price of another kind. */
static bool read_extra(struct price *price, struct str word)
{
    struct str name = str_cut(&word, '=');
    int64_t number;
    uint64_t cost;

    if (str_eq_c(name, "tier")) {
        set_tier(price->tier, word);
        return word.n > 0;
    }
    if (str_eq_c(name, "above")) {
        price->above = json_int(word, &number) && number > 0 ? (uint64_t)number : 0;
        return price->above > 0;
    }
    if (!word.p || !amount_read_price(&cost, word))
        return false;
    if (str_eq_c(name, "long-cache-write"))
        price->of[LONG_CACHE] = cost;
    else if (str_eq_c(name, "web-search"))
        price->of[SEARCH] = cost * (MILLION / SEARCHES);
    else
        return false;
    return cost < PRICE_MAX / (MILLION / SEARCHES);
}

static int read_price_line(struct prices *p, struct str line, const char *where, struct err *e)
{
    struct str word[WORDS], rest = line;
    struct price price;
    size_t n = 0;

    price_init(&price);
    for (; n < WORDS && (word[n] = str_word(&rest)).n > 0; n++)
        continue;
    if (n < WORDS)
        return err_set(e, ERR_USAGE,
                       "%s has not six words: MODEL, prices of a million tokens of INPUT, "
                       "CACHED-INPUT, CACHE-WRITE and OUTPUT, and CURRENCY",
                       where);
    if (!is_pattern(word[MODEL]))
        return err_set(e, ERR_USAGE, "%s: bad pattern '%.*s': a '[' is not closed", where,
                       (int)word[MODEL].n, word[MODEL].p);
    for (n = INPUT; n <= OUTPUT; n++) {
        if (str_eq_c(word[n], "-") && (n == CACHE_READ || n == CACHE_WRITE))
            price.of[n] = price.of[INPUT];
        else if (!amount_read_price(&price.of[n], word[n]))
            return err_set(e, ERR_USAGE,
                           "%s: bad price '%.*s': a number with a point and at most %d decimals "
                           "is expected",
                           where, (int)word[n].n, word[n].p, PRICE_DECIMALS);
    }
    price.currency = find_or_add_currency(p, word[CURRENCY]);
    if (price.currency == PRICES_UNKNOWN)
        return err_set(e, ERR_USAGE,
                       "%s: bad currency '%.*s': three capital letters such as USD are expected",
                       where, (int)word[CURRENCY].n, word[CURRENCY].p);
    for (struct str extra; (extra = str_word(&rest)).n > 0;)
        if (!read_extra(&price, extra))
            return err_set(
                e, ERR_USAGE,
                "%s: bad word '%.*s': tier=NAME, above=TOKENS, long-cache-write=PRICE or "
                "web-search=PRICE is expected after the currency",
                where, (int)extra.n, extra.p);
    price.of[REASONING] = price.of[OUTPUT];
    (void)add_price(p, &price, word[MODEL]);
    return 0;
}

/* ---- the file of LiteLLM ----
 *
 * docs.litellm.ai/docs/proxy/model_cost_map and model_prices_and_context_window.schema.json: an
 * object of models. Prices are US dollars for one token; a key may end in the name of a tier, and
 * in `_above_200k_tokens` for a longer input. */

/* The most tiers and lengths of input for which a model has separate prices. */
#define VARIANTS 32

struct variants {
    struct price at[VARIANTS];
    size_t count;
};

/* Returns the prices for a tier and a length of input, or NULL if there are too many. */
static struct price *variant(struct variants *v, const char *tier, uint64_t above)
{
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->at[i].tier, tier) == 0 && v->at[i].above == above)
            return &v->at[i];
    if (v->count == VARIANTS)
        return NULL;
    price_init(&v->at[v->count]);
    memcpy(v->at[v->count].tier, tier, sizeof v->at->tier);
    v->at[v->count].above = above;
    return &v->at[v->count++];
}

/* Takes `_above_200k_tokens` from the beginning of a key. */
static bool read_above(struct str *key, uint64_t *above)
{
    struct str rest = *key, number;
    int64_t thousands;

    if (!str_starts(rest, STR("_above_")))
        return false;
    rest = str_skip(rest, strlen("_above_"));
    number = str_cut(&rest, 'k');
    if (!str_starts(rest, STR("_tokens")) || !json_int(number, &thousands) || thousands <= 0 ||
        thousands > MILLION)
        return false;
    *above = (uint64_t)thousands * 1000;
    *key = str_skip(rest, strlen("_tokens"));
    return true;
}

/* Reads the price of a member whose key begins with the name of a kind. */
static void read_rate(struct variants *v, int kind, struct str key, uint64_t above,
                      struct str value)
{
    char tier[sizeof v->at->tier] = "";
    struct price *price;
    struct amount a;

    (void)read_above(&key, &above);
    if (str_starts(key, STR("_"))) {
        struct str name = str_skip(key, 1);
        const char *more = str_find(name, STR("_"));

        if (more)
            name.n = (size_t)(more - name.p);
        key = str_skip(key, 1 + name.n);
        set_tier(tier, str_eq_c(name, "batches") ? STR("batch") : name);
    }
    (void)read_above(&key, &above);
    price = key.n == 0 && amount_read(&a, value) && a.whole == 0 ? variant(v, tier, above) : NULL;
    if (price && a.part < PRICE_MAX)
        price->of[kind] = a.part;
}

/* Reads the prices of a model, or those of a part of the lengths of its input. */
static void read_rates(struct variants *v, struct str entry, uint64_t above)
{
    static const struct {
        int kind;
        struct str name;
    } rates[] = {
        {INPUT, STR("input_cost_per_token")},
        {OUTPUT, STR("output_cost_per_token")},
        {REASONING, STR("output_cost_per_reasoning_token")},
        {CACHE_READ, STR("cache_read_input_token_cost")},
        {LONG_CACHE, STR("cache_creation_input_token_cost_above_1hr")},
        {CACHE_WRITE, STR("cache_creation_input_token_cost")},
    };

    for (struct json_iter it = json_iter(entry); json_next(&it);)
        for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
            if (str_starts(it.key, rates[i].name)) {
                read_rate(v, rates[i].kind, str_skip(it.key, rates[i].name.n), above, it.value);
                break;
            }
}

/* Returns the price of a search if it is the same for each size of the
 * results: servers do not report the size. */
static uint64_t search_price(struct str sizes)
{
    uint64_t price = UNPRICED;
    struct amount a;

    for (struct json_iter it = json_iter(sizes); it.object && json_next(&it);) {
        uint64_t one = amount_read(&a, it.value) && a.whole == 0 ? a.part : UNPRICED;

        if (price != UNPRICED && price != one)
            return UNPRICED;
        price = one;
    }
    return price < PRICE_MAX ? price : UNPRICED;
}

static int longest_first(const void *a, const void *b)
{
    const struct price *x = a, *y = b;

    return (x->above < y->above) - (x->above > y->above);
}

/* Reads all prices of a model. Each variant has the prices of its tier for a shorter input where it
 * has none itself, but never those of another tier. */
static void read_model(struct variants *v, struct str entry)
{
    struct str ranges = json_get(entry, "tiered_pricing");
    uint64_t search = search_price(json_get(entry, "search_context_cost_per_query"));
    int64_t from;

    v->count = 0;
    read_rates(v, entry, 0);
    for (struct json_iter it = json_iter(ranges); !it.object && json_next(&it);)
        if (json_int(json_at(json_get(it.value, "range"), 0), &from) && from >= 0)
            read_rates(v, it.value, (uint64_t)from);
    if (v->count > 0)
        qsort(v->at, v->count, sizeof *v->at, longest_first);
    for (size_t i = v->count; i-- > 0;) {
        struct price *to = &v->at[i];

        to->of[SEARCH] = search;
        for (size_t k = i + 1; k < v->count; k++)
            for (size_t kind = 0; kind < SEARCH && strcmp(to->tier, v->at[k].tier) == 0; kind++)
                if (to->of[kind] == UNPRICED)
                    to->of[kind] = v->at[k].of[kind];
    }
    for (size_t i = 0; i < v->count; i++)
        if (v->at[i].of[REASONING] == UNPRICED)
            v->at[i].of[REASONING] = v->at[i].of[OUTPUT];
}

static void add_model(struct prices *p, const struct variants *v, struct str provider,
                      struct str model)
{
    struct buf name = BUF_INIT(BUF_LINE);

    buf_addf(&name, "%.*s:%.*s", (int)provider.n, provider.p, (int)model.n, model.p);
    for (size_t i = 0; i < v->count; i++)
        add_price(p, &v->at[i], buf_str(&name))->exact = true;
    buf_release(&name);
}

/* Adds a model by one of its names. `whole`: the name is that of a model of the entry's provider,
 * otherwise it begins with the name of a provider. */
static void add_model_names(struct prices *p, const struct variants *v, struct str name,
                            struct str entry, bool whole)
{
    struct buf provider = BUF_INIT(BUF_LINE);
    struct str model = name, first = str_cut(&model, '/');

    if (whole && json_decode(json_get(entry, "litellm_provider"), &provider))
        add_model(p, v, buf_str(&provider), name);
    else if (!whole && model.n > 0)
        add_model(p, v, first, model);
    buf_release(&provider);
}

static int read_litellm(struct prices *p, struct str text, const char *file, struct err *e)
{
    struct buf name = BUF_INIT(BUF_LINE);
    struct variants v;
    struct str models;

    if (!json_check(text, &models, NULL))
        return err_set(e, ERR_USAGE, "cannot use '%s': it is not JSON", file);
    for (int whole = 0; whole < 2; whole++)
        for (struct json_iter it = json_iter(models); json_next(&it);) {
            struct json_iter alias = json_iter(json_get(it.value, "aliases"));

            read_model(&v, it.value);
            buf_clear(&name);
            json_decode_body(it.key, &name);
            if (!str_eq_c(buf_str(&name), "sample_spec"))
                add_model_names(p, &v, buf_str(&name), it.value, whole);
            while (!alias.object && json_next(&alias))
                add_model_names(p, &v, json_text(alias.value, &name), it.value, whole);
        }
    buf_release(&name);
    return 0;
}

int prices_read(struct prices *p, struct str text, const char *file, struct err *e)
{
    struct buf where = BUF_INIT(BUF_LINE);
    int result = 0;

    hash_map_release(&p->names);
    if (str_starts(str_trim(text), STR("{")))
        return read_litellm(p, text, file, e);
    for (size_t number = 1; result == 0 && text.p; number++) {
        struct str line = str_trim(str_cut(&text, '\n'));

        if (line.n == 0 || *line.p == '#')
            continue;
        buf_clear(&where);
        buf_addf(&where, "cannot use '%s': line %zu", file, number);
        result = read_price_line(p, line, buf_c(&where), e);
    }
    buf_release(&where);
    return result;
}

/* ---- costs ---- */

size_t prices_currencies(const struct prices *p)
{
    return PRICES_FIRST_COUNT + p->currencies_count;
}

const char *prices_currency(const struct prices *p, size_t i)
{
    if (i < PRICES_FIRST_COUNT)
        return i == PRICES_UNKNOWN ? "unknown" : "USD";
    return p->currencies[i - PRICES_FIRST_COUNT];
}

/* `model` is the end of `name`, of the form `provider:model`. */
static bool matches(const struct price *price, const char *model, const char *name, bool provider)
{
    if (price->exact)
        return strcmp(price->pattern, name) == 0;
    return fnmatch(price->pattern, model, 0) == 0 ||
           (provider && fnmatch(price->pattern, name, 0) == 0);
}

/* Returns the first line that matches the model and the conditions, or NULL. Answers are mostly of
 * the same few models, so the first line for each name and tier is remembered. */
static const struct price *find_price(struct prices *p, struct str provider, struct str model,
                                      const char *tier, uint64_t input)
{
    struct buf name = BUF_INIT(BUF_LINE), text = BUF_INIT(2 * BUF_LINE);
    const struct price *found = NULL;
    const char *bare;
    struct str key;
    size_t *place;

    if (str_starts(provider, STR("openai-"))) /* two wires of one service */
        provider = STR("openai");
    buf_add_str(&name, provider);
    buf_add_byte(&name, ':');
    buf_add_str(&name, model);
    bare = buf_c(&name) + provider.n + 1;
    buf_add_str(&text, buf_str(&name));
    buf_addf(&text, "\n%s", tier);
    key = buf_str(&text);
    place = hash_map_find(&p->names, key);
    if (!place) {
        size_t number = hash_map_number(&p->names, &key), i = 0;

        while (i < p->count && (strcmp(p->at[i].tier, tier) != 0 ||
                                !matches(&p->at[i], bare, buf_c(&name), provider.n > 0)))
            i++;
        place = &p->names.entries[number].value;
        *place = i;
    }
    for (size_t i = *place; i < p->count && !found; i++)
        if ((p->at[i].above == 0 || input > p->at[i].above) && strcmp(p->at[i].tier, tier) == 0 &&
            matches(&p->at[i], bare, buf_c(&name), provider.n > 0))
            found = &p->at[i];
    buf_release(&name);
    buf_release(&text);
    return found;
}

/* The charged amounts: the tokens of each kind, without those of the other kinds, and searches. */
struct charge {
    uint64_t input; /* all of it */
    uint64_t of[KINDS];
};

/* Moves tokens from one kind to another. A server that counts more of them contradicts itself. */
static void move_tokens(struct charge *c, int from, int to, uint64_t n)
{
    c->of[to] = n < c->of[from] ? n : c->of[from];
    c->of[from] -= c->of[to];
}

static struct charge charge_of(const struct usage *usage, uint64_t longer)
{
    uint64_t n[USAGE_KINDS];
    struct charge c = {0};

    for (int i = 0; i < USAGE_KINDS; i++)
        n[i] = usage->at[i] > 0 ? (uint64_t)usage->at[i] : 0;
    c.input = c.of[INPUT] = n[USAGE_INPUT];
    c.of[OUTPUT] = n[USAGE_OUTPUT];
    move_tokens(&c, INPUT, CACHE_READ, n[USAGE_CACHE_READ]);
    move_tokens(&c, INPUT, CACHE_WRITE, n[USAGE_CACHE_WRITE]);
    move_tokens(&c, CACHE_WRITE, LONG_CACHE, longer > 0 ? longer : n[USAGE_LONG_CACHE_WRITE]);
    move_tokens(&c, OUTPUT, REASONING, n[USAGE_REASONING]);
    return c;
}

/* What servers report beside the counts that all of them share. */
struct details {
    char tier[16];
    uint64_t longer, searches;
    struct str iterations;
    bool odd; /* it costs something that no price is for, or the tiers differ */
};

static uint64_t number_in(struct str object, const char *name)
{
    struct usage one;

    usage_init(&one);
    usage_read(&one, USAGE_INPUT, json_get(object, name));
    return one.at[USAGE_INPUT] > 0 ? (uint64_t)one.at[USAGE_INPUT] : 0;
}

/* Tokens that stay in a cache for an hour (Anthropic) or for twelve (OpenAI). */
static uint64_t long_cache(struct str raw)
{
    struct str written =
        json_get(json_get(raw, "input_tokens_details"), "cache_write_tokens_details");

    return number_in(json_get(raw, "cache_creation"), "ephemeral_1h_input_tokens") +
           number_in(written, "ttl_12h_tokens");
}

static void read_details(struct details *d, struct str raw, bool first)
{
    static const char *const unpriced[] = {"code_interpreter_call", "file_search_call",
                                           "image_generation_call"};
    struct buf tier = BUF_INIT(BUF_LINE);
    char named[sizeof d->tier];

    /* Anthropic's fast mode has separate prices, like a tier. */
    json_decode(
        json_get(raw, json_is_text(json_get(raw, "speed"), "fast") ? "speed" : "service_tier"),
        &tier);
    set_tier(named, buf_str(&tier));
    d->odd = d->odd || (!first && strcmp(named, d->tier) != 0) ||
             json_is_text(json_get(raw, "inference_geo"), "us");
    memcpy(d->tier, named, sizeof named);
    for (size_t i = 0; i < sizeof unpriced / sizeof *unpriced; i++)
        d->odd = d->odd || json_get(raw, unpriced[i]).p;
    d->longer += long_cache(raw);
    d->searches += number_in(json_get(raw, "server_tool_use"), "web_search_requests") +
                   number_in(raw, "web_search_call");
    if (json_type(json_at(json_get(raw, "iterations"), 0)) == JSON_OBJECT)
        d->iterations = json_get(raw, "iterations");
    buf_release(&tier);
}

/* Adds to the cost. Returns false if a price is missing. */
static bool add_charge(struct prices *p, struct str provider, struct str model, const char *tier,
                       const struct charge *c, struct cost *cost)
{
    const struct price *price = find_price(p, provider, model, tier, c->input);

    if (!price || (cost->currency != PRICES_UNKNOWN && cost->currency != price->currency))
        return false;
    cost->currency = price->currency;
    for (size_t kind = 0; kind < KINDS; kind++) {
        if (c->of[kind] > 0 && price->of[kind] == UNPRICED)
            return false;
        if (c->of[kind] > 0)
            amount_add(&cost->amount, amount_of_tokens(c->of[kind], price->of[kind]));
    }
    return true;
}

/* Adds the cost of the steps of an answer of Anthropic, each of which may have its own model. Those
 * that compact the conversation are not part of its counts (platform documentation,
 * "Compaction"). */
static bool add_iterations(struct prices *p, struct str provider, struct str model,
                           const struct details *d, struct cost *cost)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool known = true;

    for (struct json_iter it = json_iter(d->iterations); known && json_next(&it);) {
        struct str own = json_text(json_get(it.value, "model"), &scratch);
        struct usage u;
        struct charge c;

        usage_init(&u);
        usage_read(&u, USAGE_INPUT, json_get(it.value, "input_tokens"));
        usage_read(&u, USAGE_OUTPUT, json_get(it.value, "output_tokens"));
        usage_read(&u, USAGE_CACHE_READ, json_get(it.value, "cache_read_input_tokens"));
        usage_read(&u, USAGE_CACHE_WRITE, json_get(it.value, "cache_creation_input_tokens"));
        if (u.at[USAGE_INPUT] >= 0)
            u.at[USAGE_INPUT] += usage_cached(&u);
        c = charge_of(&u, long_cache(it.value));
        known = usage_complete(&u) &&
                add_charge(p, provider, own.n > 0 ? own : model, d->tier, &c, cost);
    }
    buf_release(&scratch);
    return known;
}

struct cost prices_cost(struct prices *p, struct str provider, struct str model, struct str usage)
{
    struct str raw = json_get(usage, "raw");
    bool many = json_type(raw) == JSON_ARRAY;
    struct json_iter it = json_iter(many ? raw : STR_NONE);
    struct cost cost = {0};
    struct details d = {.longer = 0};
    struct charge c = {0};
    struct usage u;
    bool known;

    usage_init(&u);
    usage_read_cost(&u, raw);
    usage_read_members(&u, usage);
    if (u.at[USAGE_COST] >= 0)
        return (struct cost){PRICES_REPORTED, true, usage_cost(&u)};
    if (!many)
        read_details(&d, raw, true);
    for (bool first = true; json_next(&it); first = false)
        read_details(&d, it.value, first);
    c = charge_of(&u, d.longer);
    known = model.n > 0 && usage_complete(&u) && !d.odd && !(many && d.iterations.p);
    /* The length of each of several requests is unknown. */
    if (known && many) {
        const struct price *longest = find_price(p, provider, model, d.tier, c.input);

        known = longest && longest->above == 0;
    }
    if (known && d.iterations.p) {
        known = add_iterations(p, provider, model, &d, &cost);
        c = (struct charge){.input = c.input};
    }
    c.of[SEARCH] = d.searches;
    return known && add_charge(p, provider, model, d.tier, &c, &cost) ? cost : (struct cost){0};
}

void prices_release(struct prices *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->at[i].pattern);
    free(p->at);
    free(p->currencies);
    hash_map_release(&p->names);
    *p = (struct prices)PRICES_INIT;
}
