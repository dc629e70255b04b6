"""Results go out: `exporting` writes labels and the model, with `loader` for those who do not have accuacl.

`onnx_export` and `model_card` belong to it; `embedding` is for `accuacl embed`.
"""
