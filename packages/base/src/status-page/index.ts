/**
 * The HTML page that a server shows to a browser: version, models or endpoints with their states and failures, and
 * links.
 */
export { acceptsHtml, statusPage, statusPageHeaders, statusRowsMax, type StatusTable } from "./status-page.ts";
