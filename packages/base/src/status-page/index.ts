/** The one page that a server shows to a browser: what it is, what runs, what has failed, and where to read on. */
export { acceptsHtml, statusPage, statusPageHeaders, statusRowsMax, type StatusTable } from "./status-page.ts";
