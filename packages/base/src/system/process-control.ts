import { koffi } from "./koffi.ts";
import { checkSystemCall, SystemCallError } from "./system-error.ts";

/**
 * C library functions for child processes that Node does not offer: pipes, sockets that transfer descriptors, reaping,
 * and lifelines (pipes whose closing kills a process group).
 */

const O_CLOEXEC = 0o2000000;
const O_NONBLOCK = 0o4000;
const O_ASYNC = 0o20000;
const AF_UNIX = 1;
const SOCK_STREAM = 1;
const SOCK_CLOEXEC = O_CLOEXEC;
const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const F_SETFD = 2;
const FD_CLOEXEC = 1;
const F_GETFL = 3;
const F_SETFL = 4;
const F_SETOWN = 8;
const F_SETSIG = 10;
const SIGKILL = 9;
const WNOHANG = 1;
const WEXITED = 4;
const WNOWAIT = 0x1000000;
const P_ALL = 0;
const P_PID = 1;
const siginfoBytes = 128;
const siginfoPidAt = 16;
const PR_SET_PDEATHSIG = 1;
const PR_SET_CHILD_SUBREAPER = 36;
/** Size of a cpu_set_t, which has one bit for each of 1024 processors. */
const processorSetBytes = 128;
const MSG_CMSG_CLOEXEC = 0x4000_0000;
const EPIPE = 32;
const ECONNRESET = 104;
const EAGAIN = 11;
const EINTR = 4;
const ESRCH = 3;
const ECHILD = 10;

function bind() {
  const libc = koffi.load(null);
  return {
    pipe2: libc.func("int pipe2(_Out_ int *fds, int flags)"),
    socketpair: libc.func("int socketpair(int domain, int type, int protocol, _Out_ int *fds)"),
    fcntl: libc.func("int fcntl(int fd, int command, long argument)"),
    send: libc.func("int64_t send(int fd, const void *buffer, size_t length, int flags)"),
    recv: libc.func("int64_t recv(int fd, void *buffer, size_t length, int flags)"),
    sendmsg: libc.func("int64_t sendmsg(int fd, const void *message, int flags)"),
    recvmsg: libc.func("int64_t recvmsg(int fd, void *message, int flags)"),
    setAffinity: libc.func("int sched_setaffinity(int thread, size_t byteLength, const void *mask)"),
    waitpid: libc.func("int waitpid(int pid, _Out_ int *status, int options)"),
    waitid: libc.func("int waitid(int kind, int id, _Out_ void *info, int options)"),
    prctl: libc.func("int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)"),
    kill: libc.func("int kill(int pid, int signal)"),
    mkfifo: libc.func("int mkfifo(const char *path, unsigned int mode)"),
    dup: libc.func("int dup(int fd)"),
    alarm: libc.func("unsigned int alarm(unsigned int seconds)"),
  };
}

const libc = bind();

export interface DescriptorPair {
  readonly ours: number;
  readonly theirs: number;
}

/** Opens a pipe that children do not inherit. */
export function openPipe(): { readonly readFd: number; readonly writeFd: number } {
  const fds = [0, 0];
  checkSystemCall("pipe2", libc.pipe2(fds, O_CLOEXEC) as number);
  return { readFd: fds[0]!, writeFd: fds[1]! };
}

/**
 * Opens a connected pair of unnamed stream sockets. `ours` is non-blocking. `theirs` is blocking, for a child that uses
 * plain read and write calls.
 */
export function openSocketPair(): DescriptorPair {
  const fds = [0, 0];
  checkSystemCall("socketpair", libc.socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) as number);
  const flags = checkSystemCall("fcntl(F_GETFL)", libc.fcntl(fds[0]!, F_GETFL, 0) as number);
  checkSystemCall("fcntl(F_SETFL)", libc.fcntl(fds[0]!, F_SETFL, flags | O_NONBLOCK) as number);
  return { ours: fds[0]!, theirs: fds[1]! };
}

/**
 * Makes the kernel kill every process of a group when the last writer of the pipe has closed it or has ended. A process
 * of the group must have the pipe's read end open. The group needs no code for this, and cannot catch the signal.
 */
export function armLifeline(readFd: number, processGroup: number): void {
  checkSystemCall("fcntl(F_SETSIG)", libc.fcntl(readFd, F_SETSIG, SIGKILL) as number);
  checkSystemCall("fcntl(F_SETOWN)", libc.fcntl(readFd, F_SETOWN, -processGroup) as number);
  const flags = checkSystemCall("fcntl(F_GETFL)", libc.fcntl(readFd, F_GETFL, 0) as number);
  checkSystemCall("fcntl(F_SETFL)", libc.fcntl(readFd, F_SETFL, flags | O_ASYNC) as number);
}

