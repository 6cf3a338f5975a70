/**
 * Kinds of containers beside Triton's: each says what an unpacked archive is as models of the engine, and how bodies become their inputs
 * and their outputs bodies (`PayloadCodec` of the container contract). One server process in container mode is of one kind.
 *
 * A new kind is a folder here, a row of `kinds.ts`, and rows of image names in `definitions/image-names.ts`.
 */
export { ArchiveCatalog } from "./archive-catalog.ts";
export { ContainerRefusal, type OpenedContainer, type PackageKeeper } from "./container-kind.ts";
export { containerKinds, type ContainerKindName } from "./kinds.ts";
