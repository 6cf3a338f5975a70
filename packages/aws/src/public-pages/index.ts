/** The pages of the platform's port that need no signature: probes, metrics, and the pages that links with a token of their own lead to. */
export { createLogLinks, type LogLinks } from "./log-links.ts";
export { publicPages } from "./public-pages.ts";
