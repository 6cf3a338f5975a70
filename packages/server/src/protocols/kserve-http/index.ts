/**
 * KServe v2 over HTTP, as tritonserver serves it on port 8000: health, metadata, configuration, statistics, model repository, inference in
 * JSON and binary. All routes are rows of one table. Triton's routes that are not implemented respond with 501 and the name of the feature.
 */
export { openKserveHttp } from "./kserve-listener.ts";
