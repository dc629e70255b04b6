"""The files in deploy: what they call and name is there. Docker, nginx and Caddy themselves are not run."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

from accuacl.cli import load
from accuacl.cli.project import COMMANDS
from accuacl.labeling.project import LARGEST_UPLOAD

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PAGE = ROOT / "docs" / "serving.md"


def check_options(words: list[str]) -> None:
    """That the words are options of `project serve`, each with a value if it takes one."""
    serve = load(COMMANDS["serve"][0], "serve")
    options = {name: each for each in serve.params for name in [*each.opts, *each.secondary_opts]}
    while words:
        name = words.pop(0)
        assert name in options, name
        if not options[name].is_flag:
            assert words, f"{name} has no value"
            assert not words.pop(0).startswith("--")


def commands() -> list[tuple[str, list[str]]]:
    """Where a server is started with options, and these."""
    found = []
    for path in (PAGE, DEPLOY / "accuacl.service"):
        text = re.sub(r"\\\n\s*", "", path.read_text())
        for line in re.findall(r"accuacl project serve (?!DIR)(\S+ --.*)", text):
            found.append((path.name, shlex.split(line)[1:]))
    for path in sorted(DEPLOY.iterdir()):
        header = " ".join(re.findall(r"(?m)^# (.*)$", path.read_text()))
        if given := re.search(r"Start the server with ((?:--\S+ \S+ ?)+)", header):
            found.append((path.name, shlex.split(given[1])))
    return found


def test_every_command_has_options_that_there_are():
    found = commands()
    assert {name for name, _ in found} >= {"serving.md", "accuacl.service", "nginx.conf", "Caddyfile.authelia"}
    assert len(found) >= 7
    for name, words in found:
        check_options(list(words))
        if "--proxy-user-header" in words:
            header = words[words.index("--proxy-user-header") + 1]
            assert header in PAGE.read_text(), name


def test_the_image_copies_what_is_there_and_starts_the_server():
    text = (DEPLOY / "Dockerfile").read_text()
    copied = [word for line in re.findall(r"(?m)^COPY (.*)$", text) for word in line.split()[:-1]]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"README.md", "setup.py", *project["license-files"]} <= set(copied)  # the build needs them
    assert "label" in project["optional-dependencies"]
    start = yaml.safe_load(re.search(r"(?m)^ENTRYPOINT (.*)$", text)[1])
    assert start[:4] == ["accuacl", "project", "serve", "/projects"]
    given = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["accuacl"]["command"]
    check_options([*start[4:], *given])
    minor = int(re.search(r"(?m)^FROM python:3\.(\d+)", text)[1])
    assert minor >= int(project["requires-python"].removeprefix(">=3."))


def test_the_composition_names_files_volumes_and_services_that_there_are():
    content = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    build = content["services"]["accuacl"]["build"]
    assert (DEPLOY / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()
    volumes = [volume for service in content["services"].values() for volume in service["volumes"]]
    for source, target in (volume.split(":")[:2] for volume in volumes):
        assert source in content["volumes"] or source == "./data" or (DEPLOY / source).is_file(), source
        assert target.startswith("/")
    port = re.search(r"(?m)^EXPOSE (\d+)$", (DEPLOY / "Dockerfile").read_text())[1]
    assert f"reverse_proxy accuacl:{port}" in (DEPLOY / "Caddyfile").read_text()


def test_proxies_let_the_largest_file_pass_and_replace_the_headers_that_count():
    for name in ("nginx.conf", "nginx-oauth2-proxy.conf", "Caddyfile", "Caddyfile.authelia"):
        text = (DEPLOY / name).read_text()
        assert text.count("{") == text.count("}"), name
        size, unit = re.search(r"(?:client_max_body_size|max_size) (\d+)(\w+)", text).groups()
        bytes_of = {"m": 2**20, "MB": 10**6, "MiB": 2**20}  # nginx has m; for Caddy MB is a million bytes
        assert int(size) * bytes_of[unit] > LARGEST_UPLOAD, name
    nginx, caddy = ((DEPLOY / name).read_text() for name in ("nginx-oauth2-proxy.conf", "Caddyfile.authelia"))
    for header in ("Remote-User", "Remote-Groups"):
        assert f"proxy_set_header {header} $" in nginx
        assert caddy.index(f"request_header -{header}") < caddy.index("forward_auth")
    assert "proxy_set_header Host $host;" in nginx


def test_the_page_names_every_file():
    assert all(f"deploy/{path.name}" in PAGE.read_text() for path in DEPLOY.iterdir())


@pytest.mark.parametrize("path", sorted(DEPLOY.iterdir()), ids=lambda path: path.name)
def test_addresses_are_reserved_for_examples(path):
    for address in re.findall(r"\d+\.\d+\.\d+\.\d+", path.read_text()):
        assert address in ("127.0.0.1", "0.0.0.0")
    for name in re.findall(r"[\w.-]+\.(?:org|com|net|io)\b", path.read_text()):
        assert name == "label.example.org"
