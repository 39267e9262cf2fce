#!/usr/bin/env python3
"""over_mpi.py results.json -- prints our figures over the messages of an MPI next to those of the MPI's own calls, losses first.

Both figures are of one run, and of one state of the two cores if there are such figures."""
import contextlib, io, runpy, statistics, sys

path = sys.argv[1] if len(sys.argv) > 1 else "over_mpi.json"
sys.argv = ["report.py", path]
with contextlib.redirect_stdout(io.StringIO()):
    report = runpy.run_path(__file__.replace("over_mpi.py", "report.py"))
get, best, F = report["get"], report["best"], report["F"]
STATES = ("mid", "near", "far", "moved", None)
US = {"us": 1.0, "ns": 1e-3}
MPIS = {"openmpi5": "Open MPI 5", "mpich5": "MPICH 5"}
R = []

def micros(f): return f["median"] * US[f["unit"]]

def spread(f):
    k = US[f["unit"]]
    return "%.4g us (%.4g to %.4g)" % (f["median"] * k, f["min"] * k, f["max"] * k)

# Open MPI 5 moves one-sided data of one host through shared memory, whatever its wires are.
def is_no_peer(mpi, wires, theirs): return (mpi, wires) == ("openmpi5", "tcp") and any("fence" in c or "separate" in c for c in theirs)

def row(what, mpi, wires, bench, case, ways, theirs, most, ours_at=None, **kw):
    """Adds a row: the fastest of our `ways` over that MPI, next to the fastest of the cases `theirs` of the MPI."""
    if is_no_peer(mpi, wires, theirs): return
    for state in STATES:
        at = ours_at or wires
        us = best([get("fencepost-" + mpi, at, 2, bench, case, state, variant=v, **kw) for v in ways])
        them = best([get(mpi, w, 2, bench, c, state, **kw, **({"win": "allocate"} if bench in ("put_rate", "fence") and "/" in c + "/" and c != "sendrecv_ring8" else {})) for w in wires.split("+") for c in theirs])
        if us and them:
            ratio = micros(us) / micros(them)
            R.append((ratio / most, [what, "%s, %s%s" % (MPIS[mpi], at, "" if state else ", states differ"), spread(us), "%s, %s" % (spread(them), them["case"]), "%.3g" % ratio, "%.3g" % most]))
            return

DYNAMIC, PREPARED = ("dynamic",), ("prepared",)
for mpi in MPIS:
    for wires, most in (("shm", 1 / 3), ("tcp", 1 / 6)):
        for op, name in (("put", "puts of 8 bytes"), ("acc", "sums of f64")):
            case = op + "_rand_one/fence"
            row("10,000 scattered %s" % name, mpi, wires, "put_rate", case, DYNAMIC, [case], most, n=10000)
            if wires == "shm":
                row("10,000 scattered %s, sharing" % name, mpi, "shm", "put_rate", case, DYNAMIC, [case], 1 / 5, ours_at="shared", n=10000)
    row("a put of 8 bytes and a fence", mpi, "tcp", "fence", "put_fence8", DYNAMIC + ("superstep", "prepared"), ["sendrecv_ring8"], 1.4)
    row("a put of 8 bytes and a fence", mpi, "tcp", "fence", "put_fence8", DYNAMIC + ("superstep", "prepared"), ["put_fence8"], 0.9)
    for wires in ("shm", "tcp"):
        for b, name in ((4096, "4 KiB"), (32768, "32 KiB"), (262144, "256 KiB"), (1048576, "1 MiB")):
            most = 1.5 if wires == "tcp" and 16384 <= b <= 65536 else 1.25
            row("rows of %s, prepared" % name, mpi, wires, "h_relation", "put_fence/allocate", PREPARED, ["persistent"], most, bytes=b)
        row("exchange of 1 MiB, prepared", mpi, wires, "h_relation", "put_fence/allocate", PREPARED, ["alltoallv"], 1.2, bytes=1048576)
        for shape, n, name in (("column", 1024, "a column of 1024"), ("face_k", 128, "the k-face of 128 cubed")):
            row("%s, prepared" % name, mpi, wires, "strided", shape + "/type", PREPARED, ["%s/%s" % (shape, way) for way in ("persistent", "persistent_pack")], 1.25, n=n)
        row("a column of 1024 as puts", mpi, wires, "strided", "column/separate", DYNAMIC, ["column/separate"], 1 / 3, n=1024)
    row("1,000 scattered gets", mpi, "tcp", "put_rate", "get_rand_one/fence", DYNAMIC, ["get_rand_one/fence"], 1 / 50, n=1000)
R.sort(key=lambda r: -r[0])
print("| 2 ranks | over | ours, median (least to greatest) | theirs | ratio | at most |\n|---|---|---|---|---|---|")
for miss, r in R: print("| " + " | ".join(r[:4] + ["**%s**" % r[4] if miss > 1 else r[4], r[5]]) + " |")
print("\nOpen MPI 5 moves one-sided data of one host through shared memory, so it is no peer for them over TCP.")
print("\n%d of %d rows within their limit.\n" % (sum(miss <= 1 for miss, _ in R), len(R)))

keys = ("bench", "case", "variant", "n", "bytes", "win")
def key(f): return tuple(f.get(k) for k in keys)
own = {}
for f in F:
    if (f["peer"], f["transport"], f["P"]) == ("fencepost", "shm", 2): own.setdefault((key(f), f.get("state", "")), f)
print("| sharing, under | bound | figures | median of ours under it / by our own launcher, not bound | at most |\n|---|---|---|---|---|")
for mpi in MPIS:
    for at, bound in (("shared", "yes"), ("unbound", "no")):
        pairs = [(micros(f) if f["unit"] in US else f["median"], own.get((key(f), f.get("state", "")))) for f in F if (f["peer"], f["transport"]) == ("fencepost-" + mpi, at)]
        ratios = sorted(mine / (micros(f) if f["unit"] in US else f["median"]) for mine, f in pairs if f)
        if ratios: print("| %s | %s | %d | %.3f (a quarter above %.3f) | 1.05 |" % (MPIS[mpi], bound, len(ratios), statistics.median(ratios), ratios[len(ratios) * 3 // 4]))
print("\n| ranks on %d cores | ours, empty fence over it | MPI_Win_fence | ratio | at most |\n|---|---|---|---|---|" % report["doc"]["machine"]["cpus"])
for mpi in ("mpich", "mpich5"):
    for P in (4, 8):
        us, them = get("fencepost-" + mpi, "shm", P, "fence", "fence", variant="dynamic"), get(mpi, "shm", P, "fence", "fence", win="allocate")
        if us and them: print("| %d, %s | %s | %s | %.3g | 0.1 |" % (P, mpi, spread(us), spread(them), micros(us) / micros(them)))
