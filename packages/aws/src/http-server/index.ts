/** The HTTP server of the platform's port: its limits, the queue of requests during the start, and its shutdown. */
export {
  createPlatformServer,
  queueRequests,
  duplicateListeningSocket,
  listenOn,
  platformServerLimits,
  type PlatformServer,
  type PlatformServerLimits,
} from "./http-server.ts";
