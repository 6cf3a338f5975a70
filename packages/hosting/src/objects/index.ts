/** Object stores (in a directory or an S3 service), and the unpacking of model archives. */
export {
  nullIfAbsent,
  checksumAlgorithms,
  partNumberMax,
  type BodyExpectation,
  type BucketStore,
  type ChecksumAlgorithm,
  type ChecksumType,
  type CompletedPart,
  type CountedStore,
  type DeleteCondition,
  type ListedObject,
  type ListPage,
  type ObjectHead,
  type ObjectStore,
  type PutOptions,
  type UploadId,
} from "./object-store.ts";
export { checkBody } from "./body-file.ts";
export { computeDigest, type DigestName } from "./checksum.ts";
export { openDirectoryStore } from "./directory-store.ts";
export { hideBuckets, isLogBucket, logBucketPrefix } from "./hidden-bucket.ts";
export { ArchiveError, archiveLimits, type SharedContent, type UnpackedArchive } from "./archive.ts";
export { readChecksummed, checksummedText } from "./damaged-file.ts";
export { deleteUnlinkedContents } from "./archive-content.ts";
export { ArchiveUnpacker, unpackerDefaults } from "./archive-unpacker.ts";
