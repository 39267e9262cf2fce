#!/bin/sh
# over_mpi.sh [options of run.py]: measures ours over the messages of Open MPI 5 and MPICH 5, and the own calls of both MPIs, in
# at most a quarter of an hour; writes over_mpi.md. Everything has to be built before: `ROUNDS=1 SECONDS_MAX=1 ./run.sh`.
set -e
cd "$(dirname "$0")"
ONLY='^((fencepost-)?(openmpi5|mpich5)/(shm|tcp|shared|unbound)/2/(fence|put_rate|h_relation|strided)|fencepost/shm/2/(fence|put_rate|h_relation|strided)|(fencepost-)?mpich5?/shm/[48]/fence)$'
OUT=${OUT:-over_mpi.json} TABLES=${TABLES:-over_mpi-full.md} ROUNDS=${ROUNDS:-3} SECONDS_MAX=${SECONDS_MAX:-840} ./run.sh --only "$ONLY" "$@"
python3 over_mpi.py "${OUT:-over_mpi.json}" >over_mpi.md
cat over_mpi.md
