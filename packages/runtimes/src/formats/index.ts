/**
 * Readers of untrusted files: pickles, whose code is never run, and zip files, whose declared sizes are checked. Pure; takes time and
 * memory linear in the input. Throws `PickleError` or `ZipError`, whose message ends a sentence about the file.
 */
export { PickledObject, PickleError, readPickle, type Pickled } from "./pickle.ts";
export { ZipArchive } from "./zip-archive.ts";
export { zipData, zipDirectory, ZipError, type ByteRange } from "./zip-directory.ts";
