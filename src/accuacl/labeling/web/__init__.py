"""The page on which people label. Needs the extra `label`; nothing else in the package imports it but `project serve`.

`server` starts it and `app` puts it together. On its way a request passes `connections`, which bounds how many there
are, `guard`, which checks where it comes from, and `session`, which knows who sent it; `site` is what all requests
share. `pages` renders HTML, with plots from `charts`. A module each has a page with the calls of its script: `api`
(labelling), `gallery`, `review` (of disputes too), `dashboard`, `class_pages`, `people`, `project_page`; `several` has
that of a folder of projects. `incoming` takes data and labels. `images` sends images, and `trainer` is the thread that
trains meanwhile.
"""

from accuacl.labeling.web.incoming import Places
from accuacl.labeling.web.server import serve
from accuacl.labeling.web.session import proxy_login
from accuacl.labeling.web.several import holds_projects

__all__ = ["Places", "holds_projects", "proxy_login", "serve"]
