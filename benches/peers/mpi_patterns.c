/* mpi_patterns.c -- random patterns without conflicts, from the file that BASE_PATTERNS names.
 * ours/src/bin/patterns.rs writes that file: operations, and the digest of all ranks' memory after
 * each epoch.  Here an epoch is puts, gets and accumulates with derived datatypes between fences,
 * and its digest must be equal, with windows of both kinds.  The epochs of the first
 * BASE_PATTERN_TIMED patterns are also timed, in windows that the library allocates.
 * case = <element>_<elements of a window>/epoch<n>; the figure is the time of the whole epoch. */
#include "common.h"
#include <inttypes.h>

enum action { PUT, GET, ACCUMULATE };
struct side { int count; MPI_Aint start; MPI_Datatype type; };   /* start in bytes */
struct operation { enum action action; MPI_Op op; int target; struct side local, remote; };
struct epoch { int operations, all, elements; uint64_t digest; struct operation *operation; };
struct pattern { int number, len, epochs; char name[8]; MPI_Datatype element; int size; struct epoch *epoch; };
struct memory { MPI_Win win; char *window, *landing, *source; };
struct run { struct memory *memory; struct epoch *epoch; };

static FILE *file;

static void expect(int found, int wanted) {
    if (found == wanted) return;
    fprintf(stderr, "CHECK FAILED: patterns: the file has another form\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static int read_int(void) {
    int value;
    expect(fscanf(file, "%d", &value), 1);
    return value;
}

/* Reads one side of an operation, and counts its elements. */
static struct side read_side(const struct pattern *p, int *elements) {
    char constructor[16];
    expect(fscanf(file, "%15s", constructor), 1);
    struct side side = {1, (MPI_Aint)read_int() * p->size, p->element};
    int count = read_int();
    *elements = count;
    if (!strcmp(constructor, "contiguous")) { side.count = count; return side; }
    if (!strcmp(constructor, "vector")) {
        int block = read_int(), stride = read_int();
        *elements *= block;
        MPI_Type_vector(count, block, stride, p->element, &side.type);
    } else if (!strcmp(constructor, "indexed_block")) {
        int block = read_int(), *at = xcalloc((size_t)count, sizeof *at);
        *elements *= block;
        for (int i = 0; i < count; i++) at[i] = read_int();
        MPI_Type_create_indexed_block(count, block, at, p->element, &side.type);
        free(at);
    } else {
        expect(strcmp(constructor, "indexed"), 0);
        int *at = xcalloc((size_t)count, sizeof *at), *run = xcalloc((size_t)count, sizeof *run);
        *elements = 0;
        for (int i = 0; i < count; i++) { at[i] = read_int(); run[i] = read_int(); *elements += run[i]; }
        MPI_Type_indexed(count, run, at, p->element, &side.type);
        free(at); free(run);
    }
    MPI_Type_commit(&side.type);
    return side;
}

static void free_side(const struct pattern *p, struct side *side) {
    if (side->type != p->element) MPI_Type_free(&side->type);
}

static struct operation read_operation(const struct pattern *p, int *origin, int *elements) {
    static const struct { const char *name; enum action action; MPI_Op op; } actions[] = {
        {"put", PUT, MPI_OP_NULL}, {"get", GET, MPI_OP_NULL}, {"sum", ACCUMULATE, MPI_SUM},
        {"min", ACCUMULATE, MPI_MIN}, {"max", ACCUMULATE, MPI_MAX}, {"band", ACCUMULATE, MPI_BAND},
        {"bor", ACCUMULATE, MPI_BOR}, {"bxor", ACCUMULATE, MPI_BXOR},
    };
    char name[8];
    struct operation o;
    *origin = read_int();
    expect(fscanf(file, "%7s", name), 1);
    size_t a = 0;
    while (a < sizeof actions / sizeof *actions && strcmp(name, actions[a].name)) a++;
    expect(a < sizeof actions / sizeof *actions, 1);
    o.action = actions[a].action;
    o.op = actions[a].op;
    o.target = read_int();
    int there;
    o.local = read_side(p, elements);
    o.remote = read_side(p, &there);
    expect(there, *elements);
    return o;
}

/* Keeps this rank's operations, and counts those of all ranks and their elements. */
static struct epoch read_epoch(const struct pattern *p) {
    struct epoch e = {0};
    expect(fscanf(file, " epoch %d", &e.all), 1);
    e.operation = xcalloc((size_t)e.all, sizeof *e.operation);
    for (int i = 0; i < e.all; i++) {
        int origin, elements;
        struct operation o = read_operation(p, &origin, &elements);
        e.elements += elements;
        if (origin == RANK) e.operation[e.operations++] = o;
        else { free_side(p, &o.local); free_side(p, &o.remote); }
    }
    expect(fscanf(file, " digest %" SCNx64, &e.digest), 1);
    return e;
}

static struct pattern read_pattern(void) {
    struct pattern p;
    expect(fscanf(file, " pattern %d %7s %d %d", &p.number, p.name, &p.len, &p.epochs), 4);
    p.element = !strcmp(p.name, "f64") ? MPI_DOUBLE : !strcmp(p.name, "u64") ? MPI_UINT64_T : MPI_INT32_T;
    MPI_Type_size(p.element, &p.size);
    p.epoch = xcalloc((size_t)p.epochs, sizeof *p.epoch);
    for (int e = 0; e < p.epochs; e++) p.epoch[e] = read_epoch(&p);
    return p;
}

static void free_pattern(struct pattern *p) {
    for (int e = 0; e < p->epochs; e++) {
        for (int i = 0; i < p->epoch[e].operations; i++) {
            free_side(p, &p->epoch[e].operation[i].local);
            free_side(p, &p->epoch[e].operation[i].remote);
        }
        free(p->epoch[e].operation);
    }
    free(p->epoch);
}

/* As values() of ours/src/pattern.rs: the window (turn 0), or the source of epoch turn - 1. */
static void fill(const struct pattern *p, int turn, char *to) {
    uint64_t s = 0x9E3779B97F4A7C15ULL * (uint64_t)(p->number * 4096 + turn * 64 + RANK + 1);
    for (int i = 0; i < p->len; i++) {
        uint64_t bits = rng_next(&s);
        int small = (int)((bits >> 32) % 2001) - 1000;
        if (p->element == MPI_DOUBLE) ((double *)(void *)to)[i] = small;
        else if (p->element == MPI_UINT64_T) ((uint64_t *)(void *)to)[i] = bits;
        else ((int32_t *)(void *)to)[i] = small;
    }
}

/* FNV-1a, of further bytes. */
static uint64_t fnv(uint64_t hash, const void *from, size_t bytes) {
    const unsigned char *byte = from;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ byte[i]) * 0x100000001b3ULL;
    return hash;
}

