"""The backend `dali`: runs preprocessing pipelines that NVIDIA DALI serialized."""
