/** A caller whose request has no signature. */
export interface UnsignedCaller {
  /** The remote address of the connection; undefined once it is closed. */
  readonly remoteAddress: string | undefined;
  /** True if the platform verifies no signatures (`galatea up --open`). */
  readonly isOpen: boolean;
  /** True if the request sends one of the owner's keys in another way, such as HTTP basic authentication. */
  readonly hasOwnerKey: boolean;
}

/** The access of a request without a signature, in addition to /ping, /health and URLs that contain a token. */
export interface UnsignedAccess {
  /** The platform's metrics, and the numbers on its page. Neither contains names of endpoints. */
  readonly platformMetrics: boolean;
  /**
   * The metrics of endpoints, and the list of endpoints on the platform's page. Both contain names of endpoints and
   * models.
   */
  readonly endpointMetrics: boolean;
  /** The kinds of isolation that this machine lacks, in the response of /health. */
  readonly confinementGaps: boolean;
  /** True if the client may open a CONNECT tunnel to the STS host names, which this platform serves. */
  readonly stsTunnel: boolean;
}

const loopback = /^(?:127\.|::1$|::ffff:127\.)/;

/**
 * Decides what an unsigned request may access. Programs of this machine, including model code, connect over the
 * loopback interface and may access everything that contains no endpoint names. The same holds for all clients of a
 * reverse proxy on this machine, so the proxy must block /metrics for them.
 */
export function unsignedAccess({ remoteAddress, isOpen, hasOwnerKey }: UnsignedCaller): UnsignedAccess {
  const isOwner = isOpen || hasOwnerKey;
  const isLocal = loopback.test(remoteAddress ?? "");
  return {
    platformMetrics: isOwner || isLocal,
    endpointMetrics: isOwner,
    confinementGaps: isOwner || isLocal,
    stsTunnel: isLocal,
  };
}
