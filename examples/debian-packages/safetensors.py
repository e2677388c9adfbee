# SPDX-License-Identifier: Apache-2.0
"""Writes safetensors files: eight bytes with the header's length, a JSON header, then all tensors without gaps."""

import json
import struct

import numpy as np


TYPES = {"F32": "<f4", "F16": "<f2", "I64": "<i8"}


def write(path, tensors, metadata):
    """Write float16 and int64 tensors as they are, all others as float32."""
    stored = {}
    for name, tensor in sorted(tensors.items()):
        kind = {"float16": "F16", "int64": "I64"}.get(str(tensor.dtype), "F32")
        stored[name] = kind, np.ascontiguousarray(tensor, TYPES[kind])
    header, at = {"__metadata__": metadata}, 0
    for name, (kind, tensor) in stored.items():
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in stored.values():
            f.write(tensor.tobytes())
