"""The course's own trained model: two layers of causal attention that read tiny stories.

    from helpers import tiny_model
    model = tiny_model.load()
    trace = model.run("anna loves apples . she eats")
    trace.top(3)                    # the likeliest next words
    trace.layers[0].A[2]            # the attention pattern of layer 0, head 2

`corpus` is the grammar the stories come from, `model` the forward pass, `train` makes the weights.
"""

from helpers.tiny_model.model import TinyModel, Trace, load

__all__ = ["TinyModel", "Trace", "load"]
