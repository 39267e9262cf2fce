#!/usr/bin/env bash
usage="Usage: tests/stress.sh [--runs N] [--jobs J] [--limit SECONDS] TEST[:FILTER][@TRANSPORT]..

Runs test programs many times and reports every run that failed, hung or was slow.

  TEST         A test program of any crate of this workspace, such as room or failures.
  FILTER       Runs only the tests with this text in their names, as cargo test does.
  TRANSPORT    Runs tests that try several transports on this one only: local, shm, tcp, mixed or sim.
  --runs N     Runs each program N times (default 100).
  --jobs J     Runs J programs at a time (default 3).
  --limit S    Ends a run that takes longer than S seconds, and counts it as hung (default 900).

Cargo builds the programs once. Each run gets a line in target/stress/NAME.log: the commit, when the run
began, its number, its duration in seconds, how it ended, and where its output is. If no tracked file differs
from the commit, then earlier runs of the same commit count as well, so N runs may be made in several parts.
Remove target/stress to begin again.

The summary lists each run that failed, hung or took more than three times the median of its program. The
exit status is 1 if a run failed or hung, and 2 if nothing could be run. Needs cargo and bash 5.1."

set -euo pipefail
export LC_ALL=C # bash writes the time with a point
cd "$(dirname "$0")/.."

refuse() { printf '%s\n' "$1" >&2; exit 2; }
number() { [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || refuse "$1 is '$2', but must be a whole number from 1 to 999999"; }

runs=100 jobs=3 limit=900 wanted=()
while (($#)); do
    case "$1" in
        --runs | --jobs | --limit)
            number "$1" "${2-}"
            declare "${1#--}=$2"
            shift
            ;;
        -h | --help) printf '%s\n' "$usage"; exit ;;
        -*) refuse "$usage" ;;
        *) wanted+=("$1") ;;
    esac
    shift
