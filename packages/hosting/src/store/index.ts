/** Where hosting's own records are kept; only hosting opens it. */
export type { HostingKinds, ModelMemoryRecord, Tag } from "./hosting-kinds.ts";
export { HostingStore, type WriteConsequences } from "./hosting-store.ts";
export { listPage, type ListAnswer, type ListedPlace, type ListQuestion, type TimeRange } from "./listing.ts";
export type { FoundPlace } from "./output-folders.ts";
export type { NumberedStateChange } from "./state-change-log.ts";
export type { FoundRecord, RecordKind } from "./record-kind.ts";
