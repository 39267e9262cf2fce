/* mpi_tiled.c -- the steps of mpi_stencil2d and mpi_stencil3d, tiled in time by hand, as an expert would.
 *
 * The grid is cut along its first dimension.  A halo of k layers (rows, or planes) is exchanged before every k steps.  Step s
 * computes layer f - s after step s - 1 has computed layer f - s + 1, for f in ascending order, so what all steps read and
 * write stays in a cache.  In 3D the rows of a plane are cut into bands, each of them shifted by one row a step. */
#include "common.h"

struct tiled {
    int n, k, band;                     /* cells a side; steps to an exchange; rows of a band, in 3D */
    int layers, w;                      /* own layers; cells of a row with its edges */
    size_t layer;                       /* cells of a layer with its edges */
    double *a[2];
    int c;                              /* which array is read by the next step */
};

static inline void row2(const double *restrict p, double *restrict q, int n, long w) {
    for (int j = 1; j <= n; j++) q[j] = 0.6 * p[j] + 0.1 * (p[j - 1] + p[j + 1] + p[j - w] + p[j + w]);
}

static inline void row3(const double *restrict p, double *restrict q, int n, long w, long l) {
    for (int j = 1; j <= n; j++)
        q[j] = 0.4 * p[j] + 0.1 * (p[j - 1] + p[j + 1] + p[j - w] + p[j + w] + p[j - l] + p[j + l]);
}

/* the layers that step s computes: own ones, and those of the halo that later steps read */
static inline int first(const struct tiled *t, int s) { return RANK > 0 ? 1 + s : t->k; }
static inline int last(const struct tiled *t, int s) { return RANK < NP - 1 ? t->layers + 2 * t->k - 2 - s : t->k + t->layers - 1; }

static void exchange(struct tiled *t) {
    MPI_Request rq[4];
    int m = 0, count = t->k * (int)t->layer;
    double *a = t->a[t->c], *own = a + (size_t)t->k * t->layer, *end = own + (size_t)t->layers * t->layer;
    if (RANK > 0) {
        MPI_Irecv(a, count, MPI_DOUBLE, RANK - 1, 0, MPI_COMM_WORLD, &rq[m++]);
        MPI_Isend(own, count, MPI_DOUBLE, RANK - 1, 1, MPI_COMM_WORLD, &rq[m++]);
    }
    if (RANK < NP - 1) {
        MPI_Irecv(end, count, MPI_DOUBLE, RANK + 1, 1, MPI_COMM_WORLD, &rq[m++]);
        MPI_Isend(end - count, count, MPI_DOUBLE, RANK + 1, 0, MPI_COMM_WORLD, &rq[m++]);
    }
    MPI_Waitall(m, rq, MPI_STATUSES_IGNORE);
}

/* the first `steps` steps of a group */
static void steps(struct tiled *t, int steps) {
    exchange(t);
    int three = t->band > 0, rows = three ? t->n : 1, band = three ? t->band : 1;
    for (int b = 1; b <= rows + (three ? steps - 1 : 0); b += band)
        for (int f = first(t, 0); f <= last(t, 0) + steps - 1; f++)
            for (int s = 0; s < steps; s++) {
                int i = f - s;
                if (i < first(t, s) || i > last(t, s)) continue;
                const double *u = t->a[t->c ^ (s & 1)] + (size_t)i * t->layer;
                double *v = t->a[t->c ^ (s & 1) ^ 1] + (size_t)i * t->layer;
                if (!three) { row2(u, v, t->n, t->w); continue; }
                int from = b - s < 1 ? 1 : b - s, to = b - s + band - 1 > rows ? rows : b - s + band - 1;
                for (int j = from; j <= to; j++)
                    row3(u + (size_t)j * (size_t)t->w, v + (size_t)j * (size_t)t->w, t->n, t->w, (long)t->layer);
            }
    t->c ^= steps & 1;
}

static void group(void *x) { struct tiled *t = x; steps(t, t->k); }

static void tiled_case(const char *bench_name, const char *split, int dims, int n, int k, int band) {
    struct tiled t = {.n = n, .k = k, .band = dims == 3 ? band : 0, .layers = n / NP, .w = n + 2};
    if (n % NP || k > t.layers) return;
    t.layer = dims == 3 ? (size_t)t.w * (size_t)t.w : (size_t)t.w;
    size_t words = (size_t)(t.layers + 2 * k) * t.layer;
    for (int c = 0; c < 2; c++) t.a[c] = xcalloc(words, 8);
    uint64_t seed = 0x9E3779B97F4A7C15ULL * (uint64_t)(RANK + 1);
    int rows = dims == 3 ? n : 1, above = dims == 3;
    for (int i = 0; i < t.layers; i++)          /* as the programs that sweep step by step: own cells in their order */
        for (int j = 0; j < rows; j++)
            for (int l = 1; l <= n; l++)
                t.a[0][(size_t)(k + i) * t.layer + (size_t)(j + above) * (size_t)t.w * (size_t)above + (size_t)l] = (double)(rng_next(&seed) >> 40) * 0x1p-24;
    for (int left = 10; left > 0; left -= k) steps(&t, left < k ? left : k);
    double sum = 0, all;
    for (int i = 0; i < t.layers; i++)
        for (int j = 0; j < rows; j++)
            for (int l = 1; l <= n; l++)
                sum += t.a[t.c][(size_t)(k + i) * t.layer + (size_t)(j + above) * (size_t)t.w * (size_t)above + (size_t)l];
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    struct stat3 s = bench(group, &t);
    s.med /= k; s.min /= k; s.max /= k;
    char name[64];
    snprintf(name, sizeof name, "tiled%d%s/%s/step", k, dims == 2 ? "" : band < n ? "b" : "p", split);
    if (RANK == 0) emit(bench_name, name, NP, s, "us", "\"n\":%d,\"checksum\":%.12g", n, all);
    for (int c = 0; c < 2; c++) free(t.a[c]);
}

int main(int argc, char **argv) {
    base_init(&argc, &argv);
    for (int n = 512; n <= (int)env_double("BASE_N2D", 4096); n *= 2)
        for (int k = 8; k <= 16; k *= 2) tiled_case("stencil2d", "rows", 2, n, k, 0);
    for (int n = 64; n <= (int)env_double("BASE_N3D", 256); n *= 2)
        for (int k = 4; k <= 8; k *= 2) {
            tiled_case("stencil3d", "split_i", 3, n, k, 16);
            tiled_case("stencil3d", "split_i", 3, n, k, n);
        }
    base_done();
    return 0;
}
