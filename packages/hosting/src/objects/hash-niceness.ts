/**
 * Who answers requests goes before who hashes: bytes are hashed while they come, and only their last ones are waited for. Threads that have
 * nothing said about them get three times as much of a processor that they want too.
 */
export const niceness = 5;
