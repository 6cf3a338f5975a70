import { createHash, createPublicKey, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";
import { isIPv4 } from "node:net";

export interface Certificate {
  readonly certificatePem: string;
  readonly keyPem: string;
}

export interface CertificateOptions {
  /** The DNS names and IPv4 addresses that the certificate is valid for. */
  readonly names: readonly string[];
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** An RSA key to certify, for clients that accept only RSA signatures. If absent, a new P-256 key is generated. */
  readonly rsaKey?: KeyObject;
}

const oids = {
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  rsaWithSha256: "1.2.840.113549.1.1.11",
  commonName: "2.5.4.3",
  subjectKeyId: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyId: "2.5.29.35",
} as const;

/**
 * Creates a self-signed X.509 v3 certificate that is also its own certificate authority. Its key is P-256 unless an RSA
 * key is given. A client that trusts the certificate trusts this platform's listener. This code encodes the DER itself,
 * because Node creates keys and signatures but no certificates.
 */
export function createCertificate({ names, notBefore, notAfter, rsaKey }: CertificateOptions): Certificate {
  const privateKey = rsaKey ?? generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  const publicKey = createPublicKey(privateKey).export({ type: "spki", format: "der" });
  // RFC 5280 hashes the curve point, which is the last 65 bytes of a P-256 key, into the key identifier. Other keys may
  // have any identifier.
  const keyId = createHash("sha1").update(publicKey.subarray(-65)).digest();
  const name = sequence(set(sequence(oid(oids.commonName), tagged(0x0c, Buffer.from("Galatea local platform")))));
  const algorithm =
    rsaKey === undefined
      ? sequence(oid(oids.ecdsaWithSha256))
      : sequence(oid(oids.rsaWithSha256), tagged(0x05, Buffer.alloc(0)));
  const altNames = names.map((each) =>
    isIPv4(each) ? tagged(0x87, Buffer.from(each.split(".").map(Number))) : tagged(0x82, Buffer.from(each)),
  );
  const extensions = sequence(
    extension(oids.basicConstraints, true, sequence(tagged(0x01, Buffer.from([0xff])))),
    // digitalSignature and keyCertSign: bits 0 and 5.
    extension(oids.keyUsage, true, tagged(0x03, Buffer.from([2, 0b1000_0100]))),
    extension(oids.subjectKeyId, false, tagged(0x04, keyId)),
    extension(oids.authorityKeyId, false, sequence(tagged(0x80, keyId))),
    extension(oids.subjectAltName, false, sequence(...altNames)),
  );
  const signed = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([0x01]), randomBytes(15)])),
    algorithm,
    name,
    sequence(time(notBefore), time(notAfter)),
    name,
    publicKey,
    tagged(0xa3, extensions),
  );
  const signature = sign("sha256", signed, privateKey);
  const certificate = sequence(signed, algorithm, tagged(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = certificate.toString("base64").replace(/(.{64})(?=.)/g, "$1\n");
  return {
    certificatePem: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    keyPem: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

function tagged(tag: number, content: Buffer): Buffer {
  const length = content.length;
  if (length < 128) return Buffer.concat([Buffer.from([tag, length]), content]);
  const bytes = length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...bytes]), content]);
}

function sequence(...chunks: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(chunks));
}

function set(...chunks: readonly Buffer[]): Buffer {
  return tagged(0x31, Buffer.concat(chunks));
}

function integer(bytes: Buffer): Buffer {
  return tagged(0x02, bytes);
}

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let left = arc >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return tagged(0x06, Buffer.from(bytes));
}

/** Encodes a time. RFC 5280 requires two-digit years (UTCTime) before 2050 and GeneralizedTime from 2050. */
function time(date: Date): Buffer {
  const text = date.toISOString().replace(/[-:T]|\.\d+/g, "");
  return date.getUTCFullYear() < 2050 ? tagged(0x17, Buffer.from(text.slice(2))) : tagged(0x18, Buffer.from(text));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  const flag = critical ? [tagged(0x01, Buffer.from([0xff]))] : [];
  return sequence(oid(id), ...flag, tagged(0x04, value));
}
