"""A project: data that arrive as tasks, people who label them, a model that learns.

`project.Project` holds it together, `settings` has its settings, `plan` what leads change of them, `state` says what it
waits for. Data come in through `new_items`, `images`, `tables`, `uploads` and `tasks`; `encoders` and `task_inputs`
turn them into inputs of a model. `people_steps` are the steps of the loop with people, `rounds` says which items a
round has and what its answers teach, `given_labels` reads labels from files, and `learned` has the networks. `finding`
says which item people mean; `forgetting` and `erasing` remove items. `estimates`, `stopping`, `quality`, `advice` and
`pool_map` tell how good model and labels are. `exporting` writes both out, with `exported_tables`, and with `loader`
and `table_encoder` as files of the export; `embedding` lends the model to `accuacl embed`. `trust` guards the user's
own Python files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.labeling.project.advice import *
    from accuacl.labeling.project.embedding import *
    from accuacl.labeling.project.erasing import *
    from accuacl.labeling.project.estimates import *
    from accuacl.labeling.project.exporting import export as export
    from accuacl.labeling.project.finding import *
    from accuacl.labeling.project.given_labels import *
    from accuacl.labeling.project.images import *
    from accuacl.labeling.project.new_items import *
    from accuacl.labeling.project.pool_map import PoolMap as PoolMap
    from accuacl.labeling.project.project import *
    from accuacl.labeling.project.quality import *
    from accuacl.labeling.project.settings import *
    from accuacl.labeling.project.state import *
    from accuacl.labeling.project.stopping import *
    from accuacl.labeling.project.tables import *
    from accuacl.labeling.project.tasks import *
    from accuacl.labeling.project.trust import *
    from accuacl.labeling.project.uploads import *

__getattr__, __dir__ = lazy_attributes(
    __name__,
    advice="Advice Doubts advise",
    embedding="open_for_embedding",
    erasing="unreadable_images why_unreadable",
    estimates=(
        "ClassEstimate Estimate Estimates RoundAccuracy by_class interval_text last_predictions mean_over_classes "
        "training_gain"
    ),
    exporting="export",
    finding="describe_item",
    given_labels="add_gold describe_given take_label_file",
    images="LARGEST_IMAGE read_files read_images",
    new_items="NewItems TableOptions split_by_task task_paths",
    pool_map="PoolMap",
    project="Project check_free load_learning",
    quality="Quality likely_mistakes measure_quality unlearned_guesses",
    settings="ProjectSettings make",
    state="LearningLog ProjectState budget_of describe_budget describe_sample",
    stopping="Measured predicted_accuracy",
    tables="read_table read_texts read_vectors",
    tasks="Item TaskInfo Tasks read_like relocate_data",
    trust="check_trusted trust_code",
    uploads="LARGEST_UPLOAD UPLOADED DataColumns Preview Uploads add_data check_parquet preview",
)
