"""Items come in: files are read as new items, and a project keeps them as tasks.

`images`, `tables` and `table_files` read `new_items` (`table_schema` and `table_encoder`: the columns of a table);
`arriving` tells tasks apart, `tasks` keeps them, `places` knows where their files lie, `sources` reads more of the same
kind; `unreadable` names broken images; `erasing` removes what a project must not keep.
"""
