/* mpi_message.c -- a message to the other rank, which sends it back from the memory in which it arrived, so that new values
 * move in both directions. */
#include "common.h"

static long *part;
static int words;

static void there_and_back(void *x) {
    (void)x;
    if (RANK == 0) {
        part[0]++;
        MPI_Send(part, words, MPI_LONG, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(part, words, MPI_LONG, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (RANK == 1) {
        MPI_Recv(part, words, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        part[words - 1]++;
        MPI_Send(part, words, MPI_LONG, 0, 1, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    base_init(&argc, &argv);
    require(NP == 2, "message: two ranks");
    for (long bytes = 8; bytes <= 2L << 20; bytes *= bytes == 8 ? 64 : 8) {
        words = (int)(bytes / 8);
        part = xcalloc((size_t)words, 8);
        struct stat3 s = bench(there_and_back, NULL);
        if (RANK == 0) emit("message", "there_and_back", NP, s, "us", "\"bytes\":%ld", bytes);
        require(RANK || (part[0] && part[words - 1]), "message: values");
        free(part);
    }
    base_done();
    return 0;
}
