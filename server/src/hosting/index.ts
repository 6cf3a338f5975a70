/**
 * Hosting: models, endpoint configurations, endpoints, and what runs for them. `Hosting` is the deep door: it keeps the records,
 * makes every move of an endpoint (recorded before it is told, taken up again after a restart), starts instances through the
 * `ModelHost` it is given, and answers invocations. Multi-model endpoints have one agent per instance. Errors are AwsError with
 * the services' own codes and sentences. Nothing here reads the environment or knows HTTP servers.
 */
export { hostingArn, nameKey, parseHostingArn, type HostingResource, type Owner } from "./arns.ts";
export { failureReason, isTransient, moveEndpoint, type EndpointRecord, type EndpointState } from "./endpoint-state.ts";
export type { FleetOptions } from "./fleet.ts";
export { Hosting, hostingLimits, type HostingLimits, type HostingOptions, type Tag } from "./hosting.ts";
export { alreadyExists, invalid, limitExceeded, notFound } from "./hosting-errors.ts";
export { hostingMigrations, RecordTable } from "./hosting-store.ts";
export { resolveImage, unsupportedImageText, type BuiltInRuntime } from "./image-names.ts";
export { refusedVariable } from "./refused-variables.ts";
export {
  modelDataUrlOf,
  type InstanceIdentity,
  type IssueCredentials,
  type IssuedCredentials,
} from "./instance-credentials.ts";
export { RunningEndpoint } from "./running-endpoint.ts";
export { instanceLimits, type InstanceLimits } from "./instance.ts";
export { instanceBudget, instanceType, type InstanceBudget, type Machine } from "./instance-types.ts";
export {
  endpointNotFound,
  heldBytesMax,
  invocationLimits,
  tooLong,
  type InvocationLimits,
  type InvocationReply,
  type InvocationRequest,
} from "./invocation.ts";
export { LeftInstances } from "./left-instances.ts";
export { createDirectoryLogStreams, type DirectoryLogStreamsOptions } from "./directory-log-streams.ts";
export type { LogEvent, LogGroup, LogPage, LogReadOptions, LogStream, LogStreams } from "./log-streams.ts";
export {
  metricMigrations,
  MetricRecords,
  metricRecordsLimits,
  type MetricRecordsLimits,
  type MetricRecordsOptions,
} from "./metric-records.ts";
export type { HostedInstance, InstanceEnd, InstanceSpec, InstanceUsage, ModelHost } from "./model-host.ts";
export type {
  ContainerDefinition,
  EndpointConfigRecord,
  ModelRecord,
  ProductionVariant,
} from "./records-of-hosting.ts";
export { parseS3Uri } from "./s3-uri.ts";
