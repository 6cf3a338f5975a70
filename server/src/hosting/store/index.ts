/** Where hosting's own records are kept; only hosting opens it. */
export { RecordTable, hostingMigrations } from "./hosting-store.ts";
