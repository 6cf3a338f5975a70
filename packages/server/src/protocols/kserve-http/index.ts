/**
 * KServe v2 over HTTP, as tritonserver serves it on port 8000: health, metadata, configuration, statistics, model repository, inference
 * in JSON and binary. Routes are rows of one table; Triton routes that are not implemented are rejected by name with 501.
 */
export { openKserveHttp } from "./kserve-listener.ts";
