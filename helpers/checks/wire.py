"""Messages between the notebook and the worker process: a length, then that many bytes.

Jobs go to the worker as pickles, since they hold the reader's function. Outcomes come back as JSON with
arrays in base64, so that nothing a reader's function returns is ever unpickled in the notebook.
"""

import base64
import json
import struct

import numpy as np

from helpers.checks.observe import Outcome, Place, Problem, Strange, Told

FRAME_LIMIT = 64_000_000  # bytes; an outcome of SIZE_LIMIT numbers needs about 5 million


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
    error = outcome.error and vars(outcome.error) | {
        "place": outcome.error.place and vars(outcome.error.place)
    }
    warned = [(text, place and vars(place)) for text, place in outcome.warned]
    plain = vars(outcome) | {"value": encode(outcome.value), "error": error, "warned": warned}
    return json.dumps(plain | more).encode()


def unpack(message):
    """(outcome, the further entries) from a message of `pack`."""
    plain = json.loads(message)
    error = plain.pop("error", None)
    if error:
        error = Problem(
            error["type"], error["text"], place(error["place"]), tuple(map(tuple, error["shapes"]))
        )
    outcome = Outcome(
        decode(plain.pop("value", None)),
        error,
        plain.pop("ended", ""),
        tuple(plain.pop("changed", ())),
        tuple(plain.pop("shared", ())),
        plain.pop("printed", ""),
        tuple((text, place(where)) for text, where in plain.pop("warned", ())),
        plain.pop("tuple", False),
    )
    return outcome, plain


def place(found):
    return found and Place(**found)


def encode(value):
    if isinstance(value, np.ndarray):
        value = np.ascontiguousarray(value).reshape(value.shape)  # ascontiguousarray makes (1,) of ()
        return {
            "array": base64.b64encode(value.tobytes()).decode(),
            "dtype": value.dtype.str,
            "shape": value.shape,
        }
    if isinstance(value, Strange):
        return {"strange": value.what, "hint": value.hint}
    if isinstance(value, Told):
        return {"told": value.sentence}
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
    if "told" in value:
        return Told(value["told"])
    if "strange" in value:
        return Strange(value["strange"], value["hint"])
    dtype = np.dtype(value["dtype"])
    if dtype.hasobject:
        raise ValueError("an array of objects")
    return np.frombuffer(base64.b64decode(value["array"]), dtype).reshape(value["shape"]).copy()
