"""What JupyterLab does before it saves a notebook: an explorer is saved as its picture.

A saved widget has no kernel behind it. Opened again, it would say that it is not found, and hide the picture.
"""

from collections.abc import Mapping

VIEW = "application/vnd.jupyter.widget-view+json"


def before_saving(model, **_):
    """Take the widget out of each output that has a picture beside it. Changes the contents model in place.

    `.jupyter/jupyter_lab_config.json` has JupyterLab call it. Widgets without a picture stay as they are, and
    so does what is no notebook of today's form.  Raises TypeError when model is no dict.
    """
    if not isinstance(model, Mapping):
        raise TypeError(f"model must be a dict, as Jupyter's contents manager gives it, got {model!r}")
    if model.get("type") == "notebook" and model.get("content"):
        for cell in model["content"].get("cells", ()):
            for output in cell.get("outputs", ()):
                if "image/svg+xml" in output.get("data", {}):
                    output["data"].pop(VIEW, None)
