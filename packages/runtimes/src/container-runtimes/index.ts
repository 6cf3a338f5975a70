/**
 * Container kinds other than Triton's. A kind converts an unpacked archive to models of the engine, request bodies to their inputs, and
 * outputs to response bodies (`PayloadCodec` of the container API). A server process in container mode has one kind. To add a kind, add a
 * folder here, a row to `kinds.ts`, and rows of image names to `definitions/image-names.ts`.
 */
export { ArchiveCatalog } from "./archive-catalog.ts";
export { ContainerRefusal, type OpenedContainer, type PackageKeeper } from "./container-kind.ts";
export { containerKinds, type ContainerKindName } from "./kinds.ts";
