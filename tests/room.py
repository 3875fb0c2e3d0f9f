"""JupyterHub as classroom/jupyterhub_config.py has it, on this machine alone, and learners who come to it.

`python tests/room.py [--users N] [--notebooks 00 10]` says how long a room waits and what memory it takes. It
needs an environment with JupyterHub and its proxy: COURSE_CLASSROOM names one, and `.ci/run` makes it.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from http.cookiejar import CookieJar
from pathlib import Path

import psutil
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "classroom" / "jupyterhub_config.py"
PASSWORD = re.search(r'COURSE_PASSWORD"\) or "([^"]+)"', CONFIG.read_text(encoding="utf-8"))[1]
HERE_ALONE = """
load_subconfig({config!r})
c.JupyterHub.bind_url = "http://127.0.0.1:{0}"
c.JupyterHub.hub_port = {1}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{2}"
"""
PATIENCE = 120  # seconds


def environment():
    """Where the programs of JupyterHub are; None where there are none."""
    folder = os.environ.get("COURSE_CLASSROOM")
    programs = Path(folder, "bin") if folder else Path(sys.executable).parent
    proxy = shutil.which("configurable-http-proxy", path=path(programs))
    return programs if proxy and (programs / "jupyterhub").exists() else None


def path(programs):
    return os.pathsep.join([str(programs), os.environ["PATH"]])


class Room:
    """A hub that runs. folder : where learners have their copies."""

    def __init__(self, folder, model=""):
        self.folder = folder
        ports = free_ports(3)
        self.address = f"http://127.0.0.1:{ports[0]}"
        config = folder.parent / "config.py"
        config.write_text(HERE_ALONE.format(*ports, config=str(CONFIG)), encoding="utf-8")
        programs = environment()
        env = {name: value for name, value in os.environ.items() if not name.startswith("COURSE_")}
        env |= {"PATH": path(programs), "COURSE_ROOM": str(folder)}
        if model:
            env["COURSE_MODEL"] = str(model)
        self.log = folder.parent / "hub.log"
        with open(self.log, "w", encoding="utf-8") as file:
            command = [programs / "python", "-m", "jupyterhub", "-f", config]
            self.hub = subprocess.Popen(command, cwd=folder.parent, env=env, stdout=file, stderr=file)
        wait_for(lambda: answers(f"{self.address}/hub/health"), self.said)

    def said(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def processes(self):
        """Those of the hub: its proxy, and the servers and kernels of all learners."""
        return psutil.Process(self.hub.pid).children(recursive=True)

    def close(self):
        """As Ctrl-C does it; gives what is left running."""
        started = self.processes()
        self.hub.send_signal(signal.SIGINT)
        self.hub.wait(PATIENCE)
        _, left = psutil.wait_procs(started, timeout=20)
        for process in left:
            process.kill()
        return left


class Learner:
    """Somebody with a browser of their own, as far as a room can tell."""

    def __init__(self, room, name):
        self.room, self.name, self.token = room, name, ""
        self.cookies = CookieJar()
        self.browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def log_in(self, password=PASSWORD):
        """Fill in the form; the page that comes then."""
        page = self.open("/hub/login")
        fields = {"username": self.name, "password": password, "_xsrf": xsrf_of(page)}
        return self.open("/hub/login", urllib.parse.urlencode(fields).encode())

    def come(self):
        """Log in and wait for the first notebook; the seconds it took."""
        begun = time.monotonic()
        self.log_in()
        wait_for(self.is_there, self.room.said)
        page = self.open("/hub/token")
        answer = self.ask("POST", f"/hub/api/users/{self.name}/tokens", {}, xsrf=xsrf_of(page))
        self.token = answer["token"]
        return time.monotonic() - begun

    def is_there(self):
        with self.browser.open(f"{self.room.address}/hub/spawn/{self.name}", timeout=PATIENCE) as answer:
            return answer.url.startswith(f"{self.room.address}/user/{self.name}/")

    def open(self, place, data=None):
        with self.browser.open(self.room.address + place, data, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def ask(self, method, place, body=None, xsrf=""):
        """What an address of the hub or of a server answers, as data."""
        headers = (self.key() if self.token else {"X-XSRFToken": xsrf}) | {"Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.room.address + place, data, headers, method=method)
        with self.browser.open(request, timeout=PATIENCE) as answer:
            text = answer.read().decode()
            return json.loads(text) if text else None

    def key(self):
        return {"Authorization": f"token {self.token}"}

    def run(self, notebook):
        """Run all cells of a notebook in a kernel of this learner's; what they printed."""
        content = self.ask("GET", f"/user/{self.name}/api/contents/notebooks/{notebook}")["content"]
        wanted = {"name": "", "path": f"notebooks/{notebook}", "type": "notebook",
                  "kernel": {"name": content["metadata"]["kernelspec"]["name"]}}
        kernel = self.ask("POST", f"/user/{self.name}/api/sessions", wanted)["kernel"]["id"]
        sources = ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]
        place = f"/user/{self.name}/api/kernels/{kernel}/channels"
        address = self.room.address.replace("http", "ws", 1) + place
        return asyncio.run(run_cells(HTTPRequest(address, headers=self.key()), sources))

    def memory(self, model=""):
        """MiB of this learner's server and what it started; what several share counts for each in part."""
        total = 0
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                for part in process.memory_maps(grouped=True):
                    total += 0 if model and part.path.startswith(str(model)) else part.pss
        return total / 2**20

    def processes(self):
        for process in self.room.processes():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("JUPYTERHUB_USER") == self.name:
                    yield process


