"""The backend `tensorrt`: plans, run by TensorRT on the GPU that an instance is placed on."""
