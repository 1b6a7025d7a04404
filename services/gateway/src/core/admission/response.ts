import type { Reason } from '#libs/contracts';
import { API_GROUP } from '#libs/manifests';

/** The answer to the API server. */
export type AdmissionAnswer =
  | { readonly is: 'allowed'; readonly warnings: readonly string[] }
  /** The object itself is wrong, or an immutable field was changed. */
  | { readonly is: 'invalid'; readonly message: string; readonly reasons: readonly Reason[] }
  | { readonly is: 'forbidden'; readonly message: string }
  /** Too little is known yet to check rights. */
  | { readonly is: 'unready' };

export const ALLOWED: AdmissionAnswer = { is: 'allowed', warnings: [] };
/** The subject of a request with this uid. */
interface RequestIdentity {
  readonly uid: string;
  readonly kind?: string;
  readonly name?: string;
}

/** The answer as an AdmissionReview; undefined if there is no answer. */
export function reviewOf({ uid, kind = '', name = '' }: RequestIdentity, answer: AdmissionAnswer): object | undefined {
  switch (answer.is) {
    case 'unready':
      return undefined;
    case 'allowed':
      return review({ uid, allowed: true, ...(answer.warnings.length === 0 ? {} : { warnings: answer.warnings }) });
    case 'forbidden':
      return review({
        uid,
        allowed: false,
        status: { status: 'Failure', code: 403, reason: 'Forbidden', message: answer.message },
      });
    case 'invalid': {
      // kubectl shows each of these on a line. The message is for clients that show no more.
      const causes = answer.reasons.map(({ fragment, field, code, message }) => ({
        reason: code,
        field: fragment === `${kind}/${name}` || fragment === '' ? field : `${fragment} ${field}`,
        message,
      }));
      return review({
        uid,
        allowed: false,
        status: {
          status: 'Failure',
          code: 422,
          reason: 'Invalid',
          message: answer.message,
          details: { group: API_GROUP, kind, name, causes },
        },
      });
    }
  }
}

const review = (response: object): object => ({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response });