/* The digest of all ranks' windows, and of the memory that their gets land in. */
static uint64_t digest(const struct memory *m, size_t bytes) {
    const uint64_t start = 0xcbf29ce484222325ULL;
    uint64_t mine = fnv(fnv(start, m->window, bytes), m->landing, bytes), *all = xcalloc((size_t)NP, sizeof mine);
    MPI_Allgather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    uint64_t digest = fnv(start, all, (size_t)NP * sizeof mine);
    free(all);
    return digest;
}

static void play(void *x) {
    struct run *run = x;
    struct memory *m = run->memory;
    for (int i = 0; i < run->epoch->operations; i++) {
        struct operation *o = &run->epoch->operation[i];
        struct side *l = &o->local, *r = &o->remote;
        switch (o->action) {
        case PUT: MPI_Put(m->source + l->start, l->count, l->type, o->target, r->start, r->count, r->type, m->win); break;
        case GET: MPI_Get(m->landing + l->start, l->count, l->type, o->target, r->start, r->count, r->type, m->win); break;
        case ACCUMULATE:
            MPI_Accumulate(m->source + l->start, l->count, l->type, o->target, r->start, r->count, r->type, o->op, m->win);
            break;
        }
    }
    MPI_Win_fence(0, m->win);
}

static void check(const struct pattern *p, struct memory *m, int alloc) {
    size_t bytes = (size_t)p->len * (size_t)p->size;
    fill(p, 0, m->window);
    memset(m->landing, 0, bytes);
    for (int e = 0; e < p->epochs; e++) {
        fill(p, e + 1, m->source);
        MPI_Win_fence(0, m->win);    /* after the loads of the digest, before this epoch's puts */
        play(&(struct run){m, &p->epoch[e]});
        uint64_t found = digest(m, bytes);
        char what[128];
        snprintf(what, sizeof what, "patterns: pattern %d, epoch %d, %s window: digest %016" PRIx64 ", not %016" PRIx64,
                 p->number, e, alloc ? "allocated" : "created", found, p->epoch[e].digest);
        require(found == p->epoch[e].digest, what);
    }
}

static void measure(const struct pattern *p, struct memory *m) {
    /* no sum overflows, however often an epoch is repeated */
    memset(m->source, 0, (size_t)p->len * (size_t)p->size);
    for (int e = 0; e < p->epochs; e++) {
        struct stat3 r = bench(play, &(struct run){m, &p->epoch[e]});
        char name[64];
        snprintf(name, sizeof name, "%s_%d/epoch%d", p->name, p->len, e);
        if (RANK == 0)
            emit("patterns", name, NP, r, "us", "\"pattern\":%d,\"operations\":%d,\"elements\":%d,\"win\":\"allocate\"",
                 p->number, p->epoch[e].all, p->epoch[e].elements);
    }
}

int main(int argc, char **argv) {
    base_init(&argc, &argv);
    int timed = (int)env_double("BASE_PATTERN_TIMED", 9), patterns, ranks;
    file = fopen(env_str("BASE_PATTERNS", ""), "r");
    require(file != NULL, "patterns: BASE_PATTERNS names a file that ours has written");
    expect(fscanf(file, "patterns %d ranks %d", &patterns, &ranks), 2);
    require(ranks == NP, "patterns: the file is for another number of ranks");
    for (int i = 0; i < patterns; i++) {
        struct pattern p = read_pattern();
        size_t bytes = (size_t)p.len * (size_t)p.size;
        struct memory m = {.landing = xcalloc(1, bytes), .source = xcalloc(1, bytes)};
        for (int alloc = 1; alloc >= 0; alloc--) {
            m.window = make_win(bytes, alloc, &m.win);
            check(&p, &m, alloc);
            if (alloc && p.number < timed) measure(&p, &m);
            MPI_Win_fence(MPI_MODE_NOSUCCEED, m.win);
            drop_win(m.window, alloc, &m.win);
        }
        free(m.landing); free(m.source);
        free_pattern(&p);
    }
    fclose(file);
    base_done();
    return 0;
}
