/**
 * The cases of gRPC's interop suite for a server. Excluded are those about the credentials of a cloud, load balancing
 * and backend metrics, and `custom_metadata`, because no method of this server sends metadata of its own.
 */
export const interopCases = [
  "empty_unary",
  "large_unary",
  "client_streaming",
  "server_streaming",
  "ping_pong",
  "empty_stream",
  "status_code_and_message",
  "special_status_message",
  "unimplemented_method",
  "unimplemented_service",
  "cancel_after_begin",
  "cancel_after_first_response",
  "timeout_on_sleeping_server",
] as const;
