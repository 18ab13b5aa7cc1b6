"""nginx in front of a server, with the settings of docs/proxies.md, below a sub-path."""

import pathlib
import re
import shutil
import socket
import subprocess
import time

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/proxies.md"
PATIENCE_SECONDS = 20
FRAME = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log warn;
events {{}}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/nginx-body;
    proxy_temp_path {folder}/nginx-proxy;
    fastcgi_temp_path {folder}/nginx-fastcgi;
    uwsgi_temp_path {folder}/nginx-uwsgi;
    scgi_temp_path {folder}/nginx-scgi;
{config}
}}
"""


def config_of_docs(port, upstream, sub_path, more):
    """Returns the configuration of the page, on another port, without TLS, and below a sub-path. `more`: other locations."""
    config = re.search(r"```nginx\n(upstream.*?)```", PAGE.read_text(), re.DOTALL)[1]
    config = re.sub(r"listen [^;]*;", f"listen 127.0.0.1:{port};", config)
    config = re.sub(r" *ssl_[^;]*;\n", "", config)
    config = config.replace("127.0.0.1:8080", upstream)
    below = f"{more}\nlocation {sub_path} {{\nproxy_pass http://hapax/;"
    config, changed = re.subn(r"location / \{\s*proxy_pass http://hapax;", lambda _: below, config)
    assert changed == 1, config
    return config


class Nginx:
    """A proxy that runs until it is stopped. `port`: that of a proxy that was stopped."""

    def __init__(self, folder, upstream, sub_path, more="", port=None):
        folder.mkdir(exist_ok=True)
        self.log = folder / "access.log"
        self.port = port or free_port()
        config = config_of_docs(self.port, upstream.removeprefix("http://"), sub_path, more)
        file = folder / "nginx.conf"
        file.write_text(FRAME.format(folder=folder, config=config))
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        self.process = subprocess.Popen([program, "-p", folder, "-e", folder / "nginx.log", "-c", file])
        self.address = f"http://127.0.0.1:{self.port}"
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.answers():
            assert self.process.poll() is None and time.monotonic() < end, (folder / "nginx.log").read_text()
            time.sleep(0.05)

    def answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]
