"""For those who teach the course: hand out, collect, grade. Learners do not get this folder.

`handout` writes what a learner gets. `grade` goes through a folder of submissions: `class_folder` reads
them, by way of `handed_in` (files, also those in zips), `names` (whose they are) and `submissions` (what of a
notebook is judged); `sandbox` has each judged in a process of its own (`helpers.checks.submission`), `guard`
keeps what they change elsewhere; `results` counts what came of it and makes the table, `page` the pages.
With `nbgrader_config.py` nbgrader judges the same way. `slides` makes slides. README.md is the guide.
"""
