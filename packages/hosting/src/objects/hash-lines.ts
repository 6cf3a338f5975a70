import type { HashRequest, HashReply } from "./hash-worker.ts";

export const formatHashRequest = (order: HashRequest): string => `${JSON.stringify(order)}\n`;

export const formatHashReply = (reply: HashReply): string => `${JSON.stringify(reply)}\n`;

/** Parses a line of the hashing process. Returns null for any other output, such as a warning of Node. */
export function parseHashReply(line: string): HashReply | null {
  return line.startsWith('{"id":') ? (JSON.parse(line) as HashReply) : null;
}
