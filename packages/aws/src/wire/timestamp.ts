import { AwsError, unreachable } from "@galatea/base";
import type { TimestampFormat } from "../spec/index.ts";

/**
 * Parses a timestamp. Every protocol accepts epoch seconds (JSON, with fractions), ISO 8601 (query and XML) and RFC
 * 1123 (headers).
 */
export function parseTimestamp(value: unknown, format: string | undefined): Date {
  const numeric = typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
  const date =
    typeof numeric === "number" ? new Date(numeric * 1000) : typeof numeric === "string" ? new Date(numeric) : null;
  if (date === null || Number.isNaN(date.getTime())) {
    const desired = format === undefined ? "" : ` (${format})`;
    throw new AwsError("SerializationException", `${shown(value)} can not be converted to a Timestamp${desired}`);
  }
  return date;
}

const shown = (value: unknown) => (typeof value === "string" ? `'${value.slice(0, 64)}'` : typeof value);

export function formatTimestamp(value: Date, format: TimestampFormat): string | number {
  switch (format) {
    case "unixTimestamp":
      return value.getTime() / 1000;
    case "rfc822":
      return value.toUTCString();
    case "iso8601":
      return value.toISOString();
    default:
      return unreachable(format);
  }
}
