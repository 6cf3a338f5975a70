/**
 * Niceness of hashing threads: serving requests has priority, and of a body's hash only the last bytes are waited for.
 * Threads with the default niceness get three times as much of a contended processor.
 */
export const hashThreadNiceness = 5;
