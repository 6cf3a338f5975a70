"""The worker side of the Python backend: the zygote, which forks workers, and the workers, which run models."""
