/** Object stores and archives. */
export {
  checksumAlgorithms,
  partNumberMax,
  type BodyExpectation,
  type BucketHead,
  type BucketStore,
  type ChecksumAlgorithm,
  type ChecksumType,
  type CompletedPart,
  type CompleteOptions,
  type DeleteCondition,
  type ListOptions,
  type ListPage,
  type ObjectHead,
  type ObjectStore,
  type PartHead,
  type PutCondition,
  type PutOptions,
  type UploadHead,
  type UploadId,
  type UploadOptions,
} from "./object-store.ts";
export { checkBody } from "./body-file.ts";
export { digestOf, type DigestName } from "./checksum.ts";
export { openDirectoryStore, type DirectoryStoreLimits, type DirectoryStoreOptions } from "./directory-store.ts";
export {
  ArchiveError,
  archiveLimits,
  type ArchiveLimits,
  type ArchiveReason,
  type SharedContent,
  type UnpackedArchive,
} from "./archive.ts";
export { readSealed, sealedText } from "./damaged-file.ts";
export { collectContents } from "./archive-content.ts";
export { ArchiveUnpacker, unpackerDefaults, type UnpackerOptions } from "./archive-unpacker.ts";
