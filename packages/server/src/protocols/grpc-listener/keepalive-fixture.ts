import type { KeepaliveOptions } from "./keepalive.ts";

export const usualKeepalive: KeepaliveOptions = {
  timeMs: 7_200_000,
  timeoutMs: 20_000,
  permitWithoutCalls: false,
  receivedPingIntervalMinMs: 300_000,
  pingStrikesMax: 2,
  connectionAgeMaxMs: null,
  connectionAgeGraceMs: null,
};
