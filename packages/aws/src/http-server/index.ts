/** The HTTP server of the platform's port: its bounds, requests that wait for the start, and its end. */
export {
  createPlatformServer,
  queueRequests,
  inheritableSocket,
  listen,
  platformServerLimits,
  type PlatformServer,
  type PlatformServerLimits,
} from "./http-server.ts";
