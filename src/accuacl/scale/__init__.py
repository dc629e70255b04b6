"""Work that is too much for one process: pools on disk, sweeps, and the engines that share it out."""
