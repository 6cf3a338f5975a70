"""Runs the AWS CLI for another program, in this process: each line is a call, which becomes a command with an option for each member."""

import contextlib
import io
import json
import os
import re
import tempfile

from awscli.clidriver import create_clidriver
from botocore import xform_name
from lines import failure, serve

SAID = re.compile(r"An error occurred \((\w+)\) when calling the \w+ operation(?: \([^)]*\))?: (.*)", re.S)
COMMANDS = {"s3": "s3api"}
driver = create_clidriver()
folder = tempfile.TemporaryDirectory()
tables = {}


def run(words):
    """Returns the output and error output of `aws ...`, and its exit code."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = driver.main(words)
    return code, out.getvalue(), errors.getvalue()


def operation_of(service, operation):
    key = (service, operation)
    if key not in tables:
        commands = driver.create_help_command().command_table[service].create_help_command().command_table
        tables[key] = commands[xform_name(operation, "-")]
    return tables[key]


def file(name, content):
    path = os.path.join(folder.name, name)
    with open(path, "wb") as stream:
        stream.write(content)
    return path


def option(argument, member, value, scheme):
    if isinstance(value, bool):
        return ["--" + argument if value else "--no-" + argument]
    if isinstance(value, bytes):
        return ["--" + argument, scheme + file(member, value)]
    return ["--" + argument, value if isinstance(value, str) else json.dumps(value)]


def call(service, operation, given):
    command = COMMANDS.get(service, service)
    row = operation_of(command, operation)
    # S3's bodies are passed as file names.
    scheme = "" if service == "s3" else "fileb://"
    names = {getattr(argument, "_serialized_name", None): name for name, argument in row.arg_table.items()}
    words = [command, xform_name(operation, "-"), "--output", "json"]
    for member, value in given.items():
        words += option(names[member].removeprefix("no-"), member, value, scheme)
    outfile = os.path.join(folder.name, "outfile")
    body = "outfile" in row.arg_table
    code, out, errors = run(words + ([outfile] if body else []))
    if code != 0:
        said = SAID.search(errors.strip())
        return failure(said[1], said[2]) if said else failure("CLI%s" % code, errors)
    answer = json.loads(out) if out.strip() else {}
    if body:
        with open(outfile, "rb") as stream:
            answer["Body"] = stream.read()
    return answer


def wait(service, name, given):
    command = COMMANDS.get(service, service)
    words = [command, "wait", xform_name(name, "-")]
    for member, value in given.items():
        words += option(xform_name(member, "-"), member, value, "")
    code, _out, errors = run(words)
    return {} if code == 0 else failure("WaiterError", errors)


def shell(words):
    """Runs any other command, such as those of `aws s3`."""
    code, out, errors = run(words)
    return {"Output": out} if code == 0 else failure("CLI%s" % code, errors)


serve(lambda service, name, given: shell(given["Words"]) if service == "shell" else call(service, name, given), wait)
