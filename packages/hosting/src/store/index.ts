/** The store of hosting's records. Other packages must not open it. */
export type { HostingKinds, ModelMemoryRecord, Tag } from "./hosting-kinds.ts";
export { HostingStore, type WriteEffects } from "./hosting-store.ts";
export { listPage, type ListingPage, type ListingPosition, type ListQuery, type TimeRange } from "./listing.ts";
export type { OutputOwners } from "./output-folders.ts";
export type { NumberedStateChange } from "./state-change-log.ts";
export type { RecordState, RecordKind } from "./record-kind.ts";
