/* mpi_lock.c -- 8 bytes to the next rank, which makes no call for them: lock, put, unlock; n puts and a flush under a lock
 * of all ranks. Also post, start, put, complete and wait with the neighbours of a ring. */
#include "common.h"

static MPI_Win win;
static MPI_Group nbrs;
static int right;
static long value;

static void put(long at) { MPI_Put(&value, 1, MPI_LONG, right, 8 * at, 1, MPI_LONG, win); }
static void op_lock(void *kind) {
    MPI_Win_lock(*(int *)kind, right, 0, win);
    put(1);
    MPI_Win_unlock(right, win);
}
static void op_flush(void *n) {
    for (long i = 0; i < *(long *)n; i++) put(1 + i);
    MPI_Win_flush(right, win);
}
static void op_pscw(void *x) {
    (void)x;
    MPI_Win_post(nbrs, 0, win);
    MPI_Win_start(nbrs, 0, win);
    put(1);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
}

int main(int argc, char **argv) {
    base_init(&argc, &argv);
    right = (RANK + 1) % NP;
    int left = (RANK + NP - 1) % NP, who[2] = {left, right}, kinds[2] = {MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED};
    MPI_Group g;
    MPI_Comm_group(MPI_COMM_WORLD, &g);
    MPI_Group_incl(g, left == right ? 1 : 2, who, &nbrs);
    long *p = make_win(8 << 12, 1, &win);
    value = RANK + 7;
    for (int k = 0; k < 2; k++) {
        struct stat3 s = bench(op_lock, &kinds[k]);
        if (RANK == 0) emit("lock", k ? "lock_put8/shared" : "lock_put8/exclusive", NP, s, "us", "\"n\":1");
    }
    MPI_Win_lock_all(0, win);
    for (long n = 1; n <= 1024; n *= 32) {
        struct stat3 s = bench(op_flush, &n);
        if (RANK == 0) emit("lock", "put8_flush", NP, s, "us", "\"n\":%ld", n);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, RANK, 0, win);
    require(p[1] == left + 7 && p[1024] == left + 7, "lock: values");
    p[1] = 0;
    MPI_Win_unlock(RANK, win);
    MPI_Barrier(MPI_COMM_WORLD);
    struct stat3 s = bench(op_pscw, NULL);
    if (RANK == 0) emit("lock", "pscw_put8", NP, s, "us", "\"n\":1");
    require(p[1] == left + 7, "pscw: values");
    drop_win(p, 1, &win);
    base_done();
    return 0;
}
