/** Object stores and archives. */
export type { ListOptions, ListPage, ObjectHead, ObjectStore, PutOptions } from "./object-store.ts";
export { ArchiveError, archiveLimits, type ArchiveLimits, type ArchiveReason, type SharedContent, type UnpackedArchive } from "./archive.ts";
export { collectContents } from "./archive-content.ts";
export { ArchiveUnpacker, unpackerDefaults, type UnpackerOptions } from "./archive-unpacker.ts";
