"""How much the tiny model computes, in multiply-adds of its matrix products: `multiply_adds`."""

from helpers.arrays import count
from helpers.tiny_model.model import tiny


def multiply_adds(model, m, t):
    """The multiply-adds of one run over m tokens, of t in all; without a cache m is t.

    The product of (a, b) and (b, c) takes a·b·c of them. All t scores of a query are computed, those too that
    the mask then takes away, and the logits of all m tokens, as `TinyModel.run` does it.
    """
    t = count("t", t)
    m = count("m", m, most=t)
    width_k, width_v, d = tiny(model).n_heads * model.d_k, model.n_heads * model.d_v, model.d_model
    project = m * d * (2 * width_k + width_v)               # Q, K, V
    attend = m * t * (width_k + width_v)                    # scores, and the values mixed
    write = m * width_v * d                                 # W_o
    return len(model.layers) * (project + attend + write) + m * d * len(model.vocab)
