"""Writes ResNet-50 in plain PyTorch as a model repository for `galatea serve`; needs only torch.

    python resnet50.py write REPOSITORY            resnet/1/model.pt (TorchScript) and resnet/config.pbtxt
    python resnet50.py answer REPOSITORY IN OUT    PyTorch's own results, without TorchScript

The architecture is that of the paper, with the stride in the 3x3 convolution as in torchvision. An example cannot include trained
weights, so they come from a fixed seed: the classes are meaningless. IN and OUT are raw float32 bytes, [N,3,224,224] and [N,1000].
"""

import os
import sys

import torch
from torch import nn

SEED = 50
CONFIG = """name: "resnet"
platform: "pytorch_libtorch"
max_batch_size: 128
input { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 1000 ] }
dynamic_batching { }
"""


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions with a shortcut."""

    def __init__(self, before, width, stride):
        super().__init__()
        after = 4 * width
        self.conv1 = nn.Conv2d(before, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, after, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(after)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        return self.relu(self.bn3(self.conv3(out)) + self.shortcut(x))


class ResNet50(nn.Module):
    """25,557,032 parameters, as the original has."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        stages, before = [], 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            blocks = []
            for index in range(count):
                blocks.append(Bottleneck(before, width, stride if index == 0 else 1))
                before = 4 * width
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(before, 1000)

    def forward(self, x):
        return self.fc(self.pool(self.stages(self.stem(x))).flatten(1))


def pictures(count):
    """Returns pictures with shapes of all sizes, which resemble photographs more than noise does."""
    made = torch.randn(count, 3, 1, 1).expand(count, 3, 224, 224)
    for side in (2, 4, 7, 14, 28, 56, 112, 224):
        shapes = torch.randn(count, 3, side, side)
        made = made + nn.functional.interpolate(shapes, size=224, mode="bicubic", align_corners=False) / side**0.5
    return made


def made():
    """Sets weights from the seed, statistics of batch norms from two passes, and a last layer whose outputs vary like those of a trained one.

    With the statistics of a new module all pictures would get nearly equal outputs, and any comparison would pass.
    """
    torch.manual_seed(SEED)
    module = ResNet50()
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(layer, nn.BatchNorm2d):
            # The average of all passes.
            layer.momentum = None
    with torch.no_grad():
        for _ in range(2):
            module.train()(pictures(4))
        answers = module.eval()(pictures(4))
        scale = 3 / (answers - answers.mean(0)).std()
        module.fc.weight.mul_(scale)
        module.fc.bias.copy_(-scale * (answers.mean(0) - module.fc.bias))
    return module


def write(repository):
    directory = os.path.join(repository, "resnet", "1")
    os.makedirs(directory, exist_ok=True)
    module = made()
    parameters = sum(one.numel() for one in module.parameters())
    with torch.no_grad():
        torch.jit.save(torch.jit.trace(module, torch.zeros(1, 3, 224, 224)), os.path.join(directory, "model.pt"))
    with open(os.path.join(repository, "resnet", "config.pbtxt"), "w") as file:
        file.write(CONFIG)
    print("wrote %s: %d parameters" % (os.path.join(directory, "model.pt"), parameters))


def answer(repository, source, target):
    weights = torch.jit.load(os.path.join(repository, "resnet", "1", "model.pt")).state_dict()
    module = ResNet50()
    module.load_state_dict(weights)
    with open(source, "rb") as file:
        pixels = torch.frombuffer(bytearray(file.read()), dtype=torch.float32).reshape(-1, 3, 224, 224)
    with torch.no_grad():
        answers = module.eval()(pixels)
    with open(target, "wb") as file:
        file.write(answers.numpy().tobytes())


if __name__ == "__main__":
    {"write": write, "answer": answer}[sys.argv[1]](*sys.argv[2:])
