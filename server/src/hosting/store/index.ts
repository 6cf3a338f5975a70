/** Where hosting's own records are kept; only hosting opens it. */
export { endpointRecord, modelRecord } from "./record-forms.ts";
export { RecordTable, hostingMigrations } from "./hosting-store.ts";