async def run_cells(request, sources):
    """Run cells over a kernel's channels; what they printed. Raises AssertionError where one fails."""
    channels, printed = await websocket_connect(request), []
    for source in sources:
        content = {"code": source, "silent": False, "store_history": True, "user_expressions": {},
                   "allow_stdin": False, "stop_on_error": True}
        header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "session": "room",
                  "username": "", "version": "5.3", "date": ""}
        await channels.write_message(json.dumps(
            {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}))
        while True:
            message = json.loads(await asyncio.wait_for(channels.read_message(), PATIENCE))
            if message["parent_header"].get("msg_id") != header["msg_id"]:
                continue
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])
            if message["msg_type"] == "execute_reply":
                assert message["content"]["status"] == "ok", f"{source}\n{message['content']}"
                break
    channels.close()
    return "".join(printed)


def xsrf_of(page):
    """The word in a page of the hub that its forms send along."""
    return re.search(r'(?:name="_xsrf" value="|xsrf_token: ")([^"]+)"', page)[1]


def free_ports(number):
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def wait_for(happens, said):
    end = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < end, said()
        time.sleep(0.2)


def at_once(learners, do):
    """[what `do` gives for each], all at the same time."""
    with ThreadPoolExecutor(len(learners)) as pool:
        return list(pool.map(do, learners))


def notebook(number):
    (found,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    return found.name


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Learners who come to a room at the same time.")
    parser.add_argument("--users", type=int, default=5)
    parser.add_argument("--notebooks", nargs="+", default=["00"], metavar="NN")
    options = parser.parse_args(arguments)
    if environment() is None:
        sys.exit("There is no JupyterHub here with configurable-http-proxy: see classroom/README.md.")
    model = Path(os.environ.get("COURSE_MODEL") or ROOT / "model")
    with tempfile.TemporaryDirectory() as folder:
        room = Room(Path(folder, "room"), model)
        try:
            learners = [Learner(room, f"learner{i}") for i in range(options.users)]
            print(f"all had their page after {max(at_once(learners, Learner.come)):.0f} s")
            for number in options.notebooks:
                begun = time.monotonic()
                at_once(learners, lambda learner, number=number: learner.run(notebook(number)))
                sizes = at_once(learners, lambda learner: learner.memory(model))
                print(f"notebook {number} through after {time.monotonic() - begun:.0f} s; MiB for each, "
                      f"without the model's weights: {', '.join(f'{size:.0f}' for size in sizes)}")
        finally:
            room.close()


if __name__ == "__main__":
    main()
