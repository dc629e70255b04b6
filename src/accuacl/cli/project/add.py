"""`accuacl project add`."""

from __future__ import annotations

from accuacl.cli.options import TextColumn
from accuacl.cli.project.options import Directory, Images, Texts, Vectors
from accuacl.cli.project.pools import print_added, read_pool
from accuacl.cli.screen import drawn
from accuacl.labeling.project import Project


def add(
    directory: Directory,
    images: Images = None,
    vectors: Vectors = None,
    texts: Texts = None,
    column: TextColumn = "text",
) -> None:
    """Add the next task's pool; at any time, also while people label.

    Images that the project has already are left out.
    """
    with Project.open(directory) as project, drawn() as draw:
        print_added(project.add(read_pool(images, vectors, texts, column, draw)), directory)
