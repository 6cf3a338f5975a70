"""The backend `tensorrt`: runs TensorRT plans on the GPU of an instance."""
