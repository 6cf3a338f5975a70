"""Builds a plan of an ONNX file with TensorRT's builder: `make_plan.py ONNX PLAN INPUT`. The input has one dimension, of 1 to 64."""

import sys

import tensorrt as trt


def main(source, target, name):
    logger = trt.Logger(trt.Logger.WARNING)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    with open(source, "rb") as file:
        if not parser.parse(file.read()):
            sys.exit("\n".join(str(parser.get_error(index)) for index in range(parser.num_errors)))
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape(name, (1,), (8,), (64,))
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        sys.exit("TensorRT built no plan")
    with open(target, "wb") as file:
        file.write(plan)
    print(trt.__version__)


main(*sys.argv[1:])
