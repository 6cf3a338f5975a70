"""The package's logger."""

from __future__ import annotations

import logging

from .unavailable import refused

_FORMAT = "%(asctime)s %(name)-12s %(levelname)-8s %(message)s"


def get_logger() -> logging.Logger:
    """Returns the logger `sagemaker-containers`."""
    return logging.getLogger("sagemaker-containers")


def configure_logger(level: int, log_format: str = _FORMAT) -> None:
    """Sets the format and level of all loggers. Debug lines of boto3 are only printed at level DEBUG."""
    logging.basicConfig(format=log_format, level=level)
    if level >= logging.INFO:
        for name, least in (("boto3", logging.INFO), ("s3transfer", logging.INFO), ("botocore", logging.WARNING)):
            logging.getLogger(name).setLevel(least)


log_script_invocation = refused("logging.log_script_invocation")
