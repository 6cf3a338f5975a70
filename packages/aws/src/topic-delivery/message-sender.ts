import { lookup as resolveName, type LookupAddress, type LookupOptions } from "node:dns";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import type { AttemptOutcome, SendMessage } from "../topics/index.ts";

/**
 * Addresses of cloud metadata services, which issue credentials to the machine that calls them. Messages are never sent
 * there, because no subscriber has such an address.
 */
const cloudMetadata = new BlockList();
for (const address of ["169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200"])
  cloudMetadata.addAddress(address, "ipv4");
for (const address of ["fd00:ec2::254", "fd00:ec2::23"]) cloudMetadata.addAddress(address, "ipv6");

/**
 * Networks that the internet cannot reach: link-local, private, shared and reserved addresses, and IPv6 prefixes that
 * embed IPv4 addresses. Programs there may trust requests from their network, so only the operator can allow
 * subscriptions with these addresses.
 */
const privateNetworks = new BlockList();
for (const [network, bits] of [
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
] as const)
  privateNetworks.addSubnet(network, bits, "ipv4");
for (const [network, bits] of [
  ["::", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2001::", 32],
  ["2002::", 16],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
] as const)
  privateNetworks.addSubnet(network, bits, "ipv6");

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addSubnet("0.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");
loopback.addAddress("::", "ipv6");

/** Returns whether an address currently belongs to this machine. */
function isOwn(address: string): boolean {
  const own = new BlockList();
  for (const { address: each, family } of Object.values(networkInterfaces()).flatMap((found) => found ?? [])) {
    own.addAddress(each, family === "IPv6" ? "ipv6" : "ipv4");
  }
  return own.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

type Refusal = "cloud-metadata" | "this-machine" | "private-network" | null;

const refusalTexts: Readonly<Record<NonNullable<Refusal>, string>> = {
  "cloud-metadata": "it is a cloud metadata service, which gives machines their credentials",
  "this-machine": "--topics-to-this-machine lets messages go to the programs of this machine",
  "private-network": "--topics-to-private-networks lets messages go to link-local and private addresses",
};

class ForbiddenAddress extends Error {
  constructor(address: string, refusal: NonNullable<Refusal>) {
    super(`messages are not sent to ${address}: ${refusalTexts[refusal]}`);
    this.name = "ForbiddenAddress";
  }
}

export interface MessageSenderOptions {
  /** True if messages may be sent to addresses of this machine. */
  readonly toThisMachine: boolean;
  /** True if messages may be sent to link-local and private addresses of other machines. */
  readonly toPrivateNetworks: boolean;
}

/** Returns why no message may be sent to an address, in any notation; null if messages may be sent. */
export function rejectedAddress(address: string, options: MessageSenderOptions): Refusal {
  const family = isIP(address) === 6 ? "ipv6" : "ipv4";
  // An IPv4-mapped IPv6 address is checked as the IPv4 address.
  const bare = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (bare !== undefined) return rejectedAddress(bare, options);
  if (cloudMetadata.check(address, family)) return "cloud-metadata";
  if (loopback.check(address, family) || isOwn(address)) return options.toThisMachine ? null : "this-machine";
  return privateNetworks.check(address, family) && !options.toPrivateNetworks ? "private-network" : null;
}

/**
 * Returns a sender that opens one connection for each message. The address is checked when the connection is opened. A
 * check at the subscription would not suffice, because the name may resolve to another address later (DNS rebinding).
 */
export function createMessageSender(
  options: MessageSenderOptions,
  resolve: typeof resolveName = resolveName,
): SendMessage {
  const lookup: LookupFunction = (hostname, requested: LookupOptions, done) => {
    resolve(hostname, { ...requested, all: true }, (error, addresses: LookupAddress[]) => {
      if (error !== null) return done(error, "", 0);
      for (const { address } of addresses) {
        const refusal = rejectedAddress(address, options);
        if (refusal !== null) return done(new ForbiddenAddress(address, refusal), "", 0);
      }
      const [first] = addresses;
      if (first === undefined) return done(new Error(`${hostname} has no address`), "", 0);
      if (requested.all === true) return done(null, addresses);
      done(null, first.address, first.family);
    });
  };
  return (url, { headers, body }, signal) =>
    new Promise<AttemptOutcome>((settle) => {
      const fail = (error: Error) => {
        const kind = error instanceof ForbiddenAddress ? "forbidden" : "unreachable";
        settle({ kind, why: `the endpoint could not be reached: ${error.message}` });
      };
      const parsed = new URL(url);
      const host = parsed.hostname.replace(/^\[|\]$/g, "");
      // Node does not look up a host that is already an address, so the address is checked here.
      const refusal = isIP(host) === 0 ? null : rejectedAddress(host, options);
      if (refusal !== null) return fail(new ForbiddenAddress(host, refusal));
      const open = parsed.protocol === "https:" ? requestHttps : requestHttp;
      const content = Buffer.from(body);
      const sent = open(
        parsed,
        {
          method: "POST",
          headers: { ...headers, "content-length": content.length, connection: "close" },
          agent: false,
          lookup,
          signal,
          maxHeaderSize: 16 * 1024,
        },
        (response) => {
          settle({ kind: "answered", status: response.statusCode ?? 0 });
          // The body of the response is not needed.
          response.destroy();
        },
      );
      sent.once("error", fail);
      sent.end(content);
    });
}
