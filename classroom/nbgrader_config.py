"""nbgrader's settings for this course. In your class's folder, a nbgrader_config.py with one line takes them:

    load_subconfig("/where/the/course/is/classroom/nbgrader_config.py")
"""

import sys
from pathlib import Path

from nbgrader.converters import GenerateAssignment

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `classroom` and `helpers` are found there

c = get_config()  # noqa: F821  (nbgrader defines it)

# The stub of the exercises in exercises/, so that both ways to hand out give the same notebook.
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError  # your code here"}

# What is given out does not speak of the folder with the answers.
c.GenerateAssignment.preprocessors = [
    "classroom.nbgrader_checks.Handout",
    *GenerateAssignment.class_traits()["preprocessors"].default(),
]

# What learners have done to nbgrader's own marks must not end the run, as with its DeduplicateIds it does.
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.ClearOutput",
    "classroom.nbgrader_checks.Marks",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# Submissions are judged in a sandbox (see nbgrader_checks.py), not run in a kernel beside the checks.
c.Autograde.autograde_preprocessors = [
    "classroom.nbgrader_checks.Checks",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
