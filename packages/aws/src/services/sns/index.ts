/** SNS: topics, subscriptions of HTTP endpoints, and what is published to them. */
export { snsService } from "./service.ts";
