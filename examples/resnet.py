"""ResNet-18 with its real widths, on a small image.

    tensorviz capture examples/resnet.py

What to look for in the capture:

- The first block of ``layer2``, ``layer3`` and ``layer4`` halves the image and doubles the channels, and its shortcut
  is a convolution of its own; all other shortcuts are plain additions.
- ``relu`` is one module that every block calls twice: one instance, two calls each.
- ``relu`` and the addition work in place, so one tensor object passes through several versions.
- ``--mode train`` takes another path: batch normalisation counts its batches and measures instead of remembering.
"""

import torch
from torch import nn


def conv3x3(channels_in: int, channels_out: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(channels_in, channels_out, kernel_size=3, stride=stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    def __init__(self, channels_in: int, channels_out: int, stride: int):
        super().__init__()
        self.conv1 = conv3x3(channels_in, channels_out, stride)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.conv2 = conv3x3(channels_out, channels_out)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels_in != channels_out:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(channels_out),
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += shortcut
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, blocks: list[int], classes: int):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self.stage(64, 64, blocks[0], stride=1)
        self.layer2 = self.stage(64, 128, blocks[1], stride=2)
        self.layer3 = self.stage(128, 256, blocks[2], stride=2)
        self.layer4 = self.stage(256, 512, blocks[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, classes)

    @staticmethod
    def stage(channels_in: int, channels_out: int, blocks: int, stride: int) -> nn.Sequential:
        first = BasicBlock(channels_in, channels_out, stride)
        return nn.Sequential(first, *(BasicBlock(channels_out, channels_out, 1) for _ in range(blocks - 1)))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def get_init_inputs() -> list:
    return [[2, 2, 2, 2], 10]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(1, 3, 64, 64)]


if __name__ == "__main__":
    network = ResNet(*get_init_inputs()).eval()
    print("Logits:", network(*get_inputs()).detach())
