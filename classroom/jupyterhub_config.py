"""JupyterHub for one room: everybody in it opens the course in a browser, all on this machine.

    pip install jupyterhub -r requirements.txt -e ".[model]" && npm install -g configurable-http-proxy
    python3 course.py model
    jupyterhub -f classroom/jupyterhub_config.py

Learners open http://THIS-MACHINE:8000, choose a name, and type the password below. Each gets a copy of the
course in a folder of their own, the first time; what they write stays there. `python3 course.py grade ROOM`
grades it at any time.

All servers run under one account, that of whoever starts the hub: learners could read each other's files.
That is for a room in which people know each other, not for the open internet. The way on is Zero to
JupyterHub (classroom/README.md).
"""

import os
import sys
from pathlib import Path

COURSE = Path(__file__).resolve().parents[1]
ROOM = Path(os.path.expanduser(os.environ.get("COURSE_ROOM") or "~/attention-room")).resolve()
PASSWORD = os.environ.get("COURSE_PASSWORD") or "who-reads-whom"
MODEL = COURSE / os.path.expanduser(os.environ.get("COURSE_MODEL") or "model")  # one for all
PORT = int(os.environ.get("COURSE_PORT") or 8000)

sys.path.insert(0, str(COURSE))
from classroom.handout import handout  # noqa: E402  (it is found there)


def give_out(spawner):
    """A learner's first visit: a copy of the course in a folder of their own."""
    folder = ROOM / spawner.user.name
    if not (folder / "notebooks").exists():
        handout(folder)
    spawner.environment["PYTHONPATH"] = str(folder)  # `import helpers` finds what the learner reads
    spawner.environment["JUPYTER_CONFIG_PATH"] = str(folder / ".jupyter")


ROOM.mkdir(parents=True, exist_ok=True)
hub = ROOM / ".hub"  # what the hub itself keeps
hub.mkdir(mode=0o700, exist_ok=True)

c = get_config()  # noqa: F821  (JupyterHub defines it)
c.JupyterHub.bind_url = f"http://:{PORT}"
c.JupyterHub.db_url = f"sqlite:///{hub / 'hub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(hub / "cookie_secret")
c.ConfigurableHTTPProxy.pid_file = str(hub / "proxy.pid")

c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = PASSWORD
c.Authenticator.allow_all = True
c.Authenticator.username_pattern = r"[a-z0-9][a-z0-9_-]{0,30}\Z"  # a name is also that of a folder

c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = str(ROOM / "{username}")
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--MappingKernelManager.cull_idle_timeout=3600"]  # unused for an hour, a kernel ends
if hasattr(os, "geteuid") and os.geteuid() == 0:
    c.Spawner.args += ["--allow-root"]
c.Spawner.default_url = "/lab/tree/notebooks/00_start_here.ipynb"
c.Spawner.pre_spawn_hook = give_out
c.Spawner.start_timeout = 120  # seconds, for a whole room that comes at once
c.Spawner.http_timeout = 120
c.Spawner.environment = {
    "COURSE_MODEL": str(MODEL),
    "OPENBLAS_NUM_THREADS": "1",  # the matrices are small, and the processors are shared
}
