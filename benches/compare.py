#!/usr/bin/env python3
"""Compares the benches of two checkouts by interleaved pairs, and exits with 1 if a row became slower.

    benches/compare.py OLD NEW [--pairs 9] [--limit 1.02] [--bench NAME]... [QUESTION]...

OLD and NEW are folders of two checkouts. Their benches are built first, each in its own target folder. A pair runs a bench
of both builds, and the first of a pair changes. A row is one side of one question. Two figures are compared: the median of
the row, and the median relative to the first side of its question, which is a limit written by hand in most benches. The
second figure cancels what the machine does to both. A row counts as slower if the second smallest of nine pairs exceeds the
limit in both figures: the second smallest and the second largest of nine enclose the median with 96 percent. Few rounds
are enough, since pairs are compared: FENCEPOST_BENCH_ROUNDS and FENCEPOST_BENCH_MS are 5 and 4 unless they are set.
"""

import argparse
import os
import re
import subprocess
import sys
import time

ROW = re.compile(r"^  (.{34}) +([0-9.]+) +([0-9.]+) +([0-9.]+) +([0-9.]+)")


def built(folder, wanted):
    """Builds these benches of a checkout, or all; returns their programs by name."""
    picked = [word for name in wanted or ["*"] for word in ("--bench", name)]
    command = ["cargo", "bench", "--workspace", *picked, "--locked", "--no-run"]
    done = subprocess.run(command, cwd=folder, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{folder}: the benches do not build:\n{done.stderr}")
    programs = re.findall(r"Executable .*\((.*)\)", done.stderr)
    names = {re.sub(r"-[0-9a-f]+$", "", os.path.basename(path)): path for path in programs}
    return {name: os.path.join(folder, path) for name, path in names.items()}


def measured(program, folder, questions):
    """Runs a bench once; returns the median of each row, by question and side."""
    environment = {"FENCEPOST_BENCH_ROUNDS": "5", "FENCEPOST_BENCH_MS": "4", **os.environ}
    command = [program, "--bench", "--ratios", *questions]
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    rows, question, before = {}, "", ""
    for line in done.stdout.splitlines():
        if row := ROW.match(line):
            if row[1].strip() != "ns":
                rows[question, row[1].strip()] = float(row[2])
        elif line.startswith("  ns"):
            question = before
        before = line
    return rows


def relative(rows):
    """Divides each row by the first one of its question."""
    first = {}
    for (question, side), figure in rows.items():
        first.setdefault(question, figure)
    return {key: figure / (first[key[0]] or 1) for key, figure in rows.items()}


def spread(ratios):
    """The ends of the interval, and the middle."""
    ratios = sorted(ratios)
    cut = 1 if len(ratios) >= 9 else 0
    return ratios[cut], ratios[len(ratios) // 2], ratios[len(ratios) - 1 - cut]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help="only questions that contain one of these words")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--limit", type=float, default=1.02)
    parser.add_argument("--bench", action="append", help="only this bench (repeatable)")
    options = parser.parse_args()
    folders = [os.path.abspath(options.old), os.path.abspath(options.new)]
    programs = [built(folder, options.bench) for folder in folders]
    names = [name for name in programs[0] if name in programs[1]]
    slower, compared = [], 0
    for name in names:
        begun, pairs = time.monotonic(), []
        for pair in range(options.pairs):
            rows = [{}, {}]
            for side in (0, 1) if pair % 2 == 0 else (1, 0):
                rows[side] = measured(programs[side][name], folders[side], options.questions)
            pairs.append(rows)
        keys = [key for key in pairs[0][0] if all(key in rows for pair in pairs for rows in pair)]
        print(f"\n{name}: {len(keys)} rows, {options.pairs} pairs in {time.monotonic() - begun:.0f} s", flush=True)
        for key in keys:
            plain = spread([new[key] / old[key] for old, new in pairs if old[key]] or [1.0])
            held = spread([relative(new)[key] / relative(old)[key] for old, new in pairs if relative(old)[key]] or [1.0])
            # The first side of a question is compared by its time alone.
            is_slower = plain[0] > options.limit and (held[0] > options.limit or held == (1.0, 1.0, 1.0))
            compared += 1
            if is_slower:
                slower.append((name, key, plain))
            if is_slower or plain[1] > options.limit:
                mark = "SLOWER" if is_slower else "      "
                print(f"  {mark} {key[0][:60]:<60} {key[1]:<34} new/old {plain[1]:.3f} ({plain[0]:.3f} to {plain[2]:.3f}),"
                      f" to the first side {held[1]:.3f} ({held[0]:.3f} to {held[2]:.3f})", flush=True)
    print(f"\n{compared} rows compared, {len(slower)} slower than {options.limit}")
    sys.exit(bool(slower))


if __name__ == "__main__":
    main()
