/**
 * The metrics listener: GET /metrics (also with a slash behind it). Triton answers any other path with 200 and nothing,
 * so that a health probe sent to the wrong port never fails (server#7230); no client was found that depends on it,
 * so here it is a 404.
 */
export { openMetricsHttp } from "./metrics-listener.ts";
