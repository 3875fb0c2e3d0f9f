"""How long things take, as ratios: what is behind `python3 course.py bench`.

Read `measure` (races and rows), then any group of rows: `attention`, `decode`, `language_model`, `imports`,
`notebooks`, `repaint`. A group is a module with a function `rows(quick)` that yields a `Row` or a sentence as
soon as it has it; `__main__` runs each in a process of its own and prints the table. A new group is a new
module and its name in `GROUPS`.

It stands beside `helpers` and not in it: it races PyTorch, starts programs and a browser, and runs notebooks,
which the functions of the course have no need of. Nothing is tested for its speed: machines differ, and so
do days.
"""
