"""The page on which people label. Needs the extra `label`; nothing else in the package imports it but `project serve`.

`server` starts it and `app` puts it together: `connections` bounds what comes in, `guard` checks every request,
`session` knows who sent it and `limits` how often. `pages` are HTML, with `dashboard`, `over_time` and `charts`;
`review` and `gallery` are pages with what their scripts ask for; `api`, `map_api` and `views` answer the other scripts,
with `reasons` for each example; `images` sends what `decoder` makes with `pictures`. `paths` keeps those of the server
from being shown, and `trainer` is the thread that trains meanwhile.
"""

from accuacl.labeling.web.server import serve

__all__ = ["serve"]
