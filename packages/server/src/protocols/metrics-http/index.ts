/**
 * The metrics listener: GET /metrics (also with a trailing slash). Other paths get a 404. Triton sends 200 with an empty body for them, so
 * that a health probe sent to the wrong port never fails (server#7230). No client is known to need that.
 */
export { openMetricsHttp } from "./metrics-listener.ts";
