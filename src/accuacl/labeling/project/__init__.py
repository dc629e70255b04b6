"""A project: data that arrive as tasks, people who label them, a model that learns.

`project.Project` holds it together; `settings` has its settings and `making` those of a new one. Around it, in the
order in which data pass through: `items` (data come in), `inputs` (what the model takes of them), `learning` (the loop
with people; `loading` loads torch for it), `measuring` (how good the model is), `results` (what goes out).
"""

from typing import TYPE_CHECKING

from accuacl.base.front import front_door

if TYPE_CHECKING:
    from accuacl.labeling.project.items.arriving import by_task, parts_of
    from accuacl.labeling.project.items.finding import said_of
    from accuacl.labeling.project.items.images import LARGEST_IMAGE, read_images
    from accuacl.labeling.project.items.new_items import NewItems, TableOptions
    from accuacl.labeling.project.items.places import relocate_data
    from accuacl.labeling.project.items.sources import read_like
    from accuacl.labeling.project.items.table_files import read_table
    from accuacl.labeling.project.items.tables import read_texts, read_vectors
    from accuacl.labeling.project.items.tasks import Item, TaskInfo, Tasks
    from accuacl.labeling.project.items.unreadable import unreadable_images, why_unreadable
    from accuacl.labeling.project.label_file import Taken, take_file
    from accuacl.labeling.project.learning.given import given_text
    from accuacl.labeling.project.learning.rounds_done import RoundsDone
    from accuacl.labeling.project.loading import load_learning
    from accuacl.labeling.project.making import make
    from accuacl.labeling.project.measuring.advice import Advice, Doubts, advise
    from accuacl.labeling.project.measuring.agreement import Kappa, Quality, quality
    from accuacl.labeling.project.measuring.by_class import ClassEstimate, by_class, mean_over_classes
    from accuacl.labeling.project.measuring.estimates import Estimates, Moment, gain
    from accuacl.labeling.project.measuring.gold import add_gold
    from accuacl.labeling.project.measuring.intervals import Estimate
    from accuacl.labeling.project.measuring.mistakes import likely_mistakes
    from accuacl.labeling.project.measuring.pool_map import PoolMap
    from accuacl.labeling.project.measuring.stopping import Measured, foreseen
    from accuacl.labeling.project.project import Project
    from accuacl.labeling.project.results.embedding import open_for_embedding
    from accuacl.labeling.project.results.exporting import export
    from accuacl.labeling.project.settings import ProjectSettings
    from accuacl.labeling.project.state import ProjectState
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
    "RoundsDone",
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
    "given_text",
    "likely_mistakes",
    "load_learning",
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
    "said_of",
    "take_file",
    "unreadable_images",
    "why_unreadable",
]

__getattr__ = front_door(__name__)
