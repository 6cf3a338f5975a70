/**
 * The metrics listener: GET /metrics (also with a trailing slash). Triton responds to any other path with 200 and an empty body, so that
 * a health probe sent to the wrong port never fails (server#7230); no client was found that depends on it, so here it is a 404.
 */
export { openMetricsHttp } from "./metrics-listener.ts";
