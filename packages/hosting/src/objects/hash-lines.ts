import type { HashOrder, HashReply } from "./hash-worker.ts";

export const printHashOrder = (order: HashOrder): string => `${JSON.stringify(order)}\n`;

export const printHashReply = (reply: HashReply): string => `${JSON.stringify(reply)}\n`;

/** null for what is no reply: a warning that Node prints, say. */
export function parseHashReply(line: string): HashReply | null {
  return line.startsWith('{"id":') ? (JSON.parse(line) as HashReply) : null;
}
