/** SNS: topics, subscriptions of HTTP endpoints, and publishing. */
export { snsService } from "./service.ts";