/**
 * Sends bytes without blocking. Returns the number of bytes that the socket accepted, 0 if its buffer is full. A call
 * takes about 0.6 us, a stream's `write` about 5 us. Throws SystemCallError EPIPE if the peer has closed the socket.
 */
export function sendNonBlocking(fd: number, bytes: Uint8Array, byteLength: number): number {
  const sent = libc.send(fd, bytes, byteLength, MSG_DONTWAIT | MSG_NOSIGNAL) as number;
  if (sent >= 0) return sent;
  const errno = koffi.errno();
  if (errno === EAGAIN || errno === EINTR) return 0;
  throw new SystemCallError("send", errno);
}

/**
 * Receives available bytes without blocking. Returns their number, 0 if there are none. Does not report that the peer
 * has closed the socket; the stream that owns the descriptor detects that.
 */
export function receiveNonBlocking(fd: number, into: Uint8Array): number {
  const received = libc.recv(fd, into, into.byteLength, MSG_DONTWAIT) as number;
  return received > 0 ? received : 0;
}

/**
 * Sends bytes together with open descriptors (SCM_RIGHTS). Returns false if the socket's buffer is full and nothing was
 * sent.
 */
export function sendDescriptors(fd: number, bytes: Uint8Array, descriptors: readonly number[]): boolean {
  const controlBytes = 16 + descriptors.length * 4;
  const control = new Uint8Array(Math.ceil(controlBytes / 8) * 8);
  const controlView = new DataView(control.buffer);
  controlView.setBigUint64(0, BigInt(controlBytes), true);
  controlView.setInt32(8, SOL_SOCKET, true);
  controlView.setInt32(12, SCM_RIGHTS, true);
  descriptors.forEach((descriptor, index) => controlView.setInt32(16 + index * 4, descriptor, true));
  const parts = new BigUint64Array([koffi.address(bytes), BigInt(bytes.byteLength)]);
  const message = new Uint8Array(56);
  const messageView = new DataView(message.buffer);
  messageView.setBigUint64(16, koffi.address(parts), true);
  messageView.setBigUint64(24, 1n, true);
  messageView.setBigUint64(32, koffi.address(control), true);
  messageView.setBigUint64(40, BigInt(control.byteLength), true);
  const sent = libc.sendmsg(fd, message, MSG_DONTWAIT | MSG_NOSIGNAL) as number;
  if (sent === bytes.byteLength) return true;
  if (sent >= 0) throw new Error(`sendmsg sent only ${sent} of ${bytes.byteLength} bytes of a record`);
  const errno = koffi.errno();
  if (errno === EAGAIN || errno === EINTR) return false;
  throw new SystemCallError("sendmsg", errno);
}

/**
 * Duplicates a descriptor without close-on-exec. After `exec`, the new program has the descriptor open under the same
 * number.
 */
export function duplicateForExec(fd: number): number {
  return checkSystemCall("dup", libc.dup(fd) as number);
}

/** Sets close-on-exec, so that programs that this process starts do not inherit the descriptor. */
export function setCloseOnExec(fd: number): void {
  checkSystemCall("fcntl(F_SETFD)", libc.fcntl(fd, F_SETFD, FD_CLOEXEC) as number);
}

/** Makes a named pipe that only this user may open. */
export function makeNamedPipe(path: string): void {
  checkSystemCall("mkfifo", libc.mkfifo(path, 0o600) as number);
}

/**
 * Makes the kernel end this process with SIGALRM after `seconds`. Each call replaces the previous alarm. Use it for a
 * process whose event loop may be blocked, so that a timer would not fire. Children do not inherit the alarm.
 */
export function setProcessAlarm(seconds: number): void {
  libc.alarm(seconds);
}

/**
 * Makes the kernel send this signal to the process when its parent ends in any way. Children do not inherit the
 * setting.
 */
export function setParentDeathSignal(signal: number): void {
  checkSystemCall("prctl(PR_SET_PDEATHSIG)", libc.prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) as number);
}

/**
 * Receives one byte and the open descriptor that was sent with it. The caller owns the descriptor, and children do not
 * inherit it. The byte must already have arrived: the peer must send it before it announces the descriptor.
 */
