"""The backend `tensorrt`: runs plans with TensorRT on an instance's GPU."""
