"""Trains tree models from fixed seeds and writes them with the predictions of their libraries.

    python generate.py OUT [--before]

OUT/repository is a model repository of the `fil` backend. OUT/cases/<model>.json describes a model's rows and predictions,
which are next to it as little-endian float32 rows and float64 predictions. `--before` runs with the last XGBoost with the binary format.
"""

import argparse
import pathlib

import xgboost_models


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--before", action="store_true")
    arguments = parser.parse_args()
    if arguments.before:
        xgboost_models.write_before(arguments.out)
        return
    # The environment of `--before` lacks these packages.
    import lightgbm_models
    import treelite_models

    xgboost_models.write_all(arguments.out)
    lightgbm_models.write_all(arguments.out)
    treelite_models.write_all(arguments.out)


if __name__ == "__main__":
    main()