export function receiveDescriptor(fd: number): number {
  const byte = new Uint8Array(1);
  const control = new Uint8Array(24);
  const parts = new BigUint64Array([koffi.address(byte), 1n]);
  const message = new Uint8Array(56);
  const view = new DataView(message.buffer);
  view.setBigUint64(16, koffi.address(parts), true);
  view.setBigUint64(24, 1n, true);
  view.setBigUint64(32, koffi.address(control), true);
  view.setBigUint64(40, BigInt(control.byteLength), true);
  checkSystemCall("recvmsg", Number(libc.recvmsg(fd, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)));
  if (view.getBigUint64(40, true) < 20n) throw new Error("received a message without a file descriptor");
  return new DataView(control.buffer).getInt32(16, true);
}

/**
 * Receives the next bytes, and blocks this thread until then. Returns their number, 0 if the peer has closed the
 * socket. Use it only in a thread without other work.
 */
export function receiveBlocking(fd: number, into: Uint8Array): number {
  for (;;) {
    const received = Number(libc.recv(fd, into, into.byteLength, 0));
    if (received >= 0) return received;
    const errno = koffi.errno();
    if (errno === ECONNRESET) return 0;
    if (errno !== EINTR) throw new SystemCallError("recv", errno);
  }
}

/**
 * Sends all bytes, and blocks this thread while the socket's buffer is full. Returns false if the peer has closed the
 * socket.
 */
export function sendBlocking(fd: number, bytes: Uint8Array): boolean {
  let sent = 0;
  while (sent < bytes.byteLength) {
    const rest = bytes.subarray(sent);
    const used = Number(libc.send(fd, rest, rest.byteLength, MSG_NOSIGNAL));
    if (used >= 0) {
      sent += used;
      continue;
    }
    const errno = koffi.errno();
    if (errno === EPIPE || errno === ECONNRESET) return false;
    if (errno !== EINTR) throw new SystemCallError("send", errno);
  }
  return true;
}

/** Pins the calling thread to these processors. Does nothing if the process may no longer use them. */
export function pinThread(processors: readonly number[]): void {
  const mask = new Uint8Array(processorSetBytes);
  for (const processor of processors) {
    const position = processor >> 3;
    if (position < mask.length) mask[position] = (mask[position] as number) | (1 << (processor & 7));
  }
  libc.setAffinity(0, mask.byteLength, mask);
}

/** Makes this process the parent of its orphaned descendants, so that it can reap them. */
export function becomeSubreaper(): void {
  checkSystemCall("prctl(PR_SET_CHILD_SUBREAPER)", libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) as number);
}

export type WaitResult =
  | { readonly kind: "running" }
  | { readonly kind: "not a child" }
  | { readonly kind: "ended"; readonly status: number };

/** Reaps one child if it has ended, without blocking. Returns the kernel's wait status. */
export function reapChild(pid: number): WaitResult {
  const status = [0];
  const result = libc.waitpid(pid, status, WNOHANG) as number;
  if (result === 0) return { kind: "running" };
  if (result === pid) return { kind: "ended", status: status[0]! };
  const errno = koffi.errno();
  if (errno === ECHILD) return { kind: "not a child" };
  throw new SystemCallError("waitpid", errno);
}

/** Returns the pid of any child that has ended and was not yet reaped, without reaping it; null if there is none. */
export function findEndedChild(): number | null {
  const info = new Int32Array(siginfoBytes / 4);
  if (libc.waitid(P_ALL, 0, info, WEXITED | WNOHANG | WNOWAIT) === 0) return info[siginfoPidAt / 4] || null;
  const errno = koffi.errno();
  if (errno === ECHILD) return null;
  throw new SystemCallError("waitid", errno);
}

/** Returns whether a process is a child of this process, running or not yet reaped. */
export function isChild(pid: number): boolean {
  const info = new Int32Array(siginfoBytes / 4);
  if (libc.waitid(P_PID, pid, info, WEXITED | WNOHANG | WNOWAIT) === 0) return true;
  const errno = koffi.errno();
  if (errno === ECHILD) return false;
  throw new SystemCallError("waitid", errno);
}

/** Sends a signal to every process of a group. Returns false if the group has no process. */
export function signalGroup(processGroup: number, signal: number): boolean {
  if (libc.kill(-processGroup, signal) === 0) return true;
  const errno = koffi.errno();
  if (errno === ESRCH) return false;
  throw new SystemCallError("kill", errno);
}
