#!/bin/sh
# short.sh [options of run.py]: the figures of the README's table, in at most a quarter of an hour on a quiet machine; writes
# short.md. Everything has to be built before: `ROUNDS=1 SECONDS_MAX=1 ./run.sh`.
set -e
cd "$(dirname "$0")"
ONLY='^(limit/hw/2/limits|(fencepost|openmpi5?|mpich5?)/((local|shm)/2/(fence|h_relation|strided|stencil2d|stencil3d|tiled)|(tcp|tcpreno)/2/(fence|h_relation|stencil2d|tiled)))$'
OUT=${OUT:-short.json} TABLES=${TABLES:-short-full.md} ROUNDS=${ROUNDS:-2} SECONDS_MAX=${SECONDS_MAX:-840} ./run.sh --only "$ONLY" "$@"
python3 short.py "${OUT:-short.json}" >short.md
cat short.md
