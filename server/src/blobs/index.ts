/** Object stores and archives. */
export type { ListOptions, ListPage, ObjectHead, ObjectStore, PutOptions } from "./object-store.ts";
