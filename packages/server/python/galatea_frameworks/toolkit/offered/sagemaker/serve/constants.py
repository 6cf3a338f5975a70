"""The frameworks of pickled native models."""

import enum


class Framework(enum.Enum):
    """By the SDK's values, which pickles have."""

    XGBOOST = "XGBoost"
    LDA = "LDA"
    PYTORCH = "PyTorch"
    TENSORFLOW = "TensorFlow"
    MXNET = "MXNet"
    CHAINER = "Chainer"
    SKLEARN = "SKLearn"
    HUGGINGFACE = "HuggingFace"
    DJL = "DJL"
    SPARKML = "SparkML"
    NTM = "NTM"
    SMD = "SMD"
