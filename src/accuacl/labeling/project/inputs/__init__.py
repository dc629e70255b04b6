"""What the model takes of an item: pixels, or features of a frozen network, of words or of a table's columns.

`task_inputs` prepares the items of a task. Images go through a network (`backbones`, `pretrained`), texts through
`texts` (`words`, `token_vectors`, `token_files`); `trust` says whose own model may run, `model_check` whether it works.
"""
