"""Messages between the notebook and the worker process: a length, then that many bytes.

Jobs go to the worker as pickles, since they hold the reader's function. Outcomes come back as JSON with arrays as
base64, so that nothing a reader's function returns is ever unpickled in the notebook.
"""

import base64
import json
import struct

import numpy as np

from helpers.checks.observe import Outcome, Problem, Strange

FRAME_LIMIT = 64_000_000     # bytes; an outcome of SIZE_LIMIT numbers needs about 5 million


def send(stream, data):
    stream.write(struct.pack(">Q", len(data)) + data)
    stream.flush()


def receive(stream):
    """The next message, or None when the other side is gone (or talks nonsense)."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    (length,) = struct.unpack(">Q", head)
    if length > FRAME_LIMIT:
        return None
    data = stream.read(length)
    return data if len(data) == length else None


def pack(outcome, **more):
    """An outcome as JSON bytes."""
    plain = vars(outcome) | {"value": encode(outcome.value), "error": outcome.error and vars(outcome.error)}
    return json.dumps(plain | more).encode()


def unpack(message):
    """(outcome, the further entries) from a message of `pack`."""
    plain = json.loads(message)
    error = plain.pop("error", None)
    if error:
        error["shapes"] = tuple(map(tuple, error["shapes"]))
        error = Problem(**error)
    fields = {name: plain.pop(name) for name in ("ended", "changed", "shared", "printed", "warned") if name in plain}
    fields["warned"] = tuple(map(tuple, fields.get("warned", ())))
    value = decode(plain.pop("value", None))
    return Outcome(value=value, error=error, **fields), plain


def encode(value):
    if isinstance(value, np.ndarray):
        value = np.ascontiguousarray(value).reshape(value.shape)      # ascontiguousarray makes (1,) of ()
        return {"array": base64.b64encode(value.tobytes()).decode(), "dtype": value.dtype.str, "shape": value.shape}
    if isinstance(value, Strange):
        return {"strange": value.what, "shape": value.shape}
    if isinstance(value, list):
        return [encode(part) for part in value]
    return {"float": repr(value)} if isinstance(value, float) else value


def decode(value):
    if isinstance(value, list):
        return [decode(part) for part in value]
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    if "strange" in value:
        return Strange(value["strange"], None if value["shape"] is None else tuple(value["shape"]))
    dtype = np.dtype(value["dtype"])
    if dtype.hasobject:
        raise ValueError("an array of objects")
    return np.frombuffer(base64.b64decode(value["array"]), dtype).reshape(value["shape"]).copy()
