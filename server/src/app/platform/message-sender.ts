import { lookup as resolveName, type LookupAddress, type LookupOptions } from "node:dns";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import type { AttemptOutcome, SendMessage } from "../../topics/index.ts";

/**
 * Where nothing is sent that people subscribe: what clouds tell their machines (link-local addresses), and, unless the operator says
 * otherwise, the programs of this machine, which trust what comes from it, by whichever address of the machine. Other machines of a private
 * network are sent messages: that is where the services of the people are who subscribe them.
 */
const linkLocal = new BlockList();
linkLocal.addSubnet("169.254.0.0", 16, "ipv4");
linkLocal.addSubnet("fe80::", 10, "ipv6");
linkLocal.addAddress("fd00:ec2::254", "ipv6");
linkLocal.addSubnet("100.100.100.200", 32, "ipv4");

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addSubnet("0.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");
loopback.addAddress("::", "ipv6");

/** Whether an address is one of this machine's now: networks come and go. */
function isOwn(address: string): boolean {
  const own = new BlockList();
  for (const { address: each, family } of Object.values(networkInterfaces()).flatMap((found) => found ?? [])) {
    own.addAddress(each, family === "IPv6" ? "ipv6" : "ipv4");
  }
  return own.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

class ForbiddenAddress extends Error {
  constructor(address: string) {
    super(`nothing is sent to ${address}; --topics-to-this-machine lets messages go to the programs of this machine`);
    this.name = "ForbiddenAddress";
  }
}

export interface SenderOptions {
  /** Whether programs of this machine may be subscribed. */
  readonly toThisMachine: boolean;
}

/** One request for each message, over a connection of its own; the address is looked at when it is connected to, so no name leads elsewhere later. */
export function messageSender({ toThisMachine }: SenderOptions): SendMessage {
  const isForbidden = (address: string): boolean => {
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    // An IPv4 address in IPv6's clothes is looked at as what it is.
    const bare = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
    if (bare !== undefined) return isForbidden(bare);
    if (linkLocal.check(address, family)) return true;
    return !toThisMachine && (loopback.check(address, family) || isOwn(address));
  };
  const lookup: LookupFunction = (hostname, options: LookupOptions, done) => {
    resolveName(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
      const [first] = addresses ?? [];
      if (error !== null) return done(error, "", 0);
      const forbidden = addresses.find(({ address }) => isForbidden(address));
      if (forbidden !== undefined || first === undefined)
        return done(new ForbiddenAddress(forbidden?.address ?? hostname), "", 0);
      if (options.all === true) return done(null, addresses);
      done(null, first.address, first.family);
    });
  };
  return (url, { headers, body }, signal) =>
    new Promise<AttemptOutcome>((resolve) => {
      const fail = (error: Error) => {
        const kind = error instanceof ForbiddenAddress ? "forbidden" : "unreachable";
        resolve({ kind, why: `the endpoint could not be reached: ${error.message}` });
      };
      const parsed = new URL(url);
      const host = parsed.hostname.replace(/^\[|\]$/g, "");
      // A name that is an address is never looked up.
      if (isIP(host) !== 0 && isForbidden(host)) return fail(new ForbiddenAddress(host));
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
          resolve({ kind: "answered", status: response.statusCode ?? 0 });
          // Nobody reads what it says.
          response.destroy();
        },
      );
      sent.once("error", fail);
      sent.end(content);
    });
}
