"""The frameworks of pickled native models."""

import enum


class Framework(enum.Enum):
    """The SDK's framework names, which pickles contain."""

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
