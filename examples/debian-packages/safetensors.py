"""Writes model files: eight bytes of header length, a JSON header, then the numbers of every tensor, back to back."""

import json
import struct

import numpy as np


def write(path, tensors, metadata):
    header, at = {"__metadata__": metadata}, 0
    for name, tensor in sorted(tensors.items()):
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + 4 * tensor.size]}
        at += 4 * tensor.size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in sorted(tensors.items()):
            f.write(np.ascontiguousarray(tensor, "<f4").tobytes())
