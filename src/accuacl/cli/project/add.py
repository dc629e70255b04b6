"""`accuacl project add`."""

from __future__ import annotations

from accuacl.cli.options import TextColumn
from accuacl.cli.project.options import Directory, Images, LabelColumn, TableFile, TaskColumn, Texts, Vectors
from accuacl.cli.project.pools import Given, print_added, read_pools
from accuacl.cli.screen import drawn
from accuacl.labeling import project as projects


def add(
    directory: Directory,
    images: Images = None,
    vectors: Vectors = None,
    texts: Texts = None,
    table: TableFile = None,
    column: TextColumn = "text",
    task_column: TaskColumn = None,
    label_column: LabelColumn = "",
) -> None:
    """Add the next task's pool; at any time, also while people label.

    Images and texts that the project has already are left out. A table needs the columns of the first task's.
    """
    with projects.Project.open(directory) as project, drawn() as draw:
        how = projects.TableOptions(label=label_column)
        pools = read_pools(Given(images, vectors, texts, table, column, task_column, how), draw, project)
        for task, items in project.add_each(pools):
            print_added(task, items, directory)
