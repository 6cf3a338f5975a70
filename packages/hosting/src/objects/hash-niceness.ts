/**
 * Niceness of hashing threads. Serving requests has priority, because a request waits only for the hash of the last
 * bytes of a body. Threads with the default niceness get three times as much CPU time on a busy processor.
 */
export const hashThreadNiceness = 5;
