"""A model learns from people: the steps of Algorithm 1 (`people_steps`), with what people have taught in `taught`.

`networks` has the network and how it sees items, `answers` what passes between the loop and the label store.
`first_items` and `first_round` begin a task, `sampling` makes large pools smaller, `given` has labels that came with
the data, `statistics` the sums of projects that keep no example; `forgetting` removes an item for good.
"""
