"""The last exercise, of notebook 10: my_model. It has no inputs; `helpers.checks.together` judges it."""

from helpers.checks.exercise import Exercise


def my_model(model, mine):
    """The language model on your functions.

    model : SmolLM2, mine : dict name -> function.  Returns a SmolLM2 that runs on all of mine for which it
    has a place (`helpers.smollm2.functions`).
    """
    from helpers.smollm2.functions import WHEN  # and the language model, which no other exercise needs

    return model.use(**{name: function for name, function in mine.items() if name in WHEN})


MY_MODEL = Exercise(
    "10.3",
    "my_model",
    "10",
    reference=my_model,
    arguments={"model": (), "mine": ()},
    returns={"own": ()},
    cases=None,
    steps=my_model,
    mistakes=(),
    passed="From one dot product to a language model that answers: you wrote what happens in between.",
)

EXERCISES = (MY_MODEL,)
