"""What holds for the repository as a whole: style, dependencies, settings, and what CI does."""

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import jupyterlab
import matrix
import nbformat
import pytest
import yaml
from jupyterlab.labapp import LabApp
from traitlets.config.loader import JSONFileConfigLoader

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = ROOT / ".jupyter"
CAPTURED = {"capture_output": True, "encoding": "utf-8"}
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb")) + sorted((ROOT / "solutions").glob("*.ipynb"))
HELPERS = sorted((ROOT / "helpers").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
BENCH = sorted((ROOT / "bench").glob("*.py"))

OUR_PACKAGES = {"helpers", "bench", "classroom", "course"}

# What tests and races use where it is installed, and leave out with a word where it is not.
IF_THERE = {"torch", "transformers"}

# What is imported and not a line of requirements.txt or pyproject.toml, with the line that brings it.
BROUGHT_BY = {
    "IPython": "jupyterlab", "nbformat": "jupyterlab", "nbclient": "nbval", "traitlets": "jupyterlab",
    "packaging": "pytest", "jupyter_core": "jupyterlab", "yaml": "jupyterlab", "tornado": "jupyterlab",
}


def test_ruff_has_nothing_to_say_of_code_and_notebooks():
    run = subprocess.run([sys.executable, "-m", "ruff", "check", "--no-cache", str(ROOT)], **CAPTURED)
    assert run.returncode == 0, run.stdout


# Dependencies


def declared(tests):
    spec = importlib.util.spec_from_file_location("course", ROOT / "course.py")
    course = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(course)
    return {re.split(r"[<>=!]", line)[0] for line in course.requirements(tests, model=True)}


def imports(source):
    """The top-level names of what a source imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


def undeclared(source, tests=False):
    ours = {path.stem for path in TESTS} if tests else set()
    known = declared(tests) | (IF_THERE if tests else set())
    for name in set(imports(source)) - set(sys.stdlib_module_names) - ours - OUR_PACKAGES:
        if BROUGHT_BY.get(name, name) not in known:
            yield name


@pytest.mark.parametrize("path", HELPERS, ids=lambda path: path.stem)
def test_helpers_import_nothing_that_is_not_declared(path):
    source = path.read_text(encoding="utf-8")
    assert list(undeclared(source)) == [] and "bench" not in imports(source)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_notebooks_import_nothing_that_is_not_declared(path):
    cells = nbformat.read(path, as_version=4).cells
    source = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    assert list(undeclared(re.sub(r"^\s*[%!].*$", "", source, flags=re.M))) == []


@pytest.mark.parametrize("path", TESTS + BENCH, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_tests_import_nothing_that_is_not_declared(path):
    assert list(undeclared(path.read_text(encoding="utf-8"), tests=True)) == []


def test_an_undeclared_import_is_found():
    assert list(undeclared("import numpy, os\nfrom helpers import figures\nimport scipy.linalg")) == ["scipy"]
    assert list(undeclared("import torch")) == ["torch"]
    assert list(undeclared("import torch", tests=True)) == []


@pytest.mark.parametrize("name", ["arrays", "embeddings", "attention", "tiles", "blas", "multi_head",
                                  "low_rank", "kv_cache", "kv_sharing", "sampling", "cost"])
def test_the_maths_needs_numpy_and_nothing_else(name):
    found = set(imports((ROOT / "helpers" / f"{name}.py").read_text(encoding="utf-8")))
    assert found - set(sys.stdlib_module_names) - {"helpers"} <= {"numpy"}


# JupyterLab's settings


def test_every_setting_is_one_that_jupyterlab_knows():
    schemas = Path(sysconfig.get_path("data"), "share", "jupyter", "lab", "schemas")
    path = SETTINGS / "labconfig" / "default_setting_overrides.json"
    for plugin, settings in json.loads(path.read_text(encoding="utf-8")).items():
        package, name = plugin.split(":")
        known = json.loads((schemas / package / f"{name}.json").read_text(encoding="utf-8"))["properties"]
        for setting, value in settings.items():
            assert type(value) is type(known[setting]["default"]), setting
            allowed = [choice["const"] for choice in known[setting].get("oneOf", ())]
            assert value in (allowed or [value])


def test_jupyterlab_is_told_to_ask_nobody_for_news_or_extensions():
    config = JSONFileConfigLoader("jupyter_lab_config.json", path=str(SETTINGS)).load_config()
    assert all(LabApp.class_traits().get(name) for name in config["LabApp"])
    app = LabApp(config=config)
    assert app.news_url is None and app.extension_manager == "readonly"
    assert app.check_for_updates_class is jupyterlab.NeverCheckForUpdate


# Continuous integration


@pytest.mark.skipif(os.name != "posix", reason="a script for Debian; what Windows calls bash may be nothing")
def test_the_script_of_ci_is_sound_and_runs_the_readmes_command():
    script = ROOT / ".ci" / "run"
    subprocess.run(["bash", "-n", str(script)], check=True)
    assert os.access(script, os.X_OK)
    last = script.read_text(encoding="utf-8").rstrip().splitlines()[-1]
    assert last == "python3 course.py test"
    assert "/work" not in script.read_text(encoding="utf-8")


@pytest.mark.parametrize("ci", ["true", ""])
@pytest.mark.parametrize("text", [
    "import pytest\n\n\ndef test_one():\n    pytest.skip('no browser')\n",
    "import pytest\n\npytest.importorskip('not_there')\n\n\ndef test_one():\n    pass\n",
], ids=["one test", "a whole file"])
def test_what_is_skipped_fails_in_ci(ci, text, tmp_path):
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_inside.py").write_text(text, encoding="utf-8")
    (tmp_path / "test_passes.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:nbval"]
    run = subprocess.run(command, cwd=tmp_path, env=dict(os.environ, CI=ci), **CAPTURED)
    assert (run.returncode != 0) == bool(ci), run.stdout
    assert ("CI allows no skipping" in run.stdout) == bool(ci)


def test_the_kernels_of_tests_neither_obey_nor_note_down_what_is_yours(tmp_path):
    yours = tmp_path / "yours" / "profile_default" / "startup"
    yours.mkdir(parents=True)
    (yours / "mine.py").write_text("mine = 1", encoding="utf-8")
    v4 = nbformat.v4
    notebook = v4.new_notebook(cells=[v4.new_code_cell("x = mine", execution_count=1)])
    nbformat.write(notebook, tmp_path / "one.ipynb")
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env"]
    settings = dict(cwd=tmp_path, env=dict(os.environ, IPYTHONDIR=str(tmp_path / "yours")), **CAPTURED)
    run = subprocess.run(command, **settings)
    assert "1 passed" in run.stdout, run.stdout             # so they are settings that a kernel obeys
    (history := yours.parent / "history.sqlite").unlink()
    shutil.copy(ROOT / "conftest.py", tmp_path)
    run = subprocess.run(command, **settings | {"env": settings["env"] | {"PYTHONPATH": str(ROOT)}})
    assert "NameError" in run.stdout and not history.exists(), run.stdout


PROPERTY = """
from hypothesis import given, strategies as st


@given(st.integers())
def test_of_a_number(n):
    assert n == n
"""


@pytest.mark.parametrize("cores", ["0", "2"])
def test_what_the_property_tests_try_is_added_up_and_too_little_fails_in_ci(cores, tmp_path):
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    for name in ("test_this.py", "test_that.py"):
        (tmp_path / name).write_text(PROPERTY, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = .\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:nbval",
               "-n", cores, "--dist=loadfile"]
    settings = dict(cwd=tmp_path, env=dict(os.environ, CI="true"), **CAPTURED)
    run = subprocess.run(command, **settings)
    assert "The property tests tried 600 cases, fewer than the 10000 asked for." in run.stdout
    assert run.returncode == 1
    run = subprocess.run([*command, "test_this.py"], **settings)
    assert "The property tests tried 300 cases.\n" in run.stdout and run.returncode == 0


def test_the_workflow_for_github_is_sound_and_names_what_there_is():
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    jobs, when = workflow["jobs"], workflow[True]           # YAML reads the key `on` as true
    assert when["schedule"] and "push" in when
    cells = {cell.name for cell in matrix.cells()}
    axes = jobs["matrix"]["strategy"]["matrix"]
    assert axes["python"] == list(matrix.PYTHONS)
    assert {system.split("-")[0] for system in axes["system"]} == {"ubuntu", "macos", "windows"}
    assert {f"{python}-{packages}" for python in axes["python"] for packages in axes["packages"]} <= cells
    for job in jobs.values():
        assert job["timeout-minutes"]
        for step in job["steps"]:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/none@v1"))
            named = step.get("run", "").partition("--matrix ")[2].split()
            assert {name for name in named if "{{" not in step["run"]} <= cells
    assert (ROOT / jobs["everything"]["steps"][-1]["run"]).exists()


# Versions


def test_one_python_version_is_named_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["requires-python"].removeprefix(">=")
    readme, command = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "course.py"))
    assert f"Python {version}" in readme and f"Python {version}" in command
    assert f"sys.version_info < ({version.replace('.', ', ')})" in command