done
((${#wanted[@]})) || refuse "$usage"

program_of() { local name="${1%%@*}"; printf '%s' "${name%%:*}"; }
filter_of() { local name="${1%%@*}"; [[ $name != *:* ]] || printf '%s' "${name#*:}"; }
transport_of() { [[ $1 != *@* ]] || printf '%s' "${1#*@}"; }
file_of() { printf '%s' "${1//[^a-zA-Z0-9_-]/-}"; } # a name for its files

# Builds the programs, and finds in cargo's messages where they are and in which folder cargo would run them.
chosen=()
for each in "${wanted[@]}"; do chosen+=(--test "$(program_of "$each")"); done
messages="$(cargo test --workspace --no-run --message-format=json "${chosen[@]}")" || refuse 'the tests do not build'
declare -A executables folders
while IFS= read -r line; do
    [[ $line == *'"kind":["test"]'* ]] || continue
    [[ $line =~ \"manifest_path\":\"([^\"]*)/Cargo.toml\" ]] && folder="${BASH_REMATCH[1]}"
    [[ $line =~ \"kind\":\[\"test\"\],[^{}]*\"name\":\"([^\"]*)\" ]] && name="${BASH_REMATCH[1]}"
    [[ $line =~ \"executable\":\"([^\"]*)\" ]] || continue
    [[ ! -v executables[$name] ]] || refuse "two crates have a test program $name"
    executables[$name]="${BASH_REMATCH[1]}" folders[$name]="$folder"
done <<<"$messages"

for each in "${wanted[@]}"; do
    program="$(program_of "$each")" filter="$(filter_of "$each")" transport="$(transport_of "$each")"
    [[ -v executables[$program] ]] || refuse "cargo has built no test program $program"
    [[ "$("${executables[$program]}" --list ${filter:+"$filter"} 2>&1)" == *': test'* ]] ||
        refuse "no test of $program has '$filter' in its name; $program@tcp chooses a transport"
    [[ -z $transport || " local shm tcp mixed sim " == *" $transport "* ]] ||
        refuse "there is no transport $transport: use local, shm, tcp, mixed or sim"
done

logs=target/stress
mkdir -p "$logs"
commit="$(git rev-parse --short HEAD 2>&1)" || commit=unknown
[[ $commit != unknown && -z "$(git status --porcelain --untracked-files=no)" ]] || commit+='+'

# run_once NAME NUMBER: one run, with a line in the log. Job control gives the program a process group of its own,
# so whatever the program has started ends with it, and nothing else does.
run_once() {
    set -m
    local program filter transport file output begun ended status=0 how timer running first
    program="$(program_of "$1")" filter="$(filter_of "$1")" transport="$(transport_of "$1")" file="$(file_of "$1")"
    output="$logs/$file/$commit-$2.out"
    begun="${EPOCHREALTIME/./}"
    (
        cd "${folders[$program]}"
        [[ -z $transport ]] || export FENCEPOST_TEST_TRANSPORTS="$transport"
        export CARGO_MANIFEST_DIR="$PWD" RUST_BACKTRACE=1
        exec "${executables[$program]}" ${filter:+"$filter"}
    ) >"$output" 2>&1 </dev/null &
    running=$!
    sleep "$limit" &
    timer=$!
    trap 'kill -KILL -- "-$running" "-$timer" 2>>"$output"; exit 1' TERM INT
    wait -n -p first "$running" "$timer" || status=$?
    ended="${EPOCHREALTIME/./}"
    if [[ $first == "$timer" ]]; then how=hung; elif ((status)); then how="failed($status)"; else how=passed; fi
    { kill -KILL -- "-$running" "-$timer" && wait; } 2>>"$output" || true
    local took=$(((ended - begun) / 1000))
    printf '%s %(%FT%T)T %d %d.%03d %s %s\n' "$commit" "$((begun / 1000000))" "$2" $((took / 1000)) $((took % 1000)) \
        "$how" "$output" >>"$logs/$file.log"
    [[ $how == passed ]] || printf '  %s, run %d: %s, see %s\n' "$1" "$2" "$how" "$output"
}

workers=()
trap '((${#workers[@]} == 0)) || kill -TERM "${workers[@]}" 2>>"$logs/interrupted"; exit 130' INT TERM
for each in "${wanted[@]}"; do
    file="$(file_of "$each")" before=0
    mkdir -p "$logs/$file"
    touch "$logs/$file.log"
    if [[ $commit == *+ ]]; then
        : >"$logs/$file.log" # runs of other contents do not count
    else
        before="$(grep -c "^$commit " "$logs/$file.log" || true)"
    fi
    printf '%s: %d runs, %d at a time\n' "$each" "$runs" "$jobs"
    workers=()
    for ((run = before + 1; run <= before + runs; run += 1)); do
        while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
        run_once "$each" "$run" &
        workers+=("$!")
    done
    wait
done

failed=0
for each in "${wanted[@]}"; do
    file="$(file_of "$each")" all=() bad=0 listed=()
    while read -r of _ _ took how _; do
        [[ $of == "$commit" ]] || continue
        all+=("$((10#${took/./}))")
        [[ $how == passed ]] || bad=$((bad + 1))
    done <"$logs/$file.log"
    mapfile -t sorted < <(printf '%s\n' "${all[@]}" | sort -n)
    count=${#sorted[@]}
    median="${sorted[count / 2]}" most="${sorted[count - 1]}"
    while read -r of _ run took how output; do
        [[ $of == "$commit" ]] || continue
        if [[ $how != passed ]] || ((10#${took/./} > 3 * median)); then
            listed+=("    run $run $how after $took s: $output")
        fi
    done <"$logs/$file.log"
    printf '%s at %s: %d runs, %d failed or hung, median %d.%03d s, longest %d.%03d s\n' "$each" "$commit" "$count" "$bad" \
        $((median / 1000)) $((median % 1000)) $((most / 1000)) $((most % 1000))
    ((${#listed[@]} == 0)) || printf '%s\n' "${listed[@]}"
    ((bad == 0)) || failed=1
done
exit "$failed"
