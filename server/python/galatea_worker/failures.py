"""Exceptions as the text the original shows."""


def describe(error, own_files):
    """`Type: text`, then where: innermost frame first, frames of the worker itself left out."""
    text = "%s: %s" % (type(error).__name__, error)
    lines = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename not in own_files and not code.co_filename.startswith("<frozen importlib"):
            lines.append("  %s(%d): %s\n" % (code.co_filename, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    if not lines:
        return text
    lines.reverse()
    return text + "\n\nAt:\n" + "".join(lines[:64])
