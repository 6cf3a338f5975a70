/**
 * Container kinds besides Triton's: each converts an unpacked archive to models of the engine, request bodies to their inputs, and
 * outputs to response bodies (`PayloadCodec` of the container API). One server process in container mode is of one kind. A new kind is a
 * folder here, a row of `kinds.ts`, and rows of image names in `definitions/image-names.ts`.
 */
export { ArchiveCatalog } from "./archive-catalog.ts";
export { ContainerRefusal, type OpenedContainer, type PackageKeeper } from "./container-kind.ts";
export { containerKinds, type ContainerKindName } from "./kinds.ts";
