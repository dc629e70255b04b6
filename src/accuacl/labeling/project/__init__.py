"""A project: data that arrive as tasks, people who label them, a model that learns.

`project.Project` holds it together. Around it, in the order in which data pass through:

- data come in: `images`, `tables` and `table_files` read them as `new_items`, `arriving` tells
  tasks apart, `tasks` keeps them (`places`: where they lie), `inputs` makes what
  the model takes of them (`words` for texts, `table_schema` and `table_encoder` for tables)
- people get `first_items` of a task at once; the images that turn out to be broken are named by `unreadable`
- a model learns: `settings` (`making` has those of a new project), its network (`backbones`, `pretrained`; `trust`
  says whose may run), the steps of Algorithm 1 with people (`learning`, with what they have taught in `taught`)
- how good it is: `estimates` from held-out labels, with `intervals`; `stopping` foresees, `advice` says it in
  sentences, `pool_map` draws the pool
- results go out: `exporting`, with `loader` for those who do not have accuacl, and `embedding` for `accuacl embed`
"""

from typing import TYPE_CHECKING

from accuacl.base.front import front_door

if TYPE_CHECKING:
    from accuacl.labeling.project.advice import Advice, Doubts, advise
    from accuacl.labeling.project.agreement import Kappa, Quality, quality
    from accuacl.labeling.project.arriving import by_task, parts_of
    from accuacl.labeling.project.embedding import open_for_embedding
    from accuacl.labeling.project.estimates import ClassEstimate, Estimates, Moment, by_class, gain, mean_over_classes
    from accuacl.labeling.project.exporting import export
    from accuacl.labeling.project.gold import add_gold
    from accuacl.labeling.project.images import LARGEST_IMAGE, read_images
    from accuacl.labeling.project.intervals import Estimate
    from accuacl.labeling.project.label_file import Taken, take_file
    from accuacl.labeling.project.making import make
    from accuacl.labeling.project.mistakes import likely_mistakes
    from accuacl.labeling.project.new_items import NewItems, TableOptions
    from accuacl.labeling.project.places import relocate_data
    from accuacl.labeling.project.pool_map import PoolMap
    from accuacl.labeling.project.project import Project, ProjectState
    from accuacl.labeling.project.settings import ProjectSettings
    from accuacl.labeling.project.sources import read_like
    from accuacl.labeling.project.stopping import Measured, foreseen
    from accuacl.labeling.project.table_files import read_table
    from accuacl.labeling.project.tables import read_texts, read_vectors
    from accuacl.labeling.project.tasks import Item, TaskInfo, Tasks
    from accuacl.labeling.project.unreadable import unreadable_images, why_unreadable
    from accuacl.labeling.project.uploads import LARGEST_UPLOAD, UPLOADED, Uploads

__all__ = [
    "LARGEST_IMAGE",
    "LARGEST_UPLOAD",
    "UPLOADED",
    "Advice",
    "ClassEstimate",
    "Doubts",
    "Estimate",
    "Estimates",
    "Item",
    "Kappa",
    "Measured",
    "Moment",
    "NewItems",
    "PoolMap",
    "Project",
    "ProjectSettings",
    "ProjectState",
    "Quality",
    "TableOptions",
    "Taken",
    "TaskInfo",
    "Tasks",
    "Uploads",
    "add_gold",
    "advise",
    "by_class",
    "by_task",
    "export",
    "foreseen",
    "gain",
    "likely_mistakes",
    "make",
    "mean_over_classes",
    "open_for_embedding",
    "parts_of",
    "quality",
    "read_images",
    "read_like",
    "read_table",
    "read_texts",
    "read_vectors",
    "relocate_data",
    "take_file",
    "unreadable_images",
    "why_unreadable",
]

__getattr__ = front_door(__name__)
