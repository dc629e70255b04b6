"""The names of the nets, which can be read without loading torch."""

IMAGES = ("resnet18", "resnet18-3x3", "resnet18-3x3-pool", "conv4", "conv4-stride2", "conv3")  # the nets that take them
VECTORS = ("mlp", "projection", "linear")
NAMES = (*IMAGES, *VECTORS)
PROJECTED = 2048  # outputs of a random projection
