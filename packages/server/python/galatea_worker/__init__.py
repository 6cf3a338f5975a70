"""The worker side of the Python backend: workers, which run models, and the zygote, an interpreter that forks workers."""
