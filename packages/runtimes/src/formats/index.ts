/**
 * Readers of untrusted files: pickles, which are read without running code, and zip files, whose declared sizes are checked. All functions
 * are pure and take time and memory linear in the input. They throw `PickleError` or `ZipError`; the message is a predicate, such as "has a
 * broken directory", to which the caller adds the name of the file as the subject.
 */
export { PickledObject, PickleError, readPickle, type Pickled } from "./pickle.ts";
export { ZipArchive } from "./zip-archive.ts";
export { zipData, zipDirectory, ZipError, type ByteRange } from "./zip-directory.ts";
