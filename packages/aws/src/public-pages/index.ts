/** The pages of the platform's port that need no signature: probes, metrics, and pages whose URL contains a token. */
export { createLogLinks, type LogLinks } from "./log-links.ts";
export { publicPages } from "./public-pages.ts";
