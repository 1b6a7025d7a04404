import { oneLine } from '#libs/contracts';

/** The API server refused the request. The message is its own, on one line. */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  constructor(
    readonly code: number,
    /** As in a Status object: Conflict, Forbidden, Expired, TooManyRequests. */
    readonly reason: string,
    message: string,
    readonly causes: readonly { readonly reason: string; readonly message: string; readonly field: string }[] = [],
    /** How long the server asks to wait; undefined if it does not say. */
    readonly retryAfterMs: number | undefined = undefined,
  ) {
    super(oneLine(message));
  }

  /** Whether a right is missing, as opposed to a quota or a webhook that refuses the request. */
  get lacksRight(): boolean {
    return this.code === 403 && / cannot \w+ resource "/.test(this.message);
  }
}

/** No answer: the server is down or too slow, or the connection broke. The request may still have been processed. */
export class KubeUnreachableError extends Error {
  override readonly name = 'KubeUnreachableError';
}

/** There is no usable kubeconfig. The message says which places were searched and what is wrong. */
export class KubeConfigError extends Error {
  override readonly name = 'KubeConfigError';
}

export const isMissingRight = (error: unknown): boolean => error instanceof KubeError && error.lacksRight;
export const isKubeStatus = (error: unknown, code: number): error is KubeError =>
  error instanceof KubeError && error.code === code;

/** The outcome of a conditional write: `overtaken` if the object was changed since it was read, or replaced. */
export async function outcomeOf<T>(write: Promise<T>): Promise<T | 'overtaken' | 'gone'> {
  try {
    return await write;
  } catch (error) {
    if (isKubeStatus(error, 409)) return 'overtaken';
    if (isKubeStatus(error, 404)) return 'gone';
    throw error;
  }
}

/** Reads the body of a refusal: a Status object if the API server itself wrote it. */
export function refusalOf(code: number, text: string, retryAfter: string | null): KubeError {
  const status = jsonObject(text);
  const message = typeof status['message'] === 'string' ? status['message'] : text.trim().slice(0, 500);
  const reason = typeof status['reason'] === 'string' ? status['reason'] : '';
  const details = (status['details'] ?? {}) as {
    readonly causes?: readonly { readonly reason?: string; readonly message?: string; readonly field?: string }[];
  };
  const causes = (details.causes ?? []).map((cause) => ({
    reason: cause.reason ?? '',
    message: cause.message ?? '',
    field: cause.field ?? '',
  }));
  const seconds = Number(retryAfter ?? '');
  return new KubeError(
    code,
    reason,
    message === '' ? `HTTP ${code}` : message,
    causes,
    seconds > 0 ? seconds * 1_000 : undefined,
  );
}

function jsonObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
