"""The page on which people label. Needs the extra `label`; nothing else in the package imports it but `project serve`.

`server` starts it and `app` puts it together. On its way a request passes `connections`, which bounds how many there
are, `guard`, which checks where it comes from, and `session`, which knows who sent it; `site` is what all requests
share. `pages` renders HTML. A module each has a page with the calls of its script: `api` (labelling), `gallery`,
`review`, `settle`, `dashboard` (with `charts`), `class_pages`, `people`, `project_page`. `incoming` takes data and
labels, some from `places` on the server. `several` serves a folder of projects, `proxy` knows people whom a proxy has
logged in. `images` sends images, and `trainer` is the thread that trains meanwhile.
"""

from accuacl.labeling.web.places import Places
from accuacl.labeling.web.proxy import proxy_login
from accuacl.labeling.web.server import serve
from accuacl.labeling.web.several import holds_projects

__all__ = ["Places", "holds_projects", "proxy_login", "serve"]
