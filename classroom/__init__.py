"""For those who teach the course: hand out, collect, grade. Learners do not get this folder.

`handout` writes what a learner gets. `grade` goes through a folder of submissions: `submissions` reads them,
`sandbox` has each judged in a process of its own (`helpers.checks.submission`), `guard` keeps what they
change elsewhere, and `page` says what came of it. With `nbgrader_config.py` nbgrader judges the same way.
README.md is the guide.
"""
