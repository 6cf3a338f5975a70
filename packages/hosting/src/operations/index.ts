/** Operations that API handlers call. Each one validates its input against records and quotas, writes the record, and starts the reconciler. */
export type { Components, RequestedComponentSpec, ComponentUpdate } from "./component-operations.ts";
export { openComponents } from "./open-components.ts";
export { AsyncInferences } from "./async-operations.ts";
export { HostingCatalog } from "./catalog.ts";
export { EndpointWatch } from "./endpoint-watch.ts";
export { Endpoints, type EndpointDescription } from "./endpoint-operations.ts";
export { Transforms } from "./transform-operations.ts";
export { newInstanceId } from "./random-ids.ts";
export type { EndpointUpdate, RetainedProperty, VariantSizeChange } from "./endpoint-updates.ts";
