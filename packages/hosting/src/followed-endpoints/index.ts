/**
 * The endpoints of another process, for gateways: their records, and the instances that agents run for them. This module
 * routes requests to them with the code of `endpoints`, and starts, changes and records nothing.
 */
export { FollowedEndpoints, type FollowedEndpointsOptions } from "./followed-endpoints.ts";
export type { FollowedEndpoint } from "./followed-endpoint.ts";
