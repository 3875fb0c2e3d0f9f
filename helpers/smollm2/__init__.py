"""A real language model, SmolLM2 with 135 million weights, on the functions of this course (notebook 10).

    from helpers import smollm2
    model = smollm2.load()          # after: python3 course.py model
    print("".join(model.generate("The capital of France is", 10)))
    mine = model.use(rope=my_rope, grouped_query_attention=my_grouped_query_attention)

`weights` opens what `fetch` has made ready, `tokenizer` cuts text into tokens, `functions` says which of the
course's functions run, yours or the helpers', and `model` puts it all together. `measure` scores its heads;
`side_by_side` continues a text several times at once.
SmolLM2: Allal et al. 2025.
"""

from helpers.smollm2.model import Chat, SmolLM2, Trace, load
from helpers.smollm2.weights import is_fetched

__all__ = ["Chat", "SmolLM2", "Trace", "is_fetched", "load"]
