/* Prints the constants that Fencepost has for an interface of MPI, as the header has them. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int main(void)
{
#ifndef OPEN_MPI /* there these are addresses */
    printf("MPI_COMM_WORLD %lu\n", (unsigned long)(uintptr_t)MPI_COMM_WORLD);
    printf("MPI_BYTE %lu\n", (unsigned long)(uintptr_t)MPI_BYTE);
    printf("MPI_INFO_NULL %lu\n", (unsigned long)(uintptr_t)MPI_INFO_NULL);
    printf("MPI_ERRORS_RETURN %lu\n", (unsigned long)(uintptr_t)MPI_ERRORS_RETURN);
#endif
    printf("MPI_COMM_TYPE_SHARED %lu\n", (unsigned long)MPI_COMM_TYPE_SHARED);
    printf("MPI_THREAD_SERIALIZED %lu\n", (unsigned long)MPI_THREAD_SERIALIZED);
    printf("MPI_ANY_SOURCE %lu\n", (unsigned long)MPI_ANY_SOURCE);
    /* in numbers of 32 bits */
    printf("MPI_SOURCE %lu\n", (unsigned long)offsetof(MPI_Status, MPI_SOURCE) / 4);
    return 0;
}
