#!/usr/bin/env python3
"""short.py [--all] results.json -- prints the short table of the README: ours and the fastest peer of the same run.

Ranks are processes, ours as well; with --all there are more rows, and those of ours as threads."""
import contextlib, io, json, runpy, sys

ALL = "--all" in sys.argv
path = next((word for word in sys.argv[1:] if word != "--all"), "results.json")
sys.argv = ["report.py", path]
with contextlib.redirect_stdout(io.StringIO()):
    report = runpy.run_path(__file__.replace("short.py", "report.py"))
get, mpi, best, F = report["get"], report["mpi"], report["best"], report["F"]
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH", "openmpi5": "Open MPI 5", "mpich5": "MPICH"}
# A ratio beyond these is a miss.
BEST, PLAIN = 1.05, 1.20
US = {"us": 1.0, "ns": 1e-3}

def time(f):
    us = f["median"] * US[f["unit"]]
    return "%.2f us" % us if us < 10 else "%.1f us" % us if us < 100 else "%.0f us" % us if us < 1e4 else "%.1f ms" % (us / 1e3)

def ratio(ours, peer, limit):
    if not ours: return "-"
    r = ours["median"] * US[ours["unit"]] / (peer["median"] * US[peer["unit"]])
    return ("**%.2f**" if r > limit else "%.2f") % r

def row(what, tr, bench, case, cases, **kw):
    """One line: ours called plainly, as the README teaches it, our fastest form, and the fastest peer; figures of one state of the two cores if there are any."""
    for state in ("mid", "near", "far", None):
        for ours_tr in (("local", "shm") if tr == "shm" and ALL else (tr,)):
            p = ("fencepost", ours_tr, 2)
            ways = {v: get(*p, bench, case, state, variant=v, **kw) for v in ("dynamic", "superstep", "prepared", "collective")}
            if bench == "fence" and case == "fence": ways["prepared"] = None
            peer, ours = mpi(tr, 2, bench, cases, state, **kw), best(ways.values())
            if not peer or not ours: continue
            plain = ways["superstep"] or ways["dynamic"] or ours
            way = next(v for v, f in ways.items() if f is ours)
            where = {"mid": "", "near": ", near", "far": ", far", None: ", states differ"}[state]
            by = {"tcp": "TCP (BBR)", "tcpreno": "TCP (Reno)"}.get(ours_tr, ours_tr)
            yield ["%s, %s%s" % (what, by, where),
                   time(plain), "%s (%s)" % (time(ours), way), "%s (%s, %s)" % (time(peer), NAMES[peer["peer"]], peer["case"].split("/")[0]),
                   ratio(plain, peer, PLAIN), ratio(ours, peer, BEST)]
        if any(mpi(tr, 2, bench, cases, state, **kw) and best([get("fencepost", t, 2, bench, case, state, variant=v, **kw) for v in ("dynamic", "superstep", "prepared", "collective")]) for t in ("local", "shm", tr)):
            return

WAYS = ["put_fence/allocate", "put_fence/create", "alltoallv", "isend_irecv"]
R = []
R += row("empty fence", "shm", "fence", "fence", ["fence"])
R += row("put of 8 bytes and fence", "shm", "fence", "put_fence8", ["put_fence8"])
R += row("allreduce of 8 bytes", "shm", "fence", "allreduce8", ["allreduce8"])
for b, name in ((4096, "4 KiB"), (1 << 20, "1 MiB"), (8 << 20, "8 MiB")):
    R += row("%s to each other" % name, "shm", "h_relation", "put_fence/allocate", WAYS, bytes=b)
R += row("column of 1024 of 8 bytes", "shm", "strided", "column/type", ["column/type", "column/pack", "column/sendtype"], n=1024)
for n in (1024, 2048, 4096):
    for cut in ("rows", "cols") if ALL or n == 2048 else ("rows",):
        steps = ["%s/%s/step" % (m, cut) for m in ("p2p_type", "p2p_pack", "put_fence", "put_pscw")]
        R += row("Jacobi step, %d squared, cut by %s" % (n, {"rows": "rows", "cols": "columns"}[cut]), "shm", "stencil2d", "put_fence/%s/step" % cut, steps, n=n)
        if cut == "rows":
            for peers, cases in (("step by step", steps), ("tiled by hand", ["tiled%d/rows/step" % k for k in (8, 16)])):
                R += row("the same tiled; MPI %s" % peers, "shm", "stencil2d", "put_fence/rows/tiled", cases, n=n)
for n in (128, 256):
    for cut in ("split_i", "split_k") if ALL or n == 128 else ("split_i",):
        steps = ["%s/%s/step" % (m, cut) for m in ("p2p_type", "p2p_pack", "put_fence", "put_pscw")]
        R += row("Jacobi step, %d cubed, cut along %s" % (n, cut[-1]), "shm", "stencil3d", "put_fence/%s/step" % cut, steps, n=n)
        if cut == "split_i":
            for peers, cases in (("step by step", steps), ("tiled by hand", ["tiled%d%s/split_i/step" % (k, b) for k in (4, 8) for b in "bp"])):
                R += row("the same tiled; MPI %s" % peers, "shm", "stencil3d", "put_fence/split_i/tiled", cases, n=n)
for tr in ("tcp", "tcpreno"):
    small = ALL or tr == "tcp"
    if small: R += row("put of 8 bytes and fence", tr, "fence", "put_fence8", ["put_fence8", "allreduce8"])
    for b, name in ((4096, "4 KiB"), (1 << 20, "1 MiB"), (8 << 20, "8 MiB"))[0 if small else 1:]:
        R += row("%s to each other" % name, tr, "h_relation", "put_fence/allocate", WAYS, bytes=b)
    steps = ["%s/rows/step" % m for m in ("p2p_type", "p2p_pack", "put_fence", "put_pscw")]
    R += row("Jacobi step, 2048 squared, cut by rows", tr, "stencil2d", "put_fence/rows/step", steps, n=2048)
    for peers, cases in (("step by step", steps), ("tiled by hand", ["tiled%d/rows/step" % k for k in (8, 16)])):
        R += row("the same tiled; MPI %s" % peers, tr, "stencil2d", "put_fence/rows/tiled", cases, n=2048)

m = report["doc"]["machine"]
kernel = ".".join(m["kernel"].split(".")[:2])
print("%s, %s cores, Linux %s, %s.\n" % (m["cpu"], m["cpus"], kernel, m["when"][:10]))
print("| 2 ranks | called plainly | our fastest form | the fastest peer | plainly | fastest form |\n|---|---|---|---|---|---|")
for r in R: print("| " + " | ".join(r) + " |")
within = lambda column: sum("**" not in r[column] and r[column] != "-" for r in R)
print("\nCalled plainly, %d of %d rows are within %.2f of the fastest peer. In our fastest form, %d are within %.2f." % (within(4), len(R), PLAIN, within(5), BEST))
