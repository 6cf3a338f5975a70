"""Exceptions as the text the original shows."""

TEXT_CHARACTERS_MAX = 65536


def describe(error, own_files):
    """`Type: text`, then where: innermost frame first, frames of the worker itself left out.

    Never raises. Of a text that cannot be had the reason is told, behind all the rest, as pybind11 does for the original.
    """
    try:
        return _located(error, _text(error), own_files)
    except BaseException as second:  # noqa: B902 - `__str__` is the model's code: whatever it raises must not end the worker
        described = _located(error, "<MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>", own_files)
        try:
            reason = _located(second, _text(second), own_files)
        except BaseException:  # noqa: B902
            reason = "%s: <MESSAGE UNAVAILABLE>" % type(second).__name__
        return "%s\n\nMESSAGE UNAVAILABLE DUE TO EXCEPTION: %s" % (described.rstrip("\n"), reason)


def _text(error):
    # Half a pair of surrogates is no text that could be sent.
    return str(error)[:TEXT_CHARACTERS_MAX].encode("utf-8", "backslashreplace").decode("utf-8")


def _located(error, text, own_files):
    text = "%s: %s" % (type(error).__name__, text)
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
