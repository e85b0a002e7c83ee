#!/usr/bin/env python3
"""Times trace_diff beside Python's json and jq, on the same files in one run.

usage: trace_diff_speed.py TRACE_DIFF [--records=N] [--rounds=N] [--core=N] [--cases=NAME,...] [--cache=written|read]

Writes two traces of N FastVideo-style records (a transformer of 40 blocks, null
steps; past 208000 records they repeat) with every number different, with equal
lines in all but the last hundredth, and identical ones; --cases chooses among
all_differ, equal_but_1_percent and identical. Prints one JSON line per
measurement: the rate in bytes of both files together per second of processor
time (which a shared machine does not distort as it does wall time), the best of
the rounds, and the largest resident set beside the mapping; then the ratios.
What the page cache holds matters as much as the tool does: of files in small
writes (--cache=written, as a hook leaves them) small pages, of files read from
the disk (--cache=read) large ones, which cost a fraction to map.
All run pinned to one core; Python and jq read the first 30000 records, or the
first eighth when that is less.
"""
import itertools, json, multiprocessing, os, random, resource, shutil, struct, subprocess, sys, tempfile, time

OPS = ["norm1", "attn1.to_q", "attn1.to_k", "attn1.to_v", "attn1.to_out.0", "attn1", "norm2", "attn2.to_q", "attn2", "ffn.net.0.proj", "ffn.net.2", "ffn", ""]


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


DISTINCT = 208000  # a multiple of 40 blocks of OPS


def pair_of_lines(records, seed=1):
    """Lines of both sides; every number of the second is off by about 1e-7."""
    rnd = random.Random(seed)
    tail = '"shape": [1, 4096, 5120], "dtype": "torch.float32"}\n'
    form = '"abs_mean": %r, "sum": %r, "min": %r, "max": %r, "mean": %r, "std": %r, '
    left, right = [], []
    while len(left) < records:
        for block in range(40):
            for op in OPS:
                name = f"blocks.{block}" + ("." + op if op else "")
                values = [f32(rnd.uniform(0.5, 1)), f32(rnd.gauss(0, 1000)), f32(-rnd.uniform(3, 9)), f32(rnd.uniform(3, 9)), f32(rnd.gauss(0, 0.01)), f32(rnd.uniform(0.5, 2))]
                head = '{"module": "%s", "tensor": "out", "step": null, ' % name
                left.append(head + form % tuple(values) + tail)
                right.append(head + form % tuple(f32(v * (1 + 1.3e-7)) for v in values) + tail)
    return left[:records], right[:records]


def read_back(path):
    """Makes the page cache forget the file, and reads it from the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(1 << 20):
            pass


def write_pair(a_path, b_path, records, equal_share, cache):
    left, right = pair_of_lines(min(records, DISTINCT))
    equal = int(equal_share * records)
    with open(a_path, "w") as a, open(b_path, "w") as b:
        for begin in range(0, records, len(left)):
            count = min(len(left), records - begin)
            a.writelines(left[:count])
            same = min(max(equal - begin, 0), count)
            b.writelines(left[:same] + right[same:count])
    if cache == "read":
        read_back(a_path)
        read_back(b_path)


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
    cache = options.get("cache", "written")
    if cache not in ("written", "read"):
        sys.exit("--cache: written or read")
    shares = {"all_differ": 0.0, "equal_but_1_percent": 0.99, "identical": 1.0}
    cases = options.get("cases", ",".join(shares)).split(",")
    folder = tempfile.mkdtemp(prefix="trace_diff_speed.")
    try:
        rates = {}
        for case in cases:
            a, b = (os.path.join(folder, f"{case}_{side}.jsonl") for side in "ab")
            # In a process of its own: what a child of a large process may have resident begins at the parent's size.
            writer = multiprocessing.Process(target=write_pair, args=(a, b, records, shares[case], cache))
            writer.start()
            writer.join()
            if writer.exitcode:
                sys.exit("cannot write the traces")
            runs = [("trace_diff", [tool, a, b])]
            # Python and jq are slow enough to be timed on the beginning.
            parts = [path + ".part" for path in (a, b)]
            for path, part in zip((a, b), parts):
                with open(path) as whole, open(part, "w") as out:
                    out.writelines(itertools.islice(whole, min(30000, records // 8)))
            runs.append(("python_json_dict", [sys.executable, "-c", PYTHON] + parts))
            if shutil.which("jq"):
                runs.append(("jq_slurp_one_field", ["jq", "-n", "--slurpfile", "a", parts[0], "--slurpfile", "b", parts[1], "[range($a|length) | ($a[.].abs_mean - $b[.].abs_mean)] | max"]))
            for name, command in runs:
                size = sum(os.path.getsize(word) for word in command if word.startswith(folder))
                seconds, cpu, rss = best(command, rounds, core)
                rates[case, name] = size / cpu / 1e9
                line = {"kind": "measurement", "case": case, "cache": cache, "tool": name, "seconds": seconds, "cpu_seconds": cpu, "size_bytes": size, "gb_per_cpu_s": round(size / cpu / 1e9, 4), "max_rss_bytes": rss}
                if name == "trace_diff":
                    line["rss_beyond_files_bytes_per_record"] = round((rss - size) / (2 * records), 1)
                print(json.dumps(line), flush=True)
            for path in [a, b] + parts:
                os.remove(path)
        for case in cases:
            ours = rates[case, "trace_diff"]
            print(json.dumps({"kind": "ratio", "case": case, **{name: round(ours / rate, 1) for (other, name), rate in rates.items() if other == case and name != "trace_diff"}}))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
