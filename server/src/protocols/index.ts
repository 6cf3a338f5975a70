/** Front ends, one folder per protocol; all speak to the engine's door and to nothing else below it. */
export { defaultHttpLimits, type HttpLimits, type HttpListener, type ListenAddress } from "./http-listener/index.ts";
export { openKserveHttp, type KserveHttpOptions } from "./kserve-http/index.ts";
