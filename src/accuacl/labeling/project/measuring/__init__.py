"""How good the model and the labels are: `estimates` from held-out labels, with `intervals`.

`stopping` foresees what more labels bring, `budget` shares labels out to tasks by that, `advice` says it in sentences;
`agreement`, `gold` and `mistakes` judge labels; `pool_map` draws the pool.
"""
