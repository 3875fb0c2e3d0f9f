"""Before JupyterLab saves: explorers become their pictures, nothing else changes."""

import copy

from helpers.explorers import VIEW
from helpers.saving import before_saving

PICTURE = {VIEW: {"model_id": "a"}, "image/svg+xml": "<svg/>", "text/html": "<img>", "text/plain": "words"}


def notebook(*outputs):
    cells = [{"cell_type": "markdown", "source": "words"}, {"cell_type": "code", "outputs": list(outputs)}]
    return {"type": "notebook", "content": {"cells": cells}}


def test_an_explorer_is_saved_as_its_picture():
    model = notebook({"output_type": "execute_result", "data": dict(PICTURE)})
    before_saving(model=model, path="a.ipynb", contents_manager=None)
    data = model["content"]["cells"][1]["outputs"][0]["data"]
    assert data == {name: form for name, form in PICTURE.items() if name != VIEW}


def test_everything_else_is_saved_as_it_is():
    others = [notebook({"output_type": "stream", "text": "one"},
                       {"data": {VIEW: {}, "text/plain": "a slider"}}),
              {"type": "file", "content": "text"}, {"type": "notebook", "content": None}]
    for model in others:
        before = copy.deepcopy(model)
        before_saving(model=model, path="a")
        assert model == before
