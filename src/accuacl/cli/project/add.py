"""`accuacl project add`."""

from __future__ import annotations

from accuacl.cli.options import TextColumn
from accuacl.cli.project.options import Directory, Images, LabelColumn, TableFile, TaskColumn, Texts, Vectors, command
from accuacl.cli.project.pools import Given, print_added, read_pools
from accuacl.cli.screen import console, drawn
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
        added = project.add_each(pools)
        for task, items in added:
            print_added(task, items, directory)
        status = project.state().status
    if status is not None and status.open:
        console.print(f"{'it begins' if len(added) == 1 else 'they begin'} when the tasks before are done")
    else:
        console.print(f"next: {command('serve', directory)}", soft_wrap=True)
