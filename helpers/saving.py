"""What JupyterLab does before it saves a notebook: an explorer is saved as its picture.

A saved widget has no kernel behind it. Opened again, it would say that it is not found, and hide the picture.
"""

VIEW = "application/vnd.jupyter.widget-view+json"


def before_saving(model, **_):
    """Take the widget out of each output that has a picture beside it. Changes the contents model in place.

    `.jupyter/jupyter_lab_config.json` has JupyterLab call it. Widgets without a picture stay as they are.
    """
    if model["type"] == "notebook" and model.get("content"):
        for cell in model["content"]["cells"]:
            for output in cell.get("outputs", ()):
                if "image/svg+xml" in output.get("data", {}):
                    output["data"].pop(VIEW, None)
