/** Front ends, one folder per protocol; all speak to the engine's door and to nothing else below it. */
export {
  defaultContainerLimits,
  openContainer,
  type ContainerLimits,
  type ContainerOptions,
} from "./container/index.ts";
export { defaultHttpLimits, type HttpLimits, type HttpListener, type ListenAddress } from "./http-listener/index.ts";
export { openKserveHttp, type KserveHttpOptions } from "./kserve-http/index.ts";
export { openMetricsHttp, type MetricsHttpOptions } from "./metrics-http/index.ts";
