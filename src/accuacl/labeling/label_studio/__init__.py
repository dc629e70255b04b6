"""Label Studio as the page: `sync` pushes picks and pulls annotations, `tasks` is what it shows, `answers` what it
says, `link` the project there. Needs the extra `labelstudio`."""

from typing import TYPE_CHECKING

from accuacl.base.front import front_door
from accuacl.labeling.label_studio.token import TOKEN

if TYPE_CHECKING:
    from accuacl.labeling.label_studio.answers import Pulled
    from accuacl.labeling.label_studio.sync import pull, push

__all__ = ["TOKEN", "Pulled", "pull", "push"]

__getattr__ = front_door(__name__)
