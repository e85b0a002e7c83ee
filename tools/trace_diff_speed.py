#!/usr/bin/env python3
"""Times trace_diff beside Python's json and jq, on the same files in one run.

usage: trace_diff_speed.py TRACE_DIFF [--records=N] [--rounds=N] [--core=N]

Writes two traces of N FastVideo-style records (a transformer of 40 blocks, null
steps), once with every number different and once with equal lines in all but
the last hundredth, and prints one JSON line per measurement: the rate in bytes
of both files together per second of processor time (which a shared machine
does not distort as it does wall time), the best of the rounds, and the largest
resident set beside the mapping. All run pinned to one core.
"""
import json, math, os, random, resource, shutil, struct, subprocess, sys, tempfile, time

OPS = ["norm1", "attn1.to_q", "attn1.to_k", "attn1.to_v", "attn1.to_out.0", "attn1", "norm2", "attn2.to_q", "attn2", "ffn.net.0.proj", "ffn.net.2", "ffn", ""]


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def write_pair(a_path, b_path, records, equal_share, seed=1):
    """Every number of the second file is off by about 1e-7, past the share that is equal."""
    rnd = random.Random(seed)
    tail = '"shape": [1, 4096, 5120], "dtype": "torch.float32"}\n'
    with open(a_path, "w") as a, open(b_path, "w") as b:
        written = 0
        while written < records:
            for block in range(40):
                for op in OPS:
                    name = f"blocks.{block}" + ("." + op if op else "")
                    values = [f32(rnd.uniform(0.5, 1)), f32(rnd.gauss(0, 1000)), f32(-rnd.uniform(3, 9)), f32(rnd.uniform(3, 9)), f32(rnd.gauss(0, 0.01)), f32(rnd.uniform(0.5, 2))]
                    head = '{"module": "%s", "tensor": "out", "step": null, ' % name
                    line = head + '"abs_mean": %r, "sum": %r, "min": %r, "max": %r, "mean": %r, "std": %r, ' % tuple(values) + tail
                    a.write(line)
                    if written >= equal_share * records:
                        line = head + '"abs_mean": %r, "sum": %r, "min": %r, "max": %r, "mean": %r, "std": %r, ' % tuple(f32(v * (1 + 1.3e-7)) for v in values) + tail
                    b.write(line)
                    written += 1
                    if written >= records:
                        return


def best(command, rounds, core, **more):
    times, cpu, rss = [], [], 0
    for _ in range(rounds):
        start = time.perf_counter()
        process = subprocess.Popen(["taskset", "-c", str(core)] + command, stdout=subprocess.DEVNULL, **more)
        _, status, usage = os.wait4(process.pid, 0)
        times.append(time.perf_counter() - start)
        cpu.append(usage.ru_utime + usage.ru_stime)
        rss = max(rss, usage.ru_maxrss * 1024)
        if os.waitstatus_to_exitcode(status) not in (0, 1):
            sys.exit(f"failed: {' '.join(command)}")
    return min(times), min(cpu), rss


PYTHON = r"""
import json, sys
def load(path):
    table, seen = {}, {}
    for line in open(path):
        r = json.loads(line)
        k = r["module"], r["tensor"], r["step"]
        n = seen[k] = seen.get(k, -1) + 1
        table[k + (n,)] = r
    return table
a, b = load(sys.argv[1]), load(sys.argv[2])
worst = 0
for k, r in a.items():
    o = b[k]
    for s in ("abs_mean", "sum", "min", "max", "mean", "std"):
        worst = max(worst, abs(r[s] - o[s]))
"""


def main():
    options = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--"))
    tool = [word for word in sys.argv[1:] if not word.startswith("--")][0]
    records, rounds, core = int(options.get("records", 400000)), int(options.get("rounds", 3)), int(options.get("core", os.cpu_count() - 1))
    folder = tempfile.mkdtemp(prefix="trace_diff_speed.")
    try:
        rates = {}
        for kind, share in (("all_differ", 0.0), ("equal_but_1_percent", 0.99)):
            a, b = (os.path.join(folder, f"{kind}_{side}.jsonl") for side in "ab")
            write_pair(a, b, records, share)
            size = os.path.getsize(a) + os.path.getsize(b)
            runs = [("trace_diff", [tool, a, b], size)]
            if kind == "all_differ":
                # Python and jq are slow enough to be timed on the first eighth.
                parts = []
                for path in (a, b):
                    part = path + ".part"
                    with open(path) as whole, open(part, "w") as out:
                        for _ in range(records // 8):
                            out.write(next(whole))
                    parts.append(part)
                part_size = sum(map(os.path.getsize, parts))
                runs.append(("python_json_dict", [sys.executable, "-c", PYTHON] + parts, part_size))
                if shutil.which("jq"):
                    jq = ["jq", "-n", "--slurpfile", "a", parts[0], "--slurpfile", "b", parts[1], "[range($a|length) | ($a[.].abs_mean - $b[.].abs_mean)] | max"]
                    runs.append(("jq_slurp_one_field", jq, part_size))
            for name, command, bytes_ in runs:
                seconds, cpu, rss = best(command, rounds, core)
                rate = bytes_ / cpu / 1e9
                rates[kind, name] = rate
                line = {"kind": "measurement", "case": kind, "tool": name, "seconds": seconds, "cpu_seconds": cpu, "size_bytes": bytes_, "gb_per_cpu_s": round(rate, 4), "max_rss_bytes": rss}
                if name == "trace_diff":
                    line["rss_beyond_files_bytes_per_record"] = round((rss - bytes_) / (2 * records), 1)
                print(json.dumps(line), flush=True)
        ours = rates["all_differ", "trace_diff"]
        print(json.dumps({"kind": "ratio", **{name: round(ours / rate, 1) for (case, name), rate in rates.items() if case == "all_differ" and name != "trace_diff"}}))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
