/** Headers of one container's response that are sent in the request to the next container. */
export interface ChainedHeaders {
  readonly contentType: string | null;
  /** Content length of the body. Null if it is unknown, or if the HTTP client sets the header itself. */
  readonly byteLength: number | null;
}

/** SageMaker's maximum length of a request's content type. */
const contentTypeCharsMax = 1024;

/**
 * Returns whether a content type is valid in a request. It is checked first, because the failure to send an invalid one
 * would be reported as an error of the receiving container.
 */
export function isValidContentType(contentType: string | null): boolean {
  return (
    contentType === null || (contentType.length <= contentTypeCharsMax && /^[\t\x20-\x7e\x80-\xff]*$/.test(contentType))
  );
}

export interface HopPosition {
  readonly isLast: boolean;
  readonly isMultiModel: boolean;
  /** Headers of the previous container's response. Null for the first container, which gets the client's headers. */
  readonly carried: ChainedHeaders | null;
}

/**
 * Returns the headers for one container of a chain. The content type is the one of the previous container's response.
 * Only the last container gets `accept`, and only a multi-model container gets the name of the target model.
 */
export function hopHeaders(
  headers: Readonly<Record<string, string>>,
  { isLast, isMultiModel, carried }: HopPosition,
): Readonly<Record<string, string>> {
  const {
    "content-type": contentType,
    "content-length": contentLength,
    accept,
    "x-amzn-sagemaker-target-model": targetModel,
    ...others
  } = headers;
  const sent: Record<string, string> = others;
  const type = carried === null ? contentType : carried.contentType;
  const length = carried === null ? contentLength : carried.byteLength;
  if (type !== undefined && type !== null) sent["content-type"] = type;
  if (length !== undefined && length !== null) sent["content-length"] = String(length);
  if (isLast && accept !== undefined) sent["accept"] = accept;
  if (isMultiModel && targetModel !== undefined) sent["x-amzn-sagemaker-target-model"] = targetModel;
  return sent;
}
