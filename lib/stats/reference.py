#!/usr/bin/env python3
"""Defines h_set, h_pos, sk, amax_idx, exp_hist and samp in plain Python.

usage: reference.py FILE.safetensors [NAME...]

For programs that want to write the same statistics: everything is here, one element at a time. Prints one JSON line per
F32 or BF16 tensor. docs/formats/activation_trace.md has the prose.
"""
import base64, json, math, struct, sys

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
LANES = (0xA0761D65, 0xE7037ED1, 0x8EBC6AF1, 0x589965CD, 0x1D8E4E27, 0xEB44ACCB, 0xC2B2AE3D, 0x27D4EB2F)


def group_hash(group):
    u = (group + 1) * 0x9E3779B97F4A7C15 & M64
    u = (u ^ u >> 32) * 0xD6E8FEB86659FD93 & M64
    return u ^ u >> 32


def set_mix(bits):
    return ((bits + 0x9E3779B9) & M32) * (bits * 0x85EBCA6B & M32)


def statistics(words):
    """`words`: the float32 bit pattern of each element, in row-major order."""
    h_set = h_pos = 0
    sketch, hist, amax, amax_index = [0.0] * 64, {}, -1.0, None
    values = struct.unpack(f"<{len(words)}f", struct.pack(f"<{len(words)}I", *words))
    for i, (bits, x) in enumerate(zip(words, values)):
        if math.isnan(x):
            bits = 0x7FC00000
        group, lane = divmod(i, 8)
        hash_ = group_hash(group)
        h_set += set_mix(bits)
        h_pos += (hash_ | 1) * (LANES[lane] * bits)
        if not math.isfinite(x):
            continue
        rotation = group_hash(group // 64 ^ 1 << 62) >> 20 & 63
        negative = hash_ >> 40 + lane // 2 + lane % 2 * 16 & 1
        sketch[group % 64 ^ rotation] += -x if negative else x
        exponent = bits >> 23 & 0xFF
        hist[exponent] = hist.get(exponent, 0) + 1
        if abs(x) > amax:
            amax, amax_index = abs(x), i
    samples = [values[group_hash(k ^ 1 << 61) % len(values)] for k in range(min(32, len(values)))] if values else []
    return {"h_set": f"{h_set & M64:016x}", "h_pos": f"{h_pos & M64:016x}", "amax_idx": amax_index, "exp_hist": [list(p) for p in sorted(hist.items())],
            "samp": base64.b64encode(struct.pack(f"<{len(samples)}f", *samples)).decode(), "sk": base64.b64encode(struct.pack("<64f", *sketch)).decode()}


def main():
    with open(sys.argv[1], "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    for name, tensor in header.items():
        if name == "__metadata__" or tensor["dtype"] not in ("F32", "BF16") or len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        begin, end = tensor["data_offsets"]
        wide = tensor["dtype"] == "F32"
        words = struct.unpack(f"<{(end - begin) // (4 if wide else 2)}{'I' if wide else 'H'}", data[begin:end])
        print(json.dumps({"module": name, **statistics(words if wide else [w << 16 for w in words])}))


if __name__ == "__main__":
    main()
