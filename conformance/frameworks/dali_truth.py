"""Prepares a photograph for Inception without DALI: `dali_truth.py PHOTOGRAPH` writes 299 x 299 x 3 floats."""

import sys

import numpy as np
from PIL import Image

MEAN = np.array([0.485, 0.456, 0.406], np.float32) * 255
STD = np.array([0.229, 0.224, 0.225], np.float32) * 255

image = Image.open(sys.argv[1]).convert("RGB").resize((299, 299), Image.Resampling.BILINEAR)
values = (np.asarray(image, np.float32) - MEAN) / STD
sys.stdout.buffer.write(np.ascontiguousarray(values, np.float32).tobytes())
