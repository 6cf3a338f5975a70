/** SNS: topics, subscriptions of HTTP endpoints, and what is published to them. */
export { snsService, type SnsParts } from "./service.ts";
