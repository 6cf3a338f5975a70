/**
 * Files of other people's formats, read as data: pickles, of which nothing is run, and zip files, of which nothing is believed that the file
 * does not hold. All of it is pure, takes time and memory in proportion to what it is given, and throws `PickleError` or `ZipError`, whose
 * message ends a sentence about the file.
 */
export { PickledObject, PickleError, readPickle, type Pickled } from "./pickle.ts";
export { ZipArchive } from "./zip-archive.ts";
export { zipData, zipDirectory, ZipError, type ByteRange } from "./zip-directory.ts";
