"""The backend `dali`: preprocessing pipelines that NVIDIA DALI serialized, run by DALI."""
