/**
 * The pages of the platform's port without signatures: probes, metrics, and the pages of URLs with a token of their
 * own.
 */
export { createLogLinks, type LogLinks } from "./log-links.ts";
export { publicPages } from "./public-pages.ts";
