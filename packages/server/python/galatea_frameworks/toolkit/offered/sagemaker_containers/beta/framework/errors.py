"""The package's exceptions, which scripts raise and catch."""

from __future__ import annotations

from galatea_frameworks.toolkit.errors import (
    BaseInferenceToolkitError,
    GenericInferenceToolkitError,
    UnsupportedFormatError,
)

__all__ = [
    "BaseInferenceToolkitError",
    "ChannelDoesNotExistException",
    "ClientError",
    "ExecuteUserScriptError",
    "GenericInferenceToolkitError",
    "ImportModuleError",
    "InstallModuleError",
    "UnsupportedFormatError",
]


class ClientError(Exception):
    """An error caused by the script, not by the container."""


class _CalledProcessError(ClientError):
    """A program that ended with an error."""

    def __init__(self, cmd: object, return_code: int | None = None, output: bytes | None = None) -> None:
        self.cmd = cmd
        self.return_code = return_code
        self.output = output
        super().__init__()

    def __str__(self) -> str:
        text = "" if not self.output else "\n%s" % self.output.decode("latin1")
        return '%s:\nCommand "%s"%s' % (type(self).__name__, self.cmd, text)


class InstallModuleError(_CalledProcessError):
    """The installation of a module failed."""


class ImportModuleError(ClientError):
    """The import of a module failed."""


class ExecuteUserScriptError(_CalledProcessError):
    """A script ended with an error."""


class ChannelDoesNotExistException(Exception):
    """The training job has no such channel."""

    def __init__(self, channel_name: str) -> None:
        super().__init__("Channel %s is not a valid channel" % channel_name)
