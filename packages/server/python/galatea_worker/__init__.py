"""The worker side of the Python backend: a warm process that forks workers, and the workers that run models."""
