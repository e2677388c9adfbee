# SPDX-License-Identifier: Apache-2.0
"""Read and write safetensors files with numpy."""

import json

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def read(path):
    """Return ({name: array}, metadata). BF16 is widened to float32, because numpy has no BF16."""
    with open(path, "rb") as file:
        blob = file.read()
    header_bytes = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8:8 + header_bytes])
    data = memoryview(blob)[8 + header_bytes:]
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        raw = data[begin:end]
        if entry["dtype"] == "BF16":
            array = bf16_to_f32(np.frombuffer(raw, "<u2"))
        else:
            array = np.frombuffer(raw, DTYPES[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"])
    return tensors, metadata


def write(path, tensors, metadata, types=None):
    """Write tensors ordered by decreasing dtype width, then by name, which keeps every tensor aligned.

    types: {name: "BF16"} for the tensors whose arrays hold BF16 bits as uint16.
    """
    header, data = {"__metadata__": dict(metadata)}, bytearray()
    for name in sorted(tensors, key=lambda n: (-tensors[n].dtype.itemsize, n)):
        array = np.ascontiguousarray(tensors[name])
        header[name] = {"dtype": (types or {}).get(name) or NAMES[array.dtype], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def bf16_to_f32(bits):
    return (np.asarray(bits, np.uint32) << 16).view(np.float32)


def f32_to_bf16(values):
    """Return the BF16 bits of finite values, rounded to nearest even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
