"""mkdocs: every drawing has a dark twin, shown on dark pages; the Markdown names the light one only.

Twins of SVG files are made here, by exchanging colours; those of PNG files lie beside them (x.dark.png beside x.png).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

IMAGE = re.compile(r'<img([^>]*?)\ssrc="([^":#?]+)\.(png|svg)"([^>]*)>')
COLOURS = {  # of light figures, and what stands for them on the theme's dark pages
    "#ffffff": "#1e2129", "#010203": "#dfe2e8", "#d5d9df": "#454b59",
    "#5b6b7b": "#a3b1c0", "#e8f0f8": "#20354b", "#2b5c8a": "#7fb0dd", "#17324d": "#e3eef8",
    "#f3efe4": "#393324", "#8a6d2b": "#c9a857", "#4d3b17": "#f3e8cb",
}  # fmt: skip
COLOUR = re.compile("|".join(COLOURS))


def on_files(files: Any, config: Any) -> Any:
    """Add the dark twins of all SVG files."""
    from mkdocs.structure.files import File

    for file in [file for file in files if file.src_uri.endswith(".svg")]:
        if not files.get_file_from_path(_twin(file.src_uri)):
            files.append(File.generated(config, _twin(file.src_uri), content=darkened(file.content_string)))
    return files


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Two images for each that has a twin, of which the theme shows one."""
    here = page.file.src_uri.split("/")[:-1]

    def both(found: re.Match[str]) -> str:
        before, name, kind, after = found.groups()
        place = Path(config["docs_dir"], *here, f"{name}.{kind}").resolve()
        source = place.relative_to(Path(config["docs_dir"]).resolve()).as_posix()
        if not files.get_file_from_path(_twin(source)):
            return found.group()
        return "".join(
            f'<img{before} src="{name}{twin}.{kind}#only-{colours}"{after}>'
            for twin, colours in (("", "light"), (".dark", "dark"))
        )

    return IMAGE.sub(both, html)


def darkened(svg: str) -> str:
    """The drawing in the colours of dark pages.

    >>> darkened('<path style="fill: #ffffff; stroke: #0072b2"/>')
    '<path style="fill: #1e2129; stroke: #0072b2"/>'
    """
    return COLOUR.sub(lambda found: COLOURS[found.group()], svg)


def _twin(name: str) -> str:
    stem, _, kind = name.rpartition(".")
    return f"{stem}.dark.{kind}"
