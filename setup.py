"""The README as a package index shows it; all else is in pyproject.toml.

Relative addresses mean nothing on the page of an index. Once pyproject.toml names the repository (`Repository` under
`[project.urls]`), they become addresses there, at the tag of this version: pages as they are shown, pictures as files.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
PICTURES = (".png", ".svg", ".gif", ".jpg", ".webp")


def whole_addresses(text: str, repository: str, tag: str) -> str:
    """The text with every relative address of a link or picture as one in the repository."""

    def whole(found: re.Match[str]) -> str:
        kind = "raw" if found[2].endswith(PICTURES) else "blob"
        return f"{found[1]}{repository.rstrip('/')}/{kind}/{tag}/{found[2]}"

    return re.sub(r"(\]\()(?![a-z]+:|#)([^)\s]+)", whole, text)


def description() -> str:
    """The README, with whole addresses if the repository has one."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    urls = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    if "Repository" not in urls:
        return text
    version = re.search(r'__version__ = "(.+)"', (HERE / "src/accuacl/__init__.py").read_text(encoding="utf-8"))[1]
    return whole_addresses(text, urls["Repository"], f"v{version}")


if __name__ == "__main__":
    setup(long_description=description(), long_description_content_type="text/markdown")
