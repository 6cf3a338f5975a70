/**
 * S3's protocol over a BucketStore: path style and virtual host, signatures in headers and queries, aws-chunked bodies,
 * ranges and conditionals, multipart, copies, both listings. Unimplemented parameters are rejected by name.
 */
export { WriterQuotas } from "./object-writers.ts";
export { s3Service, type S3Dependencies } from "./service.ts";
