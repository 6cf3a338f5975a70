import { createHmac, createSecretKey, hash, timingSafeEqual, type KeyObject } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { decodeComponent, pathOf, rawQueryOf, type SignedRequest } from "./signed-request.ts";

export const sha256Hex = (data: string | Uint8Array): string => hash("sha256", data, "hex");
export const hmacSha256 = (key: string | Uint8Array | KeyObject, data: string): Buffer =>
  createHmac("sha256", key).update(data).digest();
export const emptySha256 = sha256Hex("");

/**
 * Returns the signing key as a KeyObject. Given bytes, each HMAC would convert them to a KeyObject, which doubles the
 * time of a verification.
 */
export function signingKey(secret: string, date: string, region: string, service: string): KeyObject {
  const regionKey = hmacSha256(hmacSha256(`AWS4${secret}`, date), region);
  return createSecretKey(hmacSha256(hmacSha256(regionKey, service), "aws4_request"));
}

/** Encodes as RFC 3986 requires. `encodeURIComponent` leaves some characters unencoded. */
export function uriEncode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

export interface CanonicalOptions {
  readonly signedHeaders: readonly string[];
  readonly payloadHash: string;
  /** False for S3, which signs the path encoded once. All other services encode the encoded path again. */
  readonly encodePathTwice: boolean;
  /** Parameter to exclude from the signed query: the signature of a presigned URL. Null: none. */
  readonly omitQuery: string | null;
}

export function canonicalRequest(request: SignedRequest, options: CanonicalOptions): string {
  const segments = pathOf(request.url)
    .split("/")
    .map((segment) => uriEncode(decodeComponent(segment)));
  const path = options.encodePathTwice ? segments.map(uriEncode).join("/") : segments.join("/");
  const query = rawQueryOf(request.url)
    .map(([name, value]) => [uriEncode(decodeComponent(name)), uriEncode(decodeComponent(value))] as const)
    .filter(([name]) => name !== options.omitQuery)
    .toSorted(([a, x], [b, y]) => (a === b ? (x < y ? -1 : 1) : a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
  const names = options.signedHeaders.map((name) => name.toLowerCase()).toSorted();
  const headers = names.map((name) => `${name}:${headerText(request.headers, name)}\n`).join("");
  return [request.method, path === "" ? "/" : path, query, headers, names.join(";"), options.payloadHash].join("\n");
}

export function headerText(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name];
  const text = Array.isArray(value) ? value.join(",") : (value ?? "");
  return text.trim().replace(/ {2,}/g, " ");
}

export function stringToSign(timestamp: string, scope: string, canonical: string): string {
  return ["AWS4-HMAC-SHA256", timestamp, scope, sha256Hex(canonical)].join("\n");
}

export function signatureEquals(expected: string, input: string): boolean {
  const a = Buffer.from(expected);
  const b = Buffer.from(input);
  return a.byteLength === b.byteLength && timingSafeEqual(a, b);
}
