/**
 * Modules that a zygote may import before a model's own code runs. Triton imports none, so that a model can set a variable and then import
 * a library that reads it. A module on this list reads no variable when it is imported, neither in Python nor in C; this was determined by
 * listing every `getenv` call of the import. Each model imports all other modules itself, unless the operator lists them. numpy is always
 * imported; `packages/server/python/galatea_worker/thread_pools.py` limits its threads.
 *
 * Excluded because they read variables: hashlib, ssl and their importers (OPENSSL_CONF: asyncio, hmac, http, secrets, urllib.request),
 * sqlite3 (TMPDIR), zoneinfo (PYTHONTZPATH), huggingface_hub, torch, transformers, tensorflow.
 */
const standardLibrary: ReadonlySet<string> = new Set(
  `abc argparse array ast base64 binascii bisect bz2 calendar cmath codecs collections colorsys configparser contextlib contextvars copy
  copyreg csv dataclasses datetime decimal difflib dis enum errno fnmatch fractions functools glob graphlib gzip heapq html importlib
  inspect io itertools json keyword linecache logging lzma math mimetypes numbers opcode operator pathlib pickle platform pprint queue
  quopri random re reprlib select selectors shlex shutil signal socket stat statistics string stringprep struct subprocess tarfile tempfile
  textwrap threading token tokenize traceback types typing unicodedata unittest uuid warnings wave weakref xml zipfile zlib`.split(
    /\s+/,
  ),
);

/** Further modules that a zygote may import, each with the variables that its import reads. */
const others: Readonly<Record<string, string>> = {
  tokenizers: "only what colours and filters its log; TOKENIZERS_PARALLELISM and RAYON_NUM_THREADS are read at use",
};

/** Returns whether a zygote may import a module before a model's code runs. `listed` are the modules that the operator allows. */
export function isPreImportAllowed(name: string, listed: ReadonlySet<string>): boolean {
  return standardLibrary.has(name) || Object.hasOwn(others, name) || listed.has(name);
}
